/* SPDX-License-Identifier: BSD-3-Clause */
/* session_private.h - what session.c, session_connect.c, session_states.c and so on share */
#ifndef CONVERTD_SESSION_PRIVATE_H
#define CONVERTD_SESSION_PRIVATE_H

#include "convertd/net/downstream.h"
#include "convertd/policy/outcome.h"
#include "convertd/observe/record.h"
#include "convertd/policy/session_state.h"
#include "convertd/relay/relay.h"
#include "convertd/relay/relay_memory.h"
#include "convertd/relay/relay_watch.h"
#include "convertd/session/session.h"

#include <stdbool.h>

struct tcp_info;

/* Seconds that a peer has to take our last word before the socket is closed or reset. */
#define LINGER_SECONDS 5

/* How often RESETTING looks whether the bytes have arrived, and how many times. */
#define RESET_POLL_MS 50
#define RESET_POLLS (LINGER_SECONDS * 1000 / RESET_POLL_MS)

/* The events behind the struct: the sockets' are numbered as the relay's sides. */
enum session_event {
	SESSION_EVENT_UPSTREAM = RELAY_UPSTREAM,
	SESSION_EVENT_DOWNSTREAM = RELAY_DOWNSTREAM,
	SESSION_EVENT_DEADLINE,
	SESSION_EVENT_COUNT
};

