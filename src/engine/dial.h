/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dial.h - one connection to a server by way of a converter, for all front ends
 *
 * A front end catches a connect() call, fills in a struct dial, and calls dial_next(). From then on it calls dial_step() whenever something
 * happens on the socket, and at the time that it got by ops->wake(), until one of them returns an end. The engine reaches the socket
 * through struct dial_ops and src/host alone. One thread at a time may be in a dial. README.md describes the whole.
 */
#ifndef ENGINE_DIAL_H
#define ENGINE_DIAL_H

#include "client/converters.h"
#include "client/handshake.h"
#include "common/tcp.h"
#include "engine/path_start.h"

#include <stdatomic.h>
#include <sys/uio.h>

struct tcp_info;

/* One try at one converter, or at the server itself. Each new attempt sets all of it in one assignment. */
struct attempt {
	union sockaddr_ip addr; /* the SYN's destination, in the form that the socket takes */
	uint8_t converter;      /* index of the converter that was asked */
	enum ask_way way;       /* the way of asking */
	bool direct;            /* the SYN goes to the server itself, without a request */
	struct handshake_ask ask; /* the contents of the request, but for cookie and over_mptcp, which dial_ask() sets */
	bool cookie_asked;      /* the converter has demanded a cookie; we don't comply a second time */
	uint8_t cookie_number;  /* the number of the cookie in the request: converters_cookie() */
	bool syn_data;          /* the SYN carries the request */
	bool want_output;       /* part of the message is unsent */
	bool synack_due;        /* the SYN+ACK will say whether Multipath TCP gets through */
	bool silence_due;       /* the SYN+ACK will say whether there is a response */
	bool confirmable;       /* the SYN+ACK may say that the server was reached */
	bool answered;          /* the SYN was answered, and we noted the round trip of its path */
	bool path_asked;        /* we have asked whether the path works: path_start_ask() */
	bool repeated;          /* the attempt repeats one that was refused, over the same path */
	bool woke_early;        /* the socket was readable before all awaited bytes were there */
	uint16_t withheld_ms;   /* the longest time, in ms, for which the converter withholds SYNs */
	uint16_t request_len;   /* bytes of the request */
	uint16_t sent;          /* bytes of request and early data that the kernel has taken */
	uint16_t awaited;       /* awaited bytes of the response, once a part of it has come; 0: no part has */
	uint16_t local_port;    /* source port of the SYN if other processes may follow it, in network byte order; 0: they may not */
	int64_t ends;           /* CLOCK_MONOTONIC in ns, like all below: the end of CONVERT_TIMEOUT */
	int64_t wake_at;        /* when to look at the converter; 0: never */
	int64_t keepalive_since; /* when keepalive began to probe the converter; 0: it doesn't */
	int64_t fallback_syn_at; /* when a SYN was sent whose loss of Multipath TCP isn't noted yet; 0: there is none */
};

struct dial {
	const struct dial_ops *ops;
	/* set once by the front end */
	union sockaddr_ip server;
	int64_t started;         /* CLOCK_MONOTONIC in ns */
	union sockaddr_ip client; /* the client, for the note; AF_UNSPEC: this process, or the traced program */
	/* set by the front end before each call, and by its operations when they replace the socket */
	int fd;                  /* the socket */
	bool mptcp;              /* the socket is a Multipath TCP one */
	bool wrote;              /* the program has sent bytes of which there is no copy, so no other converter can be asked */
	bool may_confirm;        /* the front end may report the server as reached before the response is off the stream */
	const uint8_t *early;    /* the program's bytes that follow the request */
	size_t early_len;
	/* the engine's */
	_Atomic uint32_t tried;  /* a bit for each converter that has failed */
	bool confirmed;          /* the SYN+ACK has confirmed the server, and the response is still to come */
	const char *direct_reason; /* why the connection goes directly, a static text; NULL: no reason is noted. Front ends set it, too */
	struct path_start start;
	struct attempt attempt;
};

/* The permitted uses of a socket: dial_ops.allows(). */
enum dial_use {
	DIAL_USE_MPTCP, /* Multipath TCP */
	DIAL_USE_BLIND, /* a blind request, since nobody could take a response off the stream */
};

