/* SPDX-License-Identifier: BSD-3-Clause */
/* session_parts.h - struct session and the functions of its parts, for the files session_….c alone */
#ifndef SERVE_SESSION_PARTS_H
#define SERVE_SESSION_PARTS_H

#include "daemon/metrics.h"
#include "daemon/outcome.h"
#include "relay/relay.h"
#include "serve/session.h"
#include "serve/session_decision.h"

#include <stdbool.h>

/* ----- struct session, for the files of this folder alone ----- */

struct tcp_info;

/* The state of an unproven client: session_life.c. */
struct session_proof {
	uint64_t prove_by_us; /* when an MPTCP client must have completed its handshake; 0: TCP, where the kernel sees to that, or proven */
	uint16_t reset_bytes; /* TCP: the bytes of an RST on the wire */
	bool missing;         /* neither a handshake nor its request has proved the address yet */
	bool has_deadline;    /* the session's deadline is this one: session_deadline.for_proof */
	bool no_reset;        /* TCP: there is no room for an RST */
	bool awaited;         /* REQUEST: the request is whole; we judge it again when the client is proven */
};

/* The client's SYN. */
struct session_syn {
	bool data;       /* the kernel took its data */
	bool timestamps; /* the connection has timestamps: with @data this means that the SYN+ACK has confirmed the server */
	bool answered;   /* CONNECTING: the server had answered before the release */
};

/* A client that wants no response: session_request.c. */
struct session_silence {
	uint8_t reply;    /* enum judgement_reply: how the client learns the result of its request */
	uint8_t looks;    /* RELAY, needs_mptcp: how often we have looked for a fallback at the first packets */
	bool needs_mptcp; /* the client can't be served over TCP */
};

/* The kernel memory that it holds: session_pool.c. */
struct session_memory {
	struct session *prev, *next; /* pool->heavy */
	struct relay_memory seen;    /* at the last look, while it is in pool->heavy */
	uint64_t reported;           /* bytes of it that the metrics count */
	bool heavy;                  /* in pool->heavy */
};

/* The struct event of its deadline stands behind the struct: its size is known at run time only (event_get_struct_event_size()). */
struct session {
	struct session *prev, *next;             /* pool->sessions */
	struct session *queue_prev, *queue_next; /* pool->runnable */
	struct session_pool *pool;
	struct limits_member member;  /* its entry in the limits */
	struct syn_attempt *withheld; /* REQUEST: the attempts for SYNs of the connection's addresses, a list by hold.next; or NULL */
	struct relay relay;
	int registration[RELAY_ENDS]; /* of the sockets with the poller, or POLLER_NONE */
	union {
		struct relay_watch watch; /* RELAY */
		struct {                  /* REQUEST, CONNECTING */
			struct serve_dial dial;
			uint64_t dial_until_ms; /* when the deadline is over, for a dialler that has times of its own; 0: for others */
		};
	};
	struct record record; /* for the log, complete at the end: session_report.c. The server's family is 0 until it is known */
	uint64_t started_us;  /* accept(); if the SYN was withheld, its arrival */
	uint64_t request_us;  /* microseconds from started_us until the request was whole; 0: it isn't */
	uint8_t *request;     /* REQUEST: the bytes that have arrived */
	uint32_t echo_left;   /* REFUSING: bytes of the client that we may still echo */
	uint16_t request_len; /* bytes in @request */
	uint16_t answer_len;  /* bytes of our answer, sent or not */
	uint8_t state;        /* enum session_state */
	uint8_t timeout;      /* enum session_timeout of the deadline */
	uint8_t rest;         /* CONNECTING: the enum session_timeout that follows SESSION_TIMEOUT_PATIENCE; 0: none */
	uint8_t reset_polls;  /* RESETTING: number of looks by the deadline */
	struct session_proof proof;
	struct session_syn syn;
	struct session_silence silence;
	struct session_memory memory;
	bool queued;          /* in pool->runnable */
	bool fresh;           /* the client's socket has had no event yet: its registration will raise one, which tells */
			      /* the socket's state then */
	bool handshake_done;  /* the client has completed its handshake: its address is real */
	bool client_writable; /* the upstream socket may be written */
	bool client_sent;     /* CONNECTING: the client has sent something since we last looked at its socket */
	bool answered;        /* RELAY, REFUSING: the answer has been written, and in RELAY the handshake is done */
	bool error_taken;     /* the limits have counted the error in the answer already */
	bool dialling;        /* the server's socket belongs to the dialler */
	bool trusted;         /* the dialler knows that the client has proved its address */
	bool kept_alive;      /* the server's socket has SO_KEEPALIVE */
	bool mptcp;           /* the connection to the server asks for MPTCP */
	bool quiet;           /* its line in the log has level debug, as one warning stands for many */
	bool no_line;         /* set at the end: it has no line in the log */
	bool responds;        /* of the verdict, for answers */
};

