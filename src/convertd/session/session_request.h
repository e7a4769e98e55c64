/* SPDX-License-Identifier: BSD-3-Clause */
/* session_request.h - the request that a session's stream begins with: kept until it is whole, and judged */
#ifndef CONVERTD_SESSION_REQUEST_H
#define CONVERTD_SESSION_REQUEST_H

#include "convertd/session/session_private.h"

struct judgement;

/* Has the SYN+ACK said that the server was reached? Its client sees the same facts (doc/private-tlvs.md). */
bool session_request_is_confirmed(const struct session *s);

/*
 * session_request_judge() - what is to become of the request
 * @buf, @len: all that has arrived
 * @judgement: set; the caller carries it out
 * Notes the server, what is exceeded, and who is at fault. What was done for the connection's SYN is undone unless the
 * judgement makes use of it, or waits for more bytes.
 */
void session_request_judge(struct session *s, const uint8_t *buf, size_t len, struct judgement *judgement);

/* Keeps what has arrived, until there is more to know. Returns false without memory. */
bool session_request_keep(struct session *s, const uint8_t *buf, size_t len);

/* Copies to @scratch what was kept, and frees it. Returns how many bytes that are. */
size_t session_request_unkeep(struct session *s, uint8_t *scratch);

#endif
