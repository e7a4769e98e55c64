/* SPDX-License-Identifier: BSD-3-Clause */
/* session_connect.h - ask the server that a request names */
#ifndef CONVERTD_SESSION_CONNECT_H
#define CONVERTD_SESSION_CONNECT_H

#include "convertd/session/session_private.h"

struct request_decision;
struct tcp_info;

enum session_connect_result {
	SESSION_CONNECT_ASKED,       /* the server was asked: its answer, or the deadline, which is set, decides */
	SESSION_CONNECT_UNSUPPORTED, /* an option that the client wants can't be in the SYN */
	SESSION_CONNECT_REFUSED,     /* the server can't be reached, as it has turned out while the SYN was withheld */
	SESSION_CONNECT_FAILED,      /* the server can't be asked */
	SESSION_CONNECT_NO_MEMORY,
};

struct session_connection {
	enum session_connect_result result;
	uint8_t option;                  /* UNSUPPORTED: its kind */
	const char *reason;              /* UNSUPPORTED: for the log, a constant */
	struct downstream_error refusal; /* REFUSED: what the client is told */
	int error;                       /* FAILED: -errno */
};

/*
 * session_connect() - asks the server that a request names
 * @decision: REQUEST_CONNECT
 * @early, @len: what the client has sent behind its request
 * Where it isn't asked, the session has no socket for it that its end wouldn't close. The state doesn't change.
 */
struct session_connection session_connect(struct session *s, const struct request_decision *decision,
					  const uint8_t *early, size_t len);

/*
 * session_goes_on_connecting() - may the server be waited for on, though the deadline is over?
 * That counts on a SYN that was withheld for all of --hold-time. Those of far clients are for less, so that there is time left of
 * --connect-timeout. Sets the deadline to its end then.
 */
bool session_goes_on_connecting(struct session *s);

/* The server has answered: writes the TCP options of its SYN+ACK, as the answer has them. Returns bytes written to @out. */
size_t session_server_options(struct session *s, const struct tcp_info *info, uint8_t *out);

#endif