/* ----- the states: session_states.c ----- */

/* Closes the session; its sockets are closed when it is freed. */
void session_close(struct session *s, enum outcome outcome);

/* Resets a session that exceeds a limit, without an answer and without a line in the log for each. */
void session_drop(struct session *s, enum outcome outcome);

/* Ends a session that has to make room. Tells a client that has connected and waits for an answer. */
void session_make_room(struct session *s, enum outcome reason);

/* Sees whether the client has completed its handshake; if so, ends the restrictions, which may end the session. */
void session_look_upstream(struct session *s);

/* Does all that the state and the sockets' readiness allow. */
void session_handle(struct session *s);

/* Handles the end of the state's deadline. */
void session_handle_deadline(struct session *s);

/* Handles the end of the time in which the client had to complete its handshake. */
void session_handle_no_proof(struct session *s);

/* ----- a session from accept() to its end: session_life.c ----- */

/* Does all that is possible now. May free the session. */
void session_advance(struct session *s);

/* The poller's callbacks for the client's and the server's socket of a session. */
void session_on_upstream(void *session, uint32_t events);
void session_on_downstream(void *session, uint32_t events);

/* ----- the queue of sessions that run in the next round, or at the end of this one ----- */

/* Queues a session with more to do than fits into this round: it runs in the next one, after the others. */
void session_run_again(struct session *s);

/* Queues the session for the end of this round, when all events of its sockets are known. */
void session_run_soon(struct session *s);

/* Takes the session out of the queue, if it is in there. */
void session_unqueue(struct session *s);

/* ----- a session's class in the limits and in the metrics ----- */

/* Updates the metrics after the limits have changed the session's class, which was @before. */
void session_count_class(struct session *s, enum limits_class before);

/* Sets the session's class in the limits and in the metrics. */
void session_set_class(struct session *s, enum limits_class class);

/* ----- a session's two sockets, their events, and its one deadline: session_socket.c ----- */

/* Returns the event of the deadline, which has its callback from the session's beginning on. */
struct event *session_deadline_event(struct session *s);

/* Registers the client's or the server's socket for all events, edge-triggered. Returns 0 or -errno. */
int session_register(struct session *s, enum relay_end end, int fd);

/* Registers the server's socket, which the dialler has made. Returns 0 or -errno. */
int session_watch_downstream(struct session *s);

/* Takes over the registration of the server's socket, with the @events so far. */
void session_adopt_downstream(struct session *s, int registration, uint32_t events);

/* Makes the kernel reset both connections at the end of this process, if the daemon has no process that outlives it. */
void session_guard_sockets(struct session *s);

/* Closes a socket, if it is open, and its registration. */
void session_close_socket(struct session *s, enum relay_end end);

/* Like session_close_socket(), with an RST, or on MPTCP with MP_FASTCLOSE. */
void session_reset_socket(struct session *s, enum relay_end end);

/*
 * session_cut() - reset both sockets, since the process ends
 * If another process has them, that resets them, after the bytes under way have arrived.
 */
void session_cut(struct session *s);

/* Returns whether the client has reset the connection; a FIN doesn't count. */
bool session_client_is_lost(const struct session *s);

/*
 * Returns whether the client has completed its handshake, and not ended the connection since. Its socket must be open. Adds its round
 * trip to the metrics.
 */
bool session_client_is_established(const struct session *s);

/* Discards the bytes that a refused client still sends. Returns false if we needn't wait for the client any more. */
bool session_drain_client(struct session *s);

/* Sets the session's deadline, or clears it if that time-out is 0. */
void session_set_deadline(struct session *s, enum session_timeout timeout);

/* Sets the deadline to @ms milliseconds from now, more than 0. */
void session_move_deadline(struct session *s, unsigned ms);

void session_clear_deadline(struct session *s);

/* ----- unproven clients: session_life.c ----- */

/* Ends all restrictions after the client has proved its address, by its third ACK or its request. */
void session_end_proof(struct session *s);

/* Ensures that an unproven client gets an answer of @len bytes whole or not at all. Keeps room for an RST, or notes that there is none. */
void session_cap_answer(struct session *s, size_t len);

/* ----- sessions whose SYN was withheld: the server's socket, or the error, exists already: session_request.c ----- */

/* Takes the attempts for a new client's SYN out of the table, if there are any. */
void session_take_withheld(struct session *s);

/* Frees the attempts that the session doesn't need, and resets their connections to the server. */
void session_drop_withheld(struct session *s);

/* ----- the request at the beginning of a session's stream: kept until it is whole, and judged ----- */

/* Returns whether the SYN+ACK has confirmed the server. The client decides by the same facts (doc/private-tlvs.md). */
bool session_request_is_confirmed(const struct session *s);

