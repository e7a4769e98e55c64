/* SPDX-License-Identifier: BSD-3-Clause */
/* connection.h - a connection that a supervised program is making, until its call is answered */
#ifndef SUPERVISE_CONNECTION_H
#define SUPERVISE_CONNECTION_H

#include "convert/convert.h"
#include "engine/dial.h"
#include "supervise/listener.h"

#include <uthash.h>

/* What a connection waits for. In each state its call is unanswered: with the answer we forget the connection. */
enum connection_state {
	CONNECTION_RESOLVING, /* the lookup of the converter's name */
	CONNECTION_ASKED,     /* the converter's SYN+ACK and response, or its deadline */
	CONNECTION_DIRECT,    /* the server's SYN+ACK, without a converter */
};

#define CONNECTION_EARLY_MAX 4096 /* bytes of early data that we take: more than a SYN can carry */
#define CONNECTION_MESSAGE_MAX (CONVERT_MESSAGE_MAX + CONNECTION_EARLY_MAX)
#define CONNECTION_KEEPALIVES 4

struct connection {
	struct call call;
	int at;               /* the program's descriptor number */
	int fd;               /* our duplicate of the program's socket */
	int sock;             /* the socket that we connect: @fd, or a stand-in that will take its place */
	uint64_t cookie;      /* SO_COOKIE of the program's socket: the key */
	int domain;           /* of the program's socket */
	bool mptcp;           /* the program's socket is an MPTCP socket */
	bool ours;            /* and the supervisor made it */
	bool v6only, bound, nonblocking;
	bool shut;            /* the program has shut it down for reading before it connects */
	bool watched;         /* @sock is registered with supervision.epoll */
	int sock_domain;      /* of @sock; dial.mptcp says whether it is an MPTCP socket */
	bool sock_was_mapped; /* @sock was connected to a v4-mapped address once */
	bool cookieless;      /* @sock sends data in its SYN without a Fast Open cookie */
	int64_t limit;        /* when the call has to be answered, in ns of CLOCK_MONOTONIC, as all times below; 0: no limit */
	int unfinished;       /* the call's errno while the socket still connects: EINPROGRESS, unless a signal ends a blocking call */
	int64_t look_at;      /* when to look at the connection even without an event */
	int64_t caller_at;    /* when to see whether the caller still waits */
	int lookups;          /* of converters' names */
	enum connection_state state;
	struct dial dial;     /* the engine's: the server, the network, the attempt */
	bool probing;         /* our keepalive values are set, not the program's */
	int kept[CONNECTION_KEEPALIVES]; /* the program's keepalive values, while ours are set */
	uint8_t *early;       /* the call's data, dial.early_len bytes, owned, to be freed; NULL: the call is connect() */
	uint64_t answer_at;   /* where sendmmsg() wants the count of bytes; 0: another call */
	UT_hash_handle hh;
};

/* The state that all connections share. */
struct supervision {
	const struct settings *settings;
	int listener;
	int epoll;                    /* watches @sock of each connection; data.ptr is the connection */
	struct connection *connections;
	int resolver_ready;           /* an eventfd, readable after a name was looked up */
	int retry_ready;              /* likewise, after requests were made again (blind_retry.c) */
};

extern struct supervision supervision;

/* Closes the stand-in, if there is one, and returns to the program's own socket. */
void connection_drop_stand_in(struct connection *connection);

/* Makes @sock, a new socket of this domain and protocol, the one that we connect. Takes ownership. */
void connection_use(struct connection *connection, int sock, int domain, bool mptcp);

/* Calls progress_step() for each event of the socket that we connect, from now on. */
void connection_watch(struct connection *connection);

/* Answers the call with @value or @error, and forgets the connection. */
void connection_answer(struct connection *connection, int64_t value, int error);

/* Answers that @taken bytes of early data were sent, or that connect() succeeded, and forgets the connection. */
void connection_succeed(struct connection *connection, size_t taken);

/* Forgets the connection: its call has ended. */
void connection_forget(struct connection *connection);

/* --- the engine's operations on a supervised program's socket (engine/dial.h) --- */

/* Prepares the connection's dial to reach @peer, the server. */
void connection_operations_begin(struct connection *connection, const union sockaddr_ip *peer);

/* Ends the attempt, by a reset if need be, so that the socket can be connected again, and restores the program's keepalive. */
void connection_disconnect(struct connection *connection);

/* Restores the program's keepalive, if ours is set. */
void connection_probes_end(struct connection *connection);

/*
 * connection_connect() - call connect(2) without blocking, even if the program's socket is in blocking mode
 * The program shares that mode. Its other threads see it change for a moment, in which the socket isn't connected: their calls fail anyway.
 * Returns 0 if the connection is under way, or -errno.
 */
int connection_connect(int fd, const union sockaddr_ip *to);

/* Returns the connection that @dial is part of. */
struct connection *connection_of_dial(const struct dial *dial);

#endif
