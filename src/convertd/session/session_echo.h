/* SPDX-License-Identifier: BSD-3-Clause */
/* session_echo.h - what a client sends behind a request for information comes back, if it asks for that */
#ifndef CONVERTD_SESSION_ECHO_H
#define CONVERTD_SESSION_ECHO_H

#include "convertd/session/session_private.h"

/* The request for information wants what follows it back: @early of it is here already. */
void session_start_echo(struct session *s, const uint8_t *early, size_t len);

/* Takes more of it, once what was taken before is written. Returns whether that was all, or none was wanted. */
bool session_echo(struct session *s);

#endif
