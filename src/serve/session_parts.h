/* SPDX-License-Identifier: BSD-3-Clause */
/* session_parts.h - struct session and the functions of its parts, for the files session_….c alone */
#ifndef SERVE_SESSION_PARTS_H
#define SERVE_SESSION_PARTS_H

#include "convertd/net/downstream.h"
#include "convertd/observe/metrics.h"
#include "convertd/policy/outcome.h"
#include "relay/relay.h"
#include "relay/relay_look.h"
#include "serve/session.h"
#include "serve/session_decision.h"

#include <stdbool.h>

/* ----- struct session, for the files of this room alone ----- */

struct tcp_info;

/* While the client's address isn't proved: session_life.c. */
struct session_proof {
	uint64_t by_us;       /* when the client must have completed its handshake; 0: the kernel ends the connection otherwise */
	uint16_t reset_bytes; /* TCP: what an RST costs on the wire */
	bool missing;         /* neither a handshake nor a cookie has shown yet that the address is real */
	bool hurried;         /* the deadline is for the client's proof, and comes before that of the state */
	bool no_reset;        /* TCP: there is no room for an RST */
	bool awaited;         /* REQUEST: the request is whole, and judged again once the client is proven */
};

/* The client's SYN. */
struct session_syn {
	bool data;       /* its data was taken */
	bool timestamps; /* the connection has them: with that, its SYN+ACK has confirmed the server */
	bool far;        /* the client was known to be far when it was withheld */
	bool answered;   /* CONNECTING: the server had answered when it was released */
};

/* A client that wants no response: session_request.c. */
struct session_silence {
	uint8_t voice;    /* enum judgement_voice: how the client hears what has become of its request */
	uint8_t looks;    /* RELAY, needs_mptcp: how often the first packets were looked at for a fallback */
	bool needs_mptcp; /* it is served as Multipath TCP or not at all */
};

/* What the session's line in the log says: session_report.c. */
struct session_line {
	union sockaddr_ip source; /* this host's address towards the server; family 0: not known */
	const char *reason;       /* the outcome's text, or a constant that is more precise */
	uint8_t transport;        /* enum record_transport */
	uint8_t subflows, subflows_max; /* as session_look_transport() saw them */
	int16_t error;            /* the code of the Error TLV that is its answer, or RECORD_NO_ERROR */
	bool quiet;               /* it is of level debug, as one warning stands for many */
	bool none;                /* set at the end: there is none */
};

/* The kernel memory that it holds: session_pool.c. */
struct session_memory {
	struct session *prev, *next; /* pool->heavy */
	struct relay_memory seen;    /* at the last look, while it is in pool->heavy */
	uint64_t told;               /* bytes of it that the metrics know of */
	bool heavy;                  /* in pool->heavy */
};

/* The struct event of its deadline stands behind the struct: its size is known at run time only (event_get_struct_event_size()). */
struct session {
	struct session *prev, *next;             /* pool->sessions */
	struct session *queue_prev, *queue_next; /* pool->runnable */
	struct session_pool *pool;
	struct limits_member member;  /* what the limits count it as */
	struct syn_attempt *withheld; /* REQUEST: what was done for SYNs of the connection's addresses: a list by hold.next; or NULL */
	struct relay relay;
	int registration[RELAY_ENDS]; /* of the sockets with the poller, or POLLER_NONE */
	struct relay_watch watch;
	union sockaddr_ip client, server; /* the server's family is 0 until it is known */
	uint64_t id;
	uint64_t started_us;
	uint64_t request_us;  /* microseconds from started_us until the request was whole; 0: it isn't */
	uint64_t connect_us;  /* microseconds from then until the server had answered; 0: it hasn't */
	uint8_t *request;     /* REQUEST: what has arrived, not yet complete */
	uint32_t echo_left;   /* REFUSING: bytes of the client that may still come back to it */
	uint16_t request_len; /* bytes of it */
	uint16_t answer_len;  /* bytes of the converter's answer, sent or not */
	uint8_t state;        /* enum session_state */
	uint8_t outcome;      /* enum outcome */
	uint8_t timeout;      /* enum session_timeout: what the deadline is for */
	uint8_t rest;         /* CONNECTING: the enum session_timeout that follows its first part; 0: none does */
	uint8_t reset_polls;  /* RESETTING: how often the deadline has looked */
	struct session_proof proof;
	struct session_syn syn;
	struct session_silence silence;
	struct session_line line;
	struct session_memory memory;
	bool queued;          /* in pool->runnable */
	bool fresh;           /* the client's socket has had no event yet: the one that its registration raises is still */
			      /* to come, and says how the socket is then */
	bool confirmed;       /* the client has completed its handshake: its address is real */
	bool established;     /* the upstream socket may be written */
	bool client_said;     /* CONNECTING: the client has sent something since its socket was looked at */
	bool answered;        /* RELAY, REFUSING: the answer has been written, and in RELAY the client is confirmed */
	bool error_taken;     /* the limits have counted its Error TLV already */
	bool trusted;         /* downstream_confirm() was called for the server's socket */
	bool kept_alive;      /* downstream_keep_alive() was called */
	bool info;            /* the request had an Info TLV */
	bool mptcp;           /* the connection to the server asks for MPTCP */
};