/* The engine's operations on a socket. None blocks or calls the engine. Those that return int return 0 or -errno. */
struct dial_ops {
	struct converters_query (*query)(const struct dial *dial); /* returns the converters that may be asked; with @tried */
	bool (*allows)(struct dial *dial, enum dial_use use);

	/* Optional: returns a random number by which the converter recognizes a repeated blind request; 0: none. */
	uint64_t (*repeat_key)(void);

	/* Makes the socket one that can be connected to @to, over Multipath TCP if @mptcp, and converts @to to the socket's form. Sets
	   dial->mptcp: is it a Multipath TCP socket now? */
	int (*fit)(struct dial *dial, union sockaddr_ip *to, bool mptcp);
	/* Before each SYN: prepares the socket, hides the connecting from the program, and binds the socket (path_start_bind()). */
	int (*prepare)(struct dial *dial);
	/* Connects to @to. Returns 0 if the SYN is on its way. */
	int (*connect)(struct dial *dial, const union sockaddr_ip *to);
	/* Optional: defers the SYN until the program's first bytes (TCP_FASTOPEN_CONNECT). 0: it waits; 1: it can't; -EINPROGRESS: sent. */
	int (*defer)(struct dial *dial, const union sockaddr_ip *to);
	/* Sends as much as it can, in the SYN to @to unless NULL. Returns the bytes sent, or -errno; -EOPNOTSUPP: not in the SYN. */
	ssize_t (*send)(struct dial *dial, const struct iovec iov[static 2], const union sockaddr_ip *to);
	/* The attempt has begun or failed: from now on the front end handles the socket's events. */
	void (*begun)(struct dial *dial);

	/* Optional: returns SO_COOKIE, for the note about the connection (client/notes.h). */
	uint64_t (*cookie)(const struct dial *dial);
	/* Gets TCP_INFO; for an MPTCP socket that of its first subflow. All zero if the kernel has none. */
	void (*info)(struct dial *dial, struct tcp_info *out);
	/* Has the connected Multipath TCP socket fallen back to TCP? */
	bool (*fell_back)(struct dial *dial);
	/* Returns SO_ERROR, a positive errno, once. */
	int (*error)(struct dial *dial);
	/* Reads without taking. With @ended: reads all that has come, and sets whether the end of the stream follows. Bytes or -errno. */
	ssize_t (*peek)(struct dial *dial, uint8_t *buffer, size_t size, bool *ended);
	/* Takes @bytes off the stream. Returns false if the kernel gives fewer. */
	bool (*take)(struct dial *dial, size_t bytes);
	/* Sets keepalive to probe the peer each @seconds, at once if that time is over. Returns whether it does. */
	bool (*keepalive)(struct dial *dial, int seconds);

	/* Waits for other events than before: dial_wants_output() or attempt.awaited has changed. */
	void (*watch)(struct dial *dial);
	/* Calls dial_step() at @at, CLOCK_MONOTONIC in ns; 0: at no time. */
	void (*wake)(struct dial *dial, int64_t at);
	/* Ends the attempt, by a reset if need be. Then the socket can be connected again, and has the program's options. */
	void (*disconnect)(struct dial *dial);
};

/* Bytes of early data that a front end keeps: more than a SYN can carry. */
#define DIAL_EARLY_MAX 4096u

/* The state of a dial. */
enum dial_state {
	DIAL_IN_PROGRESS, /* this attempt, or a new one, is in progress */
	DIAL_DEFERRED,    /* the SYN waits for the program's first bytes */
	DIAL_RESOLVING,   /* resolve a converter's name first, then call dial_resolved() */
	DIAL_CONFIRMED,   /* the SYN+ACK has confirmed the server; returned once, the attempt continues */
	DIAL_REACHED,     /* the server was reached, and the stream is the program's */
	DIAL_REFUSED,     /* from dial_next() only: no converter can be asked; call dial_refused() */
	DIAL_DIRECT,      /* connect to the server directly; the socket isn't connected */
	DIAL_FAILED,      /* the program gets dial_end.error */
	DIAL_BLIND,       /* a blind request failed; dial_anew() may make it again, not blindly */
};

