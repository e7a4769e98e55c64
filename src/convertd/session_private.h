/* SPDX-License-Identifier: BSD-3-Clause */
/* session_private.h - what session.c, session_connect.c, session_states.c and so on share */
#ifndef CONVERTD_SESSION_PRIVATE_H
#define CONVERTD_SESSION_PRIVATE_H

#include "convertd/downstream.h"
#include "convertd/outcome.h"
#include "convertd/record.h"
#include "convertd/downstream.h"
#include "convertd/relay.h"
#include "convertd/relay_watch.h"
#include "convertd/session.h"

#include <stdbool.h>

struct tcp_info;

/* Seconds that a peer has to take our last word before the socket is closed or reset. */
#define LINGER_SECONDS 5

/* How often RESETTING looks whether the bytes have arrived, and how many times. */
#define RESET_POLL_MS 50
#define RESET_POLLS (LINGER_SECONDS * 1000 / RESET_POLL_MS)

/*
 * REQUEST     The client is connected. Its bytes are collected until they make a request or
 *             can't become one. The client's end or the request deadline close without a word.
 * CONNECTING  The server was asked. Nothing more is read from the client: it may have sent its
 *             FIN (a half-close is a client's right), but a reset abandons the server.
 *             The server's answer, or the connect deadline, decides.
 * RELAY       The server was reached. The answer, then bytes, go both ways until both directions
 *             have ended or one socket fails, which resets the other. The deadline is for the
 *             client's third ACK and the answer to be taken by the kernel; from then on it looks
 *             now and then whether anything moves (relay_watch.h). With one socket failed it is
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

/* The events behind the struct: the sockets' are numbered as the relay's sides. */
enum session_event {
	SESSION_EVENT_UPSTREAM = RELAY_UPSTREAM,
	SESSION_EVENT_DOWNSTREAM = RELAY_DOWNSTREAM,
	SESSION_EVENT_DEADLINE,
	SESSION_EVENT_COUNT
};

/* Where a session is queued: it is in one at most. */
enum session_queue {
	SESSION_QUEUE_NONE,
	SESSION_QUEUE_WAITING,
	SESSION_QUEUE_HUNGRY, /* or due */
};

struct session {
	struct session *prev, *next;             /* pool->sessions */
	struct session *queue_prev, *queue_next; /* pool->waiting or pool->hungry */
	struct session_pool *pool;
	struct limits_client *account; /* whose limits it counts for */
	struct held_syn *held;         /* REQUEST: what was done for its SYN, or NULL */
	struct relay relay;
	struct relay_watch watch;
	union sockaddr_ip client, server; /* the server's family is 0 until it is known */
	union sockaddr_ip source;         /* ours towards it, if the log wants it; family 0: not known */
	uint64_t id;
	uint64_t started_us;
	uint64_t request_us;  /* from then on: a whole request was there; 0: it isn't */
	uint64_t connect_us;  /* from that on: the server had answered; 0: it hasn't */
	const char *reason;   /* for the log: the outcome's text, or a more precise constant */
	uint8_t *request;     /* REQUEST: what has arrived, not yet complete */
	struct fastopen_cookie *fastopen; /* CONNECTING: the SYN has this option; what the client */
					  /* knows of the server's cookie */
	uint16_t request_len; /* bytes of it */
	uint16_t answer_len;  /* bytes of our answer, sent or not */
	uint8_t state;        /* enum session_state */
	uint8_t queue;        /* enum session_queue */
	uint8_t class;        /* enum limits_class */
	uint8_t reset_polls;  /* RESETTING: how often it has looked */
	uint8_t outcome;      /* enum outcome */
	uint8_t transport;    /* enum record_transport */
	uint8_t subflows, subflows_max; /* as session_look_transport() saw them */
	int16_t error;        /* the code of the Error TLV that is its answer, or RECORD_NO_ERROR */
	bool fresh;           /* no event of the client's socket has been seen yet: the one that */
			      /* registering it raises is still to come, and says how it is then */
	bool syn_data;        /* data in the client's SYN was taken */
	bool quiet;           /* no line of its own at the end */
	bool unlogged;        /* at the end: it has no line, for one reason or another */
	bool confirmed;       /* the client has completed its handshake: its address is real */
	bool client_said;     /* CONNECTING: the client sent something since it was looked at */
	bool established;     /* the upstream socket may be written */
	bool trusted;         /* the server's socket was told that it is confirmed */
	bool answered;        /* RELAY, REFUSING: the answer has been written, and in RELAY */
			      /* the client is confirmed */
	bool info;            /* the request had an Info TLV */
	bool mptcp;           /* MPTCP is wanted towards the server */
};