/* ----- what a session does in each of its states ----- */

/* Closes the session; its sockets go when it is freed. */
void session_close(struct session *s, enum outcome outcome);

/* Closes the session without a word, for what exceeds a limit: by a reset, and without a line in the log for each. */
void session_drop(struct session *s, enum outcome outcome);

/* Ends a session that has to make room: its client is told, if it waits for an answer and is there. */
void session_make_room(struct session *s, enum outcome reason);

/* Looks whether the client has completed its handshake; sets confirmed and established. */
void session_look_upstream(struct session *s);

/* Does what the state allows, with the sockets as ready as they are. */
void session_handle(struct session *s);

/* Does what the state wants when the deadline is over. */
void session_handle_deadline(struct session *s);

/* Does what the state wants when the time is over in which the client had to complete its handshake. */
void session_handle_no_proof(struct session *s);

/* ----- a session from accept() to its end ----- */

/* Does all that can be done now. The session may be gone afterwards. */
void session_advance(struct session *s);

/* What the poller calls for the client's and the server's socket of a session. */
void session_on_upstream(void *session, uint32_t events);
void session_on_downstream(void *session, uint32_t events);

/* ----- the sessions of a pool that are to run: in the next round, or at the end of this one ----- */

/* Has the session run again in the next round, after the others: there is more to do than fits into this one. */
void session_run_again(struct session *s);

/* Has the session run at the end of this round, when all events of its sockets are known. */
void session_run_soon(struct session *s);

/* Takes the session out of the queue, if it is in there. */
void session_unqueue(struct session *s);

/* ----- what a session counts as: for the limits, and in the metrics ----- */

/* Tells the metrics that the limits have changed the session's class, which was @before. */
void session_count_class(struct session *s, enum limits_class before);

/* Has the limits count the session as @class from now on, and the metrics as well. */
void session_set_class(struct session *s, enum limits_class class);

/* ----- a session's two sockets, their events, and its one deadline ----- */

/* The event of the deadline; it has its callback from the session's beginning on. */
struct event *session_deadline_event(struct session *s);

/* Registers the client's or the server's socket for all its events, edge-triggered. Returns 0 or -errno. */
int session_register(struct session *s, enum relay_end end, int fd);

/* Takes over the server's socket and registers it. Returns 0 or -errno. */
int session_watch_downstream(struct session *s, int fd);

/* Takes over the server's socket with its registration, and what that has told already. */
void session_adopt_downstream(struct session *s, int fd, int registration, uint32_t events);

/* Closes a socket, if it is open, and forgets it; its events end with it. */
void session_close_socket(struct session *s, enum relay_end end);

/* As session_close_socket(), with an RST, or on MPTCP with MP_FASTCLOSE. */
void session_reset_socket(struct session *s, enum relay_end end);

/*
 * session_cut() - resets both sockets, as convertd ends
 * If convertd has a survivor, that resets them, once the bytes that are on their way have arrived.
 */
void session_cut(struct session *s);

/* Has the client reset the connection? Its FIN doesn't count. */
bool session_client_is_lost(const struct session *s);

/* Has the client completed its handshake, and not ended the connection since? Its socket must be open. If so, far_clients.h is told. */
bool session_client_is_established(const struct session *s);

/* Reads and throws away what a client still sends that has been refused. Returns false where there is nobody to wait for. */
bool session_drain_client(struct session *s);

/* Sets the session's deadline, or clears it where there is no such time-out. */
void session_set_deadline(struct session *s, enum session_timeout timeout);

