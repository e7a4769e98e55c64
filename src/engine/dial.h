/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dial.h - one connection to a server by way of a converter, whichever front end makes it
 *
 * A front end catches a connect() call, fills in a struct dial, and calls dial_next(). From then on it calls dial_step() whenever something
 * happens on the socket or the time of ops->wake() has come, until one of them returns an end. What the engine does to a socket goes
 * through struct dial_ops; README.md has the whole of it. One thread at a time may be in a dial.
 */
#ifndef ENGINE_DIAL_H
#define ENGINE_DIAL_H

#include "client/converters.h"
#include "client/handshake.h"
#include "client/ask_way.h"
#include "engine/host.h"
#include "engine/path_start.h"

#include <stdatomic.h>
#include <sys/uio.h>

struct tcp_info;

/* tcpi_state, whose values the kernel's headers don't define beside struct tcp_info (include/net/tcp_states.h). */
#define TCPINFO_UNKNOWN 0
#define TCPINFO_ESTABLISHED 1
#define TCPINFO_SYN_SENT 2
#define TCPINFO_CLOSE 7

/* One try at one converter, or at the server itself. Reset in one assignment by what begins the next one. */
struct attempt {
	union sockaddr_ip addr; /* where the SYN went, in the form that the socket takes */
	uint8_t converter;      /* index of the converter that was asked */
	enum ask_way way;         /* how it is asked */
	bool direct;            /* it is the server itself: there is no request */
	bool ask_info;          /* the request asks what the converter supports */
	bool ask_mptcp;         /* the request asks for Multipath TCP towards the server */
	bool ask_silent;        /* the request is a silent one: no response where the SYN+ACK says it all (doc/private-tlvs.md) */
	bool ask_blind;         /* and a blind one: no response in any case */
	bool cookie_asked;      /* the converter wanted a cookie once: not a second time */
	uint8_t cookie_number;  /* of the cookie in the request: converters_cookie() */
	uint64_t number;        /* a random one, by which a converter knows a blind request that is made again; 0: none */
	bool syn_data;          /* the request was put into the SYN */
	bool want_output;       /* a part of the message is still unsent */
	bool synack_due;        /* the SYN+ACK will say whether Multipath TCP gets through */
	bool silence_due;       /* the SYN+ACK will say whether there is a response */
	bool confirmable;       /* the SYN+ACK may say that the server was reached */
	bool answered;          /* the SYN was, and the round trip of its path is noted */
	bool in_vain;           /* the socket was readable before the bytes were there that were waited for */
	uint16_t hold_ms;       /* the request says that its SYN may be withheld for so long at most, in milliseconds; 0: it says nothing */
	uint16_t withheld_ms;   /* the converter withholds SYNs for so long at most, in milliseconds */
	uint16_t request_len;   /* bytes of the request */
	uint16_t sent;          /* bytes of request and early data that the kernel has taken */
	uint16_t awaited;       /* bytes of the response that are waited for, now that a part of it has come; 0: none has */
	uint16_t local_port;    /* of the SYN that other processes may follow, network byte order; 0: they may not */
	int64_t ends;           /* CLOCK_MONOTONIC in ns, as all below: when CONVERT_TIMEOUT is over */
	int64_t wake_at;        /* when the converter is to be looked at; 0: never */
	int64_t probing_since;  /* when keepalive began to ask the converter; 0: it doesn't */
};

struct dial {
	const struct dial_ops *ops;
	/* what the front end says, once */
	union sockaddr_ip server;
	int64_t started;         /* CLOCK_MONOTONIC in ns */
	/* what the front end says anew before each call */
	bool mptcp;              /* the socket is a Multipath TCP one */
	bool wrote;              /* the program has sent bytes of which there is no copy: nobody else can be asked */
	bool may_confirm;        /* the program may be told of the server before the response was taken off the stream */
	const uint8_t *early;    /* bytes of the program's that follow the request */
	size_t early_len;
	/* the engine's */
	_Atomic uint32_t tried;  /* a bit for each converter that has failed */
	bool confirmed;          /* the SYN+ACK has confirmed the server, and the response is still to come */
	struct path_start start;
	struct attempt attempt;
};