/* ----- session.c ----- */

/* Asserts that the step is legal. */
void session_set_state(struct session *s, enum session_state state);

/* How it ends, or will; @reason, a constant, says it better than the outcome's own text, or NULL. */
void session_set_outcome(struct session *s, enum outcome outcome, const char *reason);

/* The end. */
void session_close(struct session *s, enum outcome outcome);

/* The end without a word, for what exceeds a limit: a reset, and no line in the log for each. */
void session_drop(struct session *s, enum outcome outcome);

/* Does all that can be done now. The session may be gone afterwards. */
void session_advance(struct session *s);

/* What it is counted as from now on. */
void session_set_class(struct session *s, enum limits_class class);

/* Looks whether the client has completed its handshake; sets confirmed and established. */
void session_look_upstream(struct session *s);

/* Sets the one deadline, or clears it where there is no such time-out. */
void session_set_deadline(struct session *s, enum session_timeout timeout);
void session_clear_deadline(struct session *s);

/* Takes over the server's socket and watches it. Returns 0 or -ENOMEM. */
int session_watch_downstream(struct session *s, int fd);

/* Closes a socket, if it is open, and forgets it; its events end with it. */
void session_close_socket(struct session *s, enum relay_end end);

/* As session_close_socket(), with an RST, or on MPTCP with MP_FASTCLOSE. */
void session_reset_socket(struct session *s, enum relay_end end);

/* ----- session_pool.c ----- */

/* The client is silent in REQUEST: the first to go if there are too many. */
void session_set_waiting(struct session *s);

/* More is to do than fits into this round: called again in the next, after others. */
void session_set_hungry(struct session *s);

/* Called at the end of this round, when all is known that its events say. */
void session_set_due(struct session *s);

/* Takes it out of its queue, if it is in one. */
void session_unqueue(struct session *s);

/*
 * session_pool_make_room() - let a session that waits for its client's bytes give way to @newcomer
 * Only where pending sessions are too many in all. Requests come in the SYN as a rule, and such
 * sessions never wait: a flood of silent connections pushes itself out.
 */
void session_pool_make_room(struct session_pool *pool, const struct session *newcomer);
/* ----- session_held.c ----- */

/* The client has connected: finds what was done for its SYN. */
void session_take_held(struct session *s);

/* It isn't needed. */
void session_drop_held(struct session *s);

/* Was it done for this request? It was admitted then. */
bool session_is_held(const struct session *s, const struct request_decision *decision);

/* The server's socket, which may still be connecting, or -1 with @refusal set. */
int session_open_held(struct session *s, struct downstream_error *refusal);

/* ----- session_connect.c ----- */

/* Microseconds since it was accepted; 1 at least, so that 0 stands for never. */
uint64_t session_age_us(const struct session *s);

/*
 * session_connect() - ask the server that a request names
 * @decision: REQUEST_CONNECT
 * @early, @len: what the client has sent behind its request
 */
void session_connect(struct session *s, const struct request_decision *decision,
		     const uint8_t *early, size_t len);

/* The server has answered: the answer's TCP options. Returns bytes written to @out. */
size_t session_server_options(struct session *s, const struct tcp_info *info, uint8_t *out);

/* ----- session_report.c ----- */

/* Notes whether the client's side is MPTCP and how many subflows it has, while its socket is open. */
void session_look_transport(struct session *s);

/* Bytes carried from that end to the other, without the converter's own answer. */
uint64_t session_relayed(const struct session *s, enum relay_end from);

/* The session has ended, its sockets are still open: decides whether it has a line in the log. */
void session_decide_line(struct session *s);

/* Notes our address towards the server, for a line in the log, while its socket is open and connected. */
void session_look_source(struct session *s);

/* The session has ended: into the log and the metrics. */
void session_report_end(const struct session *s);

/* ----- session_states.c ----- */

/* The answer is our last word, if it isn't one of too many (Section 6.2.5). */
void session_refuse(struct session *s, const uint8_t *answer, size_t len, const char *reason);

/* The server can't be reached. */
void session_refuse_server(struct session *s, struct downstream_error refusal);

/* The connection to the server has failed with @error. */
void session_fail_server(struct session *s, int error);

/* What the state allows, with the sockets as ready as they are. */
void session_handle(struct session *s);

/* The deadline is over. */
void session_handle_deadline(struct session *s);

#endif