/* session_put_off_deadline() - have the deadline that is over be in @ms milliseconds more, which aren't 0 */
void session_put_off_deadline(struct session *s, unsigned ms);

void session_clear_deadline(struct session *s);

/* ----- sessions whose client hasn't proved yet that it is where it says ----- */

/* The client has proved its address, by its third ACK or by a cookie: nothing is kept from it any more. */
void session_end_proof(struct session *s);

/* The answer has @len bytes: of what may go to an unproven client it comes first, and whole or not at all. */
void session_cap_answer(struct session *s, size_t len);

/* ----- sessions whose SYN was withheld: the server's socket, or the error, is there already ----- */

/* The client has connected: takes what was done for its SYN out of the table, if there is something. */
void session_take_withheld(struct session *s);

/* Undoes what was done for the SYN and isn't needed: the connection to the server is reset. */
void session_drop_withheld(struct session *s);

/* ----- the request that a session's stream begins with: kept until it is whole, and judged ----- */

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

/* ----- what the converter itself says to a client: queued, and counted ----- */

/* Queues the answer in front of all that goes to the client. Returns false without memory, or if @len is 0. */
bool session_queue_answer(struct session *s, const uint8_t *answer, size_t len);

/* What an answer means for a session that can't be told it. */
enum outcome session_answer_outcome(const uint8_t *answer, size_t len);

/* Notes and counts the error that the converter's last word says. Returns what it means for the session. */
enum outcome session_read_answer(struct session *s, const uint8_t *answer, size_t len);

/* ----- clients that want no response ----- */

/* In RELAY: has the connection of a silent client, which needs Multipath TCP, become one of TCP? */
bool session_has_fallen_back(struct session *s);

/* ----- what a client sends behind a request for information comes back, if it asks for that ----- */

/* The request for information wants what follows it back: @early of it is here already. */
void session_start_echo(struct session *s, const uint8_t *early, size_t len);

/* Takes more of it, once what was taken before is written. Returns whether that was all, or none was wanted. */
bool session_echo(struct session *s);

/* ----- ask the server that a request names ----- */

struct request_decision;

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

/* The server has answered: queues the response, with the TCP options of its SYN+ACK. Returns false without memory. */
bool session_queue_response(struct session *s, const struct tcp_info *info);

/* ----- a session's relay: what it carries is counted, and what its end is called ----- */

/* Runs the relay, and counts the bytes that it carries. */
enum relay_result session_relay_run(struct session *s);

/* Looks whether anything moves. Returns OUTCOME_NONE, or why the session ends: a time-out of relay_look.h. */
enum outcome session_relay_watch(struct session *s);

/* Are bytes on their way to the peer at @end? */
bool session_relay_unsent(const struct session *s, enum relay_end end);

/* ----- the kernel memory that sessions of one worker hold: who is looked at, and when ----- */

/* The relay has run: the session is looked at from now on, if it may hold much of the kernel's memory. */
void session_memory_note(struct session *s);

/* The session ends: it is looked at no more. */
void session_memory_forget(struct session *s);

/* Both directions have ended: are so many bytes still on their way that the session stays until they have arrived? */
bool session_memory_lingers(struct session *s);

/* ----- what a session leaves behind: its line in the log, its part of the metrics ----- */

/* Notes how the session ends, or will. @reason: a constant that says it better than the outcome's own text, or NULL */
void session_set_outcome(struct session *s, enum outcome outcome, const char *reason);

/* Notes whether the client's side is MPTCP and how many subflows it has, while its socket is open. */
void session_look_transport(struct session *s);

/* Notes our address towards the server, for a line in the log, while its socket is open and connected. */
void session_look_source(struct session *s);

/* Microseconds since the client was accepted; 1 at least, so that 0 stands for never. */
uint64_t session_age_us(const struct session *s);

/* Bytes carried from that end to the other, without the converter's own answer. */
uint64_t session_relayed(const struct session *s, enum relay_end from);

/* Warns that a client is reset for what exceeds a limit: one line stands for many. */
void session_report_drop(const struct session *s, enum outcome outcome);

/* Likewise for the kernel memory that it holds. The session has a line of its own as well, if its outcome hasn't too many. */
void session_report_memory(struct session *s);

/* Decides whether the session has a line in the log; it has ended, and its sockets are still open. */
void session_decide_line(struct session *s);

/* Writes the line, and counts the session among those that have ended. */
void session_report_end(const struct session *s);

#endif