/* What a socket may be used for: dial_ops.allows(). */
enum dial_use {
	DIAL_USE_MPTCP, /* Multipath TCP */
	DIAL_USE_BLIND, /* a blind request, since nobody would be there to take a response off */
	DIAL_USE_PATHS, /* several paths: paths_may_be_several(). Asked where it matters only */
};

/* What the engine does to a socket. None of these blocks, and none calls the engine. They return 0 or -errno where they return int. */
struct dial_ops {
	struct converters_query (*query)(const struct dial *dial); /* the converters that may be asked; with @tried */
	bool (*allows)(struct dial *dial, enum dial_use use);

	/* Optional: a random number, by which a blind request that is made again is known; 0: it isn't. */
	uint64_t (*number)(void);

	/* Makes the socket one that can be connected to @to, which is put into its form, over Multipath TCP if @mptcp. dial->mptcp says
	   whether that was had. */
	int (*fit)(struct dial *dial, union sockaddr_ip *to, bool mptcp);
	/* A SYN is about to be sent: prepares the socket, sees to it that the program notices nothing, and binds it (path_start_bind()). */
	int (*prepare)(struct dial *dial);
	/* Connects to @to. 0: the SYN is on its way. */
	int (*connect)(struct dial *dial, const union sockaddr_ip *to);
	/* Optional: has the SYN wait for the program's first bytes (TCP_FASTOPEN_CONNECT). 0: it waits; 1: it can't; -EINPROGRESS: it has gone. */
	int (*hold)(struct dial *dial, const union sockaddr_ip *to);
	/* Sends as much as it can, with the SYN to @to if that isn't NULL. Returns how many bytes, or -errno; -EOPNOTSUPP: not with the SYN. */
	ssize_t (*send)(struct dial *dial, const struct iovec iov[static 2], const union sockaddr_ip *to);
	/* The attempt has begun, or has failed to: events are looked at from now on. */
	void (*begun)(struct dial *dial);

	/* TCP_INFO, of an MPTCP socket its first subflow's; all zero where the kernel says nothing. */
	void (*info)(struct dial *dial, struct tcp_info *out);
	/* Is the Multipath TCP socket, connected by now, in truth TCP? */
	bool (*fell_back)(struct dial *dial);
	/* SO_ERROR: a positive errno, once. */
	int (*error)(struct dial *dial);
	/* Reads without taking. With @ended: all that has come, and whether the peer's end of the stream follows. Bytes or -errno. */
	ssize_t (*peek)(struct dial *dial, uint8_t *buffer, size_t size, bool *ended);
	/* Takes so many bytes off the stream. Returns false if the kernel gives fewer. */
	bool (*take)(struct dial *dial, size_t bytes);
	/* Has keepalive ask the peer each @seconds, at once if that time is over. Returns whether it does. */
	bool (*probe)(struct dial *dial, int seconds);

	/* What is waited for has changed: dial_wants_output(), attempt.awaited. */
	void (*watch)(struct dial *dial);
	/* Calls dial_step() at @at, CLOCK_MONOTONIC in ns; 0: not for the sake of time. */
	void (*wake)(struct dial *dial, int64_t at);
	/* Ends the attempt, by a reset if need be: the socket can be connected again, and its options are the program's. */
	void (*disconnect)(struct dial *dial);
};