/*
 * session_request_judge() - judge the request
 * @buf, @len: all bytes that have arrived
 * @verdict: set; the caller carries it out
 * @answer: set with REQUEST_ANSWER
 * Notes the server, an exceeded limit, and this host's fault in the session. Frees the attempts for the connection's SYN unless the
 * verdict uses one, or waits for more bytes.
 */
void session_request_judge(struct session *s, const uint8_t *buf, size_t len, struct serve_verdict *verdict, struct serve_answer *answer);

/* Keeps the bytes that have arrived until more come, or the client is proven. Returns false if memory is short. */
bool session_request_keep(struct session *s, const uint8_t *buf, size_t len);

/* Copies the kept bytes to @scratch, and frees them. Returns their number. */
size_t session_request_take(struct session *s, uint8_t *scratch);

/* Queues an answer in front of all bytes for the client, and counts it. Returns false if memory is short, or if it is empty. */
bool session_queue_answer(struct session *s, const struct serve_answer *answer);

/* ----- clients that want no response ----- */

/* In RELAY: returns whether the connection of a silent client that needs Multipath TCP has fallen back to TCP. */
bool session_has_fallen_back(struct session *s);

/* ----- the echo: bytes behind a request for information return to the client, if it asks for that ----- */

/* Begins the echo of @most bytes with the @len bytes of @early, which have arrived already. */
void session_start_echo(struct session *s, uint32_t most, const uint8_t *early, size_t len);

/* Echoes more bytes, after the previous ones are written. Returns whether the echo is complete, or wasn't wanted. */
bool session_echo(struct session *s);

/* ----- connect to the server of a request ----- */

/*
 * session_connect() - connect to the server of a request
 * @verdict: REQUEST_CONNECT
 * @early, @len: the bytes that the client has sent behind its request
 * @refusal: set if 1 is returned
 * Returns 0 after asking the server and setting the deadline; 1 if the server couldn't be reached while the SYN was withheld; or -errno. On
 * failure, the session's end closes any socket that remains. The state doesn't change.
 */
int session_connect(struct session *s, const struct serve_verdict *verdict, const uint8_t *early, size_t len,
		    struct serve_refusal *refusal);

/* Sets a deadline of CONNECTING, or the time of the dialler's next step if that comes first. */
void session_set_connect_deadline(struct session *s, enum session_timeout timeout);

/* Lets the dialler go on. Returns as serve_dialler.step(); follows the dialler if it replaces the socket. */
int session_dial(struct session *s, struct tcp_info *info);

/* Returns whether the time of the dialler's next step has come, and not yet the session's deadline. */
bool session_wake_dial(struct session *s);

/* ----- a session's relay: its bytes are counted, and its end gets an outcome: session_report.c ----- */

/* Runs the relay, and counts the bytes that it carries. */
enum relay_result session_relay_run(struct session *s);

/* Sees whether anything moves. Returns OUTCOME_NONE, or the time-out of relay.h that ends the session. */
enum outcome session_relay_watch(struct session *s);

/* Returns whether bytes are under way to the peer at @end. */
bool session_relay_unsent(const struct session *s, enum relay_end end);

/* ----- the kernel memory that the sessions of one worker hold: session_pool.c ----- */

/* Watches the session from now on if it may hold much kernel memory. Call after each run of the relay. */
void session_memory_note(struct session *s);

/* Ends the watch, with the session. */
void session_memory_forget(struct session *s);

/* Returns whether a session whose directions have both ended has to stay until its many bytes under way have arrived. */
bool session_linger(struct session *s);

/* ----- a session's line in the log, and its part of the metrics: session_report.c ----- */

/* Notes how the session ends, or will. @reason: a constant more precise than the outcome's own text, or NULL */
void session_set_outcome(struct session *s, enum outcome outcome, const char *reason);

/* Notes whether the client's side is MPTCP, and its number of subflows. Its socket must still be open. */
void session_look_transport(struct session *s);

/* Notes our address towards the server for the log. The server's socket must still be open and connected. */
void session_look_source(struct session *s);

/* Returns the microseconds since accept(), or since a withheld SYN came; 1 at least, so that 0 stands for never. */
uint64_t session_age_us(const struct session *s);

/* Warns that we reset a client that exceeds a limit; one line stands for many. */
void session_report_drop(const struct session *s, enum outcome outcome);

/* Likewise for the kernel memory that it holds. The session also gets a line of its own, unless its outcome has too many. */
void session_report_memory(struct session *s);

/* Decides whether an ended session gets a line in the log. Call while its sockets are still open. */
void session_decide_line(struct session *s);

/* Writes the line, and counts the ended session. */
void session_report_end(struct session *s);

#endif
