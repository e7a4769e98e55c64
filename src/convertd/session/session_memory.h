/* SPDX-License-Identifier: BSD-3-Clause */
/* session_memory.h - the kernel memory that sessions of one worker hold: who is looked at, and when */
#ifndef CONVERTD_SESSION_MEMORY_H
#define CONVERTD_SESSION_MEMORY_H

#include "convertd/session/session_private.h"

/* Prepares a pool. Returns 0, or -1 without memory. */
int session_memory_init(struct session_pool *pool);

void session_memory_fini(struct session_pool *pool);

/* The relay has run: the session is looked at from now on, if it may hold much of the kernel's memory. */
void session_memory_note(struct session *s);

/* The session ends: it is looked at no more. */
void session_memory_forget(struct session *s);

/* Both directions have ended: are so many bytes still on their way that the session stays until they have arrived? */
bool session_memory_lingers(struct session *s);

#endif