/* How far a dial has come. */
enum dial_state {
	DIAL_ON,        /* the attempt, or another one that has begun, goes on */
	DIAL_HELD,      /* the SYN waits for the program's first bytes */
	DIAL_RESOLVING, /* a converter's name has to be resolved first; then dial_resolved() */
	DIAL_CONFIRMED, /* the SYN+ACK has confirmed the server: once, and the attempt goes on */
	DIAL_REACHED,   /* the server was reached, and the stream is the program's */
	DIAL_REFUSED,   /* of dial_next() alone: no converter can be asked, dial_refused() says what to do */
	DIAL_DIRECT,    /* the server is to be connected to directly; the socket isn't connected */
	DIAL_FAILED,    /* the program gets dial_end.error */
	DIAL_BLIND,     /* a blind request has come to nothing; dial_anew() may make it again, not blindly */
};

struct dial_end {
	int error;          /* a positive errno: FAILED, BLIND */
	const char *reason; /* static, for the log: REFUSED, DIRECT, FAILED, BLIND */
	enum ask_way way;     /* BLIND: how to ask next */
	enum policy_verdict verdict; /* REFUSED: POLICY_CONVERT if it should have been converted */
	bool told;          /* FAILED: the converter has told of the server's failure */
};

/*
 * dial_next() - ask the next converter that can be asked
 * @hold: let the SYN wait for the program's first bytes, if that can be
 * Returns ON, HELD, RESOLVING or REFUSED.
 */
enum dial_state dial_next(struct dial *dial, bool hold, struct dial_end *end);

/*
 * dial_refused() - no converter could be asked, for what @end says: directly, or not at all (CONVERT_FALLBACK=none)?
 * Returns DIRECT or FAILED, and tells the log.
 */
enum dial_state dial_refused(const struct dial *dial, struct dial_end *end);

/* dial_resolved() - a converter's name was resolved, as far as it can be: likewise, or ON */
enum dial_state dial_resolved(struct dial *dial, struct dial_end *end);

/* dial_step() - take the steps that are possible. Each state but HELD and REFUSED may be returned. */
enum dial_state dial_step(struct dial *dial, struct dial_end *end);

/* dial_failed() - goes on after the kernel has reported @error for the socket, or another one: ops->error() is asked first */
enum dial_state dial_failed(struct dial *dial, int error, struct dial_end *end);

/* dial_anew() - ask the same converter anew by @way, over another socket where that takes one. The socket isn't connected. */
enum dial_state dial_anew(struct dial *dial, enum ask_way way, struct dial_end *end);

/* dial_send_held() - let a held SYN go, with request and early data. Returns 0 or -errno: dial_failed(). */
int dial_send_held(struct dial *dial);

/* dial_send_rest() - send the rest of request and early data, once the handshake allows. Returns 0, -EAGAIN or another -errno. */
int dial_send_rest(struct dial *dial);

/*
 * dial_blindly() - ask the converter of the attempt before again, by a blind request; the socket isn't connected
 * Returns false, with nothing under way, if that can't be.
 */
bool dial_blindly(struct dial *dial);

/* dial_stop() - the dial is over, in whatever way: nobody looks after its path any more */
void dial_stop(struct dial *dial);

/* What the request says, and the whole message: request and early data. Returns its length, -ENOBUFS or another -errno. */
struct handshake_ask dial_ask(const struct dial *dial);
ssize_t dial_message(const struct dial *dial, uint8_t *out, size_t size);

/* May the request go into the SYN: ask_way_syn_data()? */
bool dial_wants_syn_data(struct dial *dial);

/* Writes "SERVER: VERDICTDETAIL after MS ms" into the log. */
void dial_log(const struct dial *dial, const char *verdict, const char *detail);

/* Is there something to be done as soon as the socket is writable? */
static inline bool dial_wants_output(const struct dial *dial)
{
	const struct attempt *attempt = &dial->attempt;

	return attempt->want_output || attempt->synack_due || attempt->confirmable || attempt->silence_due;
}

/* Does the SYN, or the request behind the handshake, wait for its answer, as far as @info tells? */
bool dial_is_unanswered(const struct dial *dial, const struct tcp_info *info);

#endif