struct dial_end {
	int error;                   /* a positive errno: FAILED, BLIND */
	const char *reason;          /* static, for the log: REFUSED, DIRECT, FAILED, BLIND */
	enum ask_way way;            /* BLIND: the way of asking to use next */
	enum policy_verdict verdict; /* REFUSED: POLICY_CONVERT if it should have been converted */
	bool told;                   /* FAILED: the converter has reported the server's failure */
};

/*
 * dial_next() - ask the next converter
 * @defer: let the SYN wait for the program's first bytes, if possible
 * Returns IN_PROGRESS, DEFERRED, RESOLVING or REFUSED.
 */
enum dial_state dial_next(struct dial *dial, bool defer, struct dial_end *end);

/*
 * dial_refused() - no converter could be asked, for the reason in @end: connect directly, or not at all (CONVERT_FALLBACK=none)?
 * Returns DIRECT or FAILED, and writes it into the log.
 */
enum dial_state dial_refused(struct dial *dial, struct dial_end *end);

/* dial_resolved() - go on after the resolver has finished. Returns as dial_next(), but DIRECT or FAILED instead of REFUSED. */
enum dial_state dial_resolved(struct dial *dial, struct dial_end *end);

/* dial_step() - take all possible steps. Returns any state but DEFERRED and REFUSED. */
enum dial_state dial_step(struct dial *dial, struct dial_end *end);

/* dial_failed() - go on after the kernel has reported an error for the socket: that of ops->error(), or else @error */
enum dial_state dial_failed(struct dial *dial, int error, struct dial_end *end);

/*
 * dial_blame_silence() - let the converter rest if it is to blame for an unanswered SYN; call it before the front end ends the attempt
 * Blames nobody for a SYN that was sent less than half of CONVERT_TIMEOUT ago.
 */
void dial_blame_silence(struct dial *dial);

/* dial_anew() - ask the same converter anew by @way, over another socket if @way needs one. Call it with an unconnected socket. */
enum dial_state dial_anew(struct dial *dial, enum ask_way way, struct dial_end *end);

/* dial_send_deferred() - send a deferred SYN, with request and early data. Returns 0, or -errno for dial_failed(). */
int dial_send_deferred(struct dial *dial);

/* dial_send_rest() - send the rest of request and early data after the handshake. Returns 0, -EAGAIN or another -errno. */
int dial_send_rest(struct dial *dial);

/*
 * dial_blindly() - ask the last attempt's converter again, by a blind request
 * Call it with an unconnected socket. Returns false, with nothing in progress, if that is impossible.
 */
bool dial_blindly(struct dial *dial);

/* dial_stop() - end the dial: its path is no longer watched */
void dial_stop(struct dial *dial);

/* Returns the contents of the request. */
struct handshake_ask dial_ask(const struct dial *dial);

/* Writes the whole message: request and early data. Returns its length, -ENOBUFS or another -errno. */
ssize_t dial_message(const struct dial *dial, uint8_t *out, size_t size);

/* May the request go into the SYN: ask_way_syn_data()? */
bool dial_wants_syn_data(struct dial *dial);

/* Writes "SERVER: VERDICTDETAIL after MS ms" into the log. */
void dial_log(const struct dial *dial, const char *verdict, const char *detail);

/* The same for a connection that a converter has made. */
void dial_log_converted(const struct dial *dial, const char *detail);

/* The same for a connection that goes directly after all. @reason: a static text, kept as direct_reason for dial_note_direct() */
void dial_log_direct(struct dial *dial, bool converter_fails, const char *reason);

/* Notes for "convertize status" how the connection began. The socket is the one that the program keeps. */
void dial_note(const struct dial *dial);

/* Notes that the connection goes to the server directly, for direct_reason; does nothing without a reason. */
void dial_note_direct(const struct dial *dial);

/* Is there work as soon as the socket is writable? */
static inline bool dial_wants_output(const struct dial *dial)
{
	const struct attempt *attempt = &dial->attempt;

	return attempt->want_output || attempt->synack_due || attempt->confirmable || attempt->silence_due;
}

#endif
