/* SPDX-License-Identifier: BSD-3-Clause */
/* outcome.h - how a session ended: for people, and in words that programs may rely on */
#ifndef DAEMON_OUTCOME_H
#define DAEMON_OUTCOME_H

#include <stdbool.h>

/* Each has a name, which never changes, and a text, which may: outcome.c. */
enum outcome {
	OUTCOME_NONE, /* not over yet */
	OUTCOME_DONE,
	OUTCOME_INFORMATION,
	OUTCOME_CLIENT_LEFT,
	OUTCOME_CLIENT_LOST_REQUEST,
	OUTCOME_CLIENT_LOST_CONNECTING,
	OUTCOME_CLIENT_LOST,
	OUTCOME_SERVER_LOST,
	OUTCOME_BYTES_MISSING,
	OUTCOME_NO_REQUEST,
	OUTCOME_NO_HANDSHAKE,
	OUTCOME_CLIENT_STALLED,
	OUTCOME_SERVER_STALLED,
	OUTCOME_HALF_CLOSED,
	OUTCOME_IDLE,
	OUTCOME_NOT_CONVERT,
	OUTCOME_NOT_SILENT, /* its client wants no response, and can be served only with one */
	OUTCOME_BAD_REQUEST,
	OUTCOME_UNSUPPORTED_OPTION,
	OUTCOME_MISSING_COOKIE,
	OUTCOME_NOT_AUTHORIZED,
	OUTCOME_RESOURCES,
	OUTCOME_SERVER_REFUSED,
	OUTCOME_SERVER_UNREACHABLE,
	OUTCOME_NETWORK_FAILURE,
	OUTCOME_LACKING, /* another host may reach the server, this one doesn't */
	OUTCOME_LIMIT_CLIENT_PENDING,
	OUTCOME_LIMIT_CLIENT_CONNECTIONS,
	OUTCOME_LIMIT_PENDING,
	OUTCOME_LIMIT_CONNECTIONS,
	OUTCOME_LIMIT_MEMORY,
	OUTCOME_LIMIT_REFUSED,
	OUTCOME_LIMIT_ERRORS,
	OUTCOME_STOPPED,
	OUTCOME_OUT_OF_MEMORY,
	OUTCOME_COUNT
};

/* Returns a word such as "client_lost", for the log's JSON and for metrics: letters a to z and underscores. */
const char *outcome_name(enum outcome outcome);

/* Returns a text such as "client lost". */
const char *outcome_text(enum outcome outcome);

/* How a client learns the result of its request (doc/private-tlvs.md). */
enum judgement_reply {
	JUDGEMENT_RESPONSE, /* from messages of the protocol */
	JUDGEMENT_SILENT,   /* from the server's bytes alone, or from a reset */
	JUDGEMENT_RESET,    /* not at all: we reset its connection, or refuse its SYN */
	JUDGEMENT_REPLIES
};

/* ----- the states of a session, and their order ----- */

/*
 * REQUEST     The client is connected. Its bytes are collected until they are a request or can't become one. If the client closes,
 *             the session closes without an answer. The request deadline resets the connection, since the client may have sent bytes
 *             that have not arrived.
 * CONNECTING  We have asked the server. We read nothing more from the client: a FIN may have come (a half-close is the client's
 *             right), but a reset abandons the server. The server's answer or the connect deadline ends this state.
 * RELAY       The server was reached. The answer, then bytes, go both ways until both directions have ended or one socket fails,
 *             which resets the other. The deadline is first for the client's third ACK, and for the kernel to take the answer; from
 *             then on it looks now and then whether bytes move (relay.h). After one socket has failed, the other's peer has
 *             until the deadline to take some of the bytes that came before; then they are lost.
 * RESETTING   One socket has failed and is closed. The other has to be reset as well, but bytes that came before the failure are
 *             still on their way to its peer, and an RST would overtake them. Nothing tells when they have arrived, so the deadline
 *             is short and looks for them; after 5 s it resets anyway.
 * REFUSING    The answer is our last message: an Error TLV, or the answer to an Info TLV without a Connect TLV. It is
 *             written, then the FIN. Bytes that the client still sends are discarded until it closes or resets, or until the linger
 *             deadline: to close earlier would send an RST, which takes the answer from the client (Section 6.2.2). Bytes that
 *             aren't Convert get no answer, and the connection is closed as soon as the socket is writable.
 * CLOSED      Nothing happens any more; session_advance() frees the session at its end.
 *
 * Each state allows:
 *
 *                 reads the client    writes to it    has a server's socket    its deadline
 *     REQUEST     the request         nothing         no                       for a whole request, resets
 *     CONNECTING  no                  nothing         yes                      for the server's answer
 *     RELAY       for the server      all             yes                      looks for bytes that move
 *     RESETTING   no                  nothing         one socket of the two    looks for bytes on their way
 *     REFUSING    to discard          the answer      no                       to linger, closes
 *     CLOSED      no                  nothing         until it is freed        none
 *
 * session_states.c alone changes states, by session_set_state(). doc/states-convertd.md has the table of events.
 */
enum session_state {
	SESSION_REQUEST,
	SESSION_CONNECTING,
	SESSION_RELAY,
	SESSION_RESETTING,
	SESSION_REFUSING,
	SESSION_CLOSED,
	SESSION_STATE_COUNT
};

/* Words such as "request", for labels and the log. */
extern const char *const session_state_names[SESSION_STATE_COUNT];

/* Tells whether a session may go from @state to @next. A session begins in REQUEST. */
bool session_state_allows(enum session_state state, enum session_state next);

#endif
