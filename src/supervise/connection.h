/* SPDX-License-Identifier: BSD-3-Clause */
/* connection.h - a connection that a supervised program is making, until its call is answered */
#ifndef SUPERVISE_CONNECTION_H
#define SUPERVISE_CONNECTION_H

#include "common/kernel_socket.h"
#include "convert/convert.h"
#include "engine/dial.h"
#include "supervise/listener.h"

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

/* The events that a connection waits for. In each state its call is unanswered: with the answer we forget the connection. */
enum connection_state {
	CONNECTION_RESOLVING, /* the lookup of the converter's name */
	CONNECTION_ASKED,     /* the converter's SYN+ACK and response, or its deadline */
	CONNECTION_DIRECT,    /* the server's SYN+ACK, without a converter */
};

/* How the connection begins. */
enum connection_kind {
	CONNECTION_CONVERTED, /* the supervisor connects, through a converter or, by its rules, directly */
	CONNECTION_NATIVE,    /* the program asks a converter itself: the supervisor makes the call as it is */
	CONNECTION_UNDER_WAY, /* an earlier call has begun it; this call waits for the outcome */
};

#define CONNECTION_MESSAGE_MAX (CONVERT_MESSAGE_MAX + DIAL_EARLY_MAX)

struct connection {
	struct call call;
	int program_fd;       /* the program's descriptor number */
	enum connection_kind kind;
	int fd;               /* our duplicate of the program's socket */
	uint64_t cookie;      /* SO_COOKIE of the program's socket: the key */
	int domain;           /* of the program's socket */
	bool mptcp;           /* the program's socket is an MPTCP socket */
	bool made_by_us;      /* and the supervisor made it */
	bool v6only, bound, nonblocking;
	bool shut;            /* the program has shut it down for reading before it connects */
	bool watched;         /* dial.fd is registered with supervision.epoll */
	int sock_domain;      /* of dial.fd; dial.mptcp says whether it is an MPTCP socket */
	bool sock_was_mapped; /* dial.fd was connected to a v4-mapped address once */
	bool cookieless;      /* dial.fd sends data in its SYN without a Fast Open cookie */
	int64_t limit;        /* when the call has to be answered, in ns of CLOCK_MONOTONIC, as all times below; 0: no limit */
	int unfinished_errno; /* the call's errno if the socket still connects; a signal that ends a blocking call puts its own here */
	int64_t look_at;      /* when to look at the connection even without an event */
	int64_t caller_at;    /* when to see whether the caller still waits */
	int lookups;          /* of converters' names */
	enum connection_state state;
	struct dial dial;     /* the engine's; dial.fd, the socket that we connect, is @fd, or a stand-in that will take its place */
	struct kernel_keepalive keepalive; /* the program's, while ours is set */
	size_t taken;         /* bytes of early data that the SYN of a native connection carries */
	uint8_t *early;       /* the call's data, dial.early_len bytes, owned, to be freed; NULL: the call is connect() */
	uint64_t answer_at;   /* where sendmmsg() wants the count of bytes; 0: another call */
	UT_hash_handle hh;
};

/* The state that all connections share. */
struct supervision {
	const struct settings *settings;
	int listener;
	int epoll;                    /* watches dial.fd of each connection; data.ptr is the connection */
	struct connection *connections;
	int resolver_ready;           /* an eventfd, readable after a name was looked up */
	int retry_ready;              /* likewise, after requests were made again (blind_retry.c) */
};

extern struct supervision supervision;

/* Connects @sock from now on: a new socket of this domain and protocol, or the program's own. Takes ownership of a new one. */
void connection_use(struct connection *connection, int sock, int domain, bool mptcp);

/* Calls progress_step() for each event of the socket that we connect, from now on. */
void connection_watch(struct connection *connection);

/* Answers the call with @value or @error, and forgets the connection. */
void connection_answer(struct connection *connection, int64_t value, int error);

/* Answers that @taken bytes of early data were sent, or that connect() succeeded, and forgets the connection. */
void connection_succeed(struct connection *connection, size_t taken);

/* --- the engine's operations on a supervised program's socket (engine/dial.h) --- */

/* Prepares the connection's dial to reach @peer, the server. */
void connection_operations_begin(struct connection *connection, const union sockaddr_ip *peer);