struct session {
	struct session *prev, *next;             /* pool->sessions */
	struct session *queue_prev, *queue_next; /* pool->hungry */
	struct session_pool *pool;
	struct limits_member member; /* how it is counted */
	struct withheld_syn *withheld; /* REQUEST: what was done for the SYN of the connection, or NULL */
	struct relay relay;
	struct relay_watch watch;
	struct session *heavy_prev, *heavy_next; /* pool->heavy */
	struct relay_memory memory; /* as it was seen last, while it is in there */
	uint64_t memory_told;       /* bytes that the metrics know of */
	union sockaddr_ip client, server; /* the server's family is 0 until it is known */
	union sockaddr_ip source;         /* ours towards it, if the log wants it; family 0: not known */
	uint64_t id;
	uint64_t started_us;
	uint64_t request_us;  /* from then on: a whole request was there; 0: it isn't */
	uint64_t connect_us;  /* from that on: the server had answered; 0: it hasn't */
	uint64_t prove_by_us; /* unproven: when the client must have completed its handshake; 0: */
			      /* the kernel sees to that */
	const char *reason;   /* for the log: the outcome's text, or a more precise constant */
	uint8_t *request;     /* REQUEST: what has arrived, not yet complete */
	struct fastopen_cookie *fastopen; /* CONNECTING: the SYN has this option; what the client */
					  /* knows of the server's cookie */
	uint16_t request_len; /* bytes of it */
	uint16_t answer_len;  /* bytes of our answer, sent or not */
	uint8_t state;        /* enum session_state */
	bool queued;          /* in pool->hungry */
	bool heavy;           /* in pool->heavy */
	uint8_t rest;         /* CONNECTING: the enum session_timeout that follows its first part; 0: none */
	uint8_t reset_polls;  /* RESETTING: how often it has looked */
	uint8_t outcome;      /* enum outcome */
	uint8_t transport;    /* enum record_transport */
	uint8_t timeout;      /* enum session_timeout, of the deadline */
	uint8_t subflows, subflows_max; /* as session_look_transport() saw them */
	uint16_t reset_bytes; /* unproven, TCP: what an RST costs on the wire */
	int16_t error;        /* the code of the Error TLV that is its answer, or RECORD_NO_ERROR */
	unsigned own_generation; /* of own.h, when its server was looked at */
	uint32_t echo_left;   /* REFUSING: bytes of the client that may still come back to it */
	bool doubted;         /* that looked like a request of this protocol, and is held back for a moment */
	bool first_seen;      /* what the client sends to its server was looked at: session_place.c */
	bool fresh;           /* no event of the client's socket has been seen yet: the one that */
			      /* registering it raises is still to come, and says how it is then */
	bool syn_data;        /* data in the client's SYN was taken */
	bool quiet;           /* no line of its own at the end */
	bool unlogged;        /* at the end: it has no line, for one reason or another */
	bool confirmed;       /* the client has completed its handshake: its address is real */
	bool unproven;        /* neither that nor a cookie says so yet: see session_proof.c */
	bool hurried;         /* the deadline is for its proof, not the one that it would have */
	bool no_reset;        /* unproven, TCP: there is no room for an RST */
	bool must_prove;      /* REQUEST: it is whole, and decided about once the client is proven */
	bool error_taken;     /* its error reply is counted already */
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

/* The end of one that has to make room: its client is told, if it waits for an answer and is there. */
void session_make_room(struct session *s, enum outcome reason);

/* Does all that can be done now. The session may be gone afterwards. */
void session_advance(struct session *s);

/* Counts for the metrics what the limits count it as, which was @before. */
void session_count_class(struct session *s, enum limits_class before);

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

/*
 * session_cut() - both sockets are to be reset, as convertd ends
 * Its survivor does that, if there is one, once the bytes that are on their way have arrived.
 */
void session_cut(struct session *s);

/* ----- session_pool.c ----- */

/* More is to do than fits into this round: called again in the next, after others. */
void session_set_hungry(struct session *s);

/* Called at the end of this round, when all is known that its events say. */
void session_set_due(struct session *s);

/* Takes it out of the queue of those, if it is in there. */
void session_unqueue(struct session *s);


/* ----- session_memory.c ----- */

/* Returns 0, or -1 without memory. */
int session_memory_init(struct session_pool *pool);
void session_memory_fini(struct session_pool *pool);

/* The relay has run: it is looked at from now on, if it may hold much of the kernel's memory. */
void session_memory_note(struct session *s);

/* It ends. */
void session_memory_forget(struct session *s);

/* Both directions have ended: are so many bytes still on their way that it stays until they have arrived? */
bool session_memory_lingers(struct session *s);

/* ----- session_held.c ----- */

/* The client has connected: finds what was done for its SYN. */
void session_take_withheld(struct session *s);

/* It isn't needed. */
void session_drop_withheld(struct session *s);

/* The server's socket, which may still be connecting, or -1 with @refusal set. */
int session_open_withheld(struct session *s, struct downstream_error *refusal);

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

/* ----- session_place.c ----- */

/* The client's first bytes for its server are looked at: those behind its request, or in RELAY those to come. */
void session_look_early(struct session *s, const uint8_t *early, size_t len);
void session_look_first(struct session *s);

/* Is it to wait for what comes of a look at its server? Then its deadline is set. */
bool session_awaits_token(struct session *s);

/*
 * Has it turned out that its server is this host, which no rule opens?
 * @info: of the server's connection if that has just been made; NULL where it was looked at then
 */
bool session_leads_here(struct session *s, const struct tcp_info *info);

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

/* ----- session_proof.c ----- */

/* The client is here: has it proved its address? If not, see to what may go to it. */
void session_start_proof(struct session *s);

/* It has: by its third ACK, or by a cookie. Nothing is kept from it any more. */
void session_prove(struct session *s);

/* The session ends, proven or not. */
void session_end_proof(struct session *s);

/* The answer has @len bytes: of what may go to an unproven client it comes first, and whole or not at all. */
void session_cap_answer(struct session *s, size_t len);

/* ----- session_echo.c ----- */

/* The request for information wants what follows it back: @early of it is here already. */
void session_start_echo(struct session *s, const uint8_t *early, size_t len);

/* Takes more of it, once what was taken before is written. Returns whether that was all, or none was wanted. */
bool session_echo(struct session *s);

/* ----- session_states.c ----- */

/* The answer is our last word, if it isn't one of too many (Section 6.2.5). */
void session_refuse(struct session *s, const uint8_t *answer, size_t len, const char *reason);

/* The server can't be reached. */
void session_refuse_server(struct session *s, struct downstream_error refusal);

/* When its server was asked, as clock_now_ms(). */
uint64_t session_asked_ms(const struct session *s);

/* The connection to the server has failed with @error. */
void session_fail_server(struct session *s, int error);

/* What the state allows, with the sockets as ready as they are. */
void session_handle(struct session *s);

/* The deadline is over. */
void session_handle_deadline(struct session *s);

/* It is over for a client that has to complete its handshake. */
void session_handle_no_proof(struct session *s);

#endif
