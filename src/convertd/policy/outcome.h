/* SPDX-License-Identifier: BSD-3-Clause */
/* outcome.h - how a session ended: for people, and in words that programs may rely on */
#ifndef CONVERTD_OUTCOME_H
#define CONVERTD_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

/* Each has a name, which stays, and a text, which may be improved: outcome.c. */
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
	OUTCOME_NOT_SILENT, /* its client wants no response, and can't be served without one */
	OUTCOME_BAD_REQUEST,
	OUTCOME_UNSUPPORTED_OPTION,
	OUTCOME_MISSING_COOKIE,
	OUTCOME_NOT_AUTHORIZED,
	OUTCOME_RESOURCES,
	OUTCOME_SERVER_REFUSED,
	OUTCOME_SERVER_UNREACHABLE,
	OUTCOME_NETWORK_FAILURE,
	OUTCOME_LACKING, /* it may be reached, but not from here */
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

/* "client_lost": in the log's JSON and in metrics; letters a to z and underscores. */
const char *outcome_name(enum outcome outcome);

/* "client lost" */
const char *outcome_text(enum outcome outcome);

/* What it means that the converter's last word was an Error TLV of this code. */
enum outcome outcome_of_error(uint8_t code);

/* ----- the states of a session, and which may follow which ----- */

/*
 * REQUEST     The client is connected. Its bytes are collected until they make a request or
 *             can't become one. The client's end closes without a word, the request deadline resets:
 *             the client may have sent more than has arrived, data that nobody has taken.
 * CONNECTING  The server was asked. Nothing more is read from the client: it may have sent its
 *             FIN (a half-close is a client's right), but a reset abandons the server.
 *             The server's answer, or the connect deadline, decides.
 * RELAY       The server was reached. The answer, then bytes, go both ways until both directions
 *             have ended or one socket fails, which resets the other. The deadline is for the
 *             client's third ACK and the answer to be taken by the kernel; from then on it looks
 *             now and then whether anything moves (relay_look.h). With one socket failed it is
 *             for the other's peer to take some of the bytes that came before, or they are lost.
 * RESETTING   One socket has failed and is closed; the other is to be reset as well, but bytes that
 *             came before the failure are still on their way to that peer, and an RST would
 *             overtake them. Nothing tells when they have arrived, so the deadline is short and
 *             looks; after 5 s the reset comes anyway.
 * REFUSING    The answer is the converter's last word: an Error TLV, or to an Info TLV alone. It
 *             is written, then the FIN; what the client still sends is thrown away until it
 *             closes or resets, or the linger deadline: a close before would be an RST,
 *             which takes the answer from the client (Section 6.2.2). What isn't Convert has
 *             no answer and is closed as soon as the socket may be written.
 * CLOSED      Nothing happens any more; the session is freed where session_advance() ends.
 *
 * What each state allows:
 *
 *                 reads the client    writes to it    has a server's socket    its deadline
 *     REQUEST     the request         nothing         no                       for a whole request, resets
 *     CONNECTING  no                  nothing         yes                      for the server's answer
 *     RELAY       for the server      all             yes                      looks at what moves
 *     RESETTING   no                  nothing         one socket of the two    looks for bytes on their way
 *     REFUSING    to throw away       the answer      no                       to linger, closes
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

/* "REQUEST": for the log. */
const char *session_state_name(enum session_state state);

/* May a session go from @state to @next? A session begins in REQUEST. */
bool session_state_allows(enum session_state state, enum session_state next);

#endif