/* Ends the attempt, by a reset if need be, so that the socket can be connected again, and restores the program's keepalive. */
void connection_disconnect(struct connection *connection);

/* Restores the program's keepalive, if ours is set. */
void connection_keepalive_end(struct connection *connection);

/*
 * connection_connect() - call connect(2) without blocking, even if the program's socket is in blocking mode
 * The program shares that mode. Its other threads see it change for a moment, in which the socket isn't connected: their calls fail anyway.
 * Returns 0 if the connection is under way, or -errno.
 */
int connection_connect(int fd, const union sockaddr_ip *to);

/* --- progress.c: from the call to the answer; each of these may answer the call, and free the connection --- */

/* Begins a connection whose call has just come. */
void progress_begin(struct connection *connection);

/* Takes the next step, after an event on the socket or at look_at. */
void progress_step(struct connection *connection);

/* Continues all connections that waited for the lookup of a converter's name. */
void progress_resolved(void);

/* Looks at all connections that are due. Returns the milliseconds until the next one is due; -1 for ever. */
int progress_look(void);

/* Answers with @error, and logs the @reason. */
void progress_fail(struct connection *connection, int error, const char *reason);

/* Ends the attempt after the program has shut the connecting socket down: the call fails as a direct one does. */
void progress_shut(struct connection *connection);

/* Puts the connected socket under the program's descriptors. On failure answers the call and returns false. */
bool progress_hand_over(struct connection *connection);

/* Begins a direct connection. A non-blocking call is answered at once, and the kernel reports the rest. */
void progress_go_directly(struct connection *connection);

/* Answers the call after a blind request was sent. The kernel reports the rest, and the stream has no bytes of Convert. */
void progress_blindly(struct connection *connection);

/* --- caller.c: whether the call still waits --- */

/* Notes how long a new call may wait. */
void caller_begin(struct connection *connection);

/*
 * caller_look() - see whether the call still waits at the time @now, and still may
 * @caller: look at its thread, too. May answer the call, and free the connection.
 */
void caller_look(struct connection *connection, bool caller, int64_t now);

/* A call that waits for its connection. Times are CLOCK_MONOTONIC in nanoseconds. */
struct caller_view {
	int64_t limit;    /* when it has to be answered; 0: no limit */
	int interruption; /* tracee_interruption(): a signal is pending for the thread */
	bool nonblocking; /* it doesn't block: the limit is CONVERT_TIMEOUT; else it is the program's own (SO_SNDTIMEO) */
	bool direct;      /* the connection is direct: the kernel limits its time */
	bool gone;        /* the thread has ended, by a signal or another one's exec(); others may have the socket */
	bool shut;        /* the program has shut the socket down meanwhile, which ends a direct connection's attempt, too */
};

enum caller_verdict {
	CALLER_WAITS,       /* it waits on */
	CALLER_OUT_OF_TIME, /* the converter's time is over: connect directly, or fail */
	CALLER_LEAVE,       /* the call ends with *@error, and the socket continues to connect */
	CALLER_SHUT,        /* the attempt and the call end */
};

enum caller_verdict caller_judge(const struct caller_view *call, int64_t now, int *error);

/* A connection whose call ends. caller_way() decides how its socket continues, so that the program never reads a byte of Convert. */
struct caller_left {
	bool direct;   /* the connection is direct */
	bool stand_in; /* a stand-in is connected, not the program's socket */
	bool gone;     /* nothing can be put under the program's descriptors any more */
	bool blind;    /* a blind request to the converter is possible, and hasn't failed yet */
	bool closed;   /* CONVERT_FALLBACK=none forbids direct connections */
};

enum caller_way {
	CALLER_AS_IT_IS, /* unchanged */
	CALLER_BLINDLY,  /* by a blind request, which has no response */
	CALLER_DIRECTLY, /* without a converter */
	CALLER_ENDED,    /* not at all: the attempt ends */
};

enum caller_way caller_way(const struct caller_left *left);

/* Returns the sooner of two times; 0 stands for none. */
int64_t caller_sooner(int64_t one, int64_t other);

/* Returns how many milliseconds to wait for the time @at, never too few; -1, for ever, if @at is 0. */
int caller_wait_ms(int64_t at, int64_t now);

#endif
