/* SPDX-License-Identifier: BSD-3-Clause */
/* session_answer.h - what the converter itself says to a client: queued, and counted */
#ifndef CONVERTD_SESSION_ANSWER_H
#define CONVERTD_SESSION_ANSWER_H

#include "convertd/session/session_private.h"

/* Queues the answer in front of all that goes to the client. Returns false without memory, or if @len is 0. */
bool session_queue_answer(struct session *s, const uint8_t *answer, size_t len);

/* What an answer means for a session that can't be told it. */
enum outcome session_answer_outcome(const uint8_t *answer, size_t len);

/* Notes and counts the error that the converter's last word says. Returns what it means for the session. */
enum outcome session_read_answer(struct session *s, const uint8_t *answer, size_t len);

#endif
