/* SPDX-License-Identifier: BSD-3-Clause */
/* session_proof.h - sessions whose client hasn't proved yet that it is where it says */
#ifndef CONVERTD_SESSION_PROOF_H
#define CONVERTD_SESSION_PROOF_H

#include "convertd/session/session_private.h"

/* The client has connected: looks whether it has proved its address. If not, limits what may go to it. */
void session_start_proof(struct session *s);

/* The client has proved its address, by its third ACK or by a cookie: nothing is kept from it any more. */
void session_end_proof(struct session *s);

/* The session ends: an unproven client isn't counted as one any more. */
void session_forget_proof(struct session *s);

/* The answer has @len bytes: of what may go to an unproven client it comes first, and whole or not at all. */
void session_cap_answer(struct session *s, size_t len);

#endif
