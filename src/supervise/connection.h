/* SPDX-License-Identifier: BSD-3-Clause */
/* connection.h - a connection that a supervised program is making: what is known of it until its call is answered */
#ifndef SUPERVISE_CONNECTION_H
#define SUPERVISE_CONNECTION_H

#include "convert/convert.h"
#include "engine/dial.h"
#include "supervise/listener.h"

#include <uthash.h>

/* What a connection waits for. Its call is unanswered in all of these; answered, it is forgotten. */
enum connection_state {
	CONNECTION_RESOLVING, /* the converter's name is looked up */
	CONNECTION_ASKED,     /* the converter's SYN+ACK and response, or its deadline */
	CONNECTION_DIRECT,    /* the server's SYN+ACK, without a converter */
};

#define CONNECTION_EARLY_MAX 4096 /* bytes of early data that are taken: more than a SYN can carry */
#define CONNECTION_MESSAGE_MAX (CONVERT_MESSAGE_MAX + CONNECTION_EARLY_MAX)
#define CONNECTION_KEEPALIVES 4

struct connection {
	struct call call;
	int at;               /* the program's number of the socket's descriptor */
	int fd;               /* refers to the program's socket */
	int sock;             /* the one that is connected: @fd, or a stand-in that will take its place */
	uint64_t cookie;      /* of the program's socket: the key */
	int domain;           /* of the program's socket */
	bool mptcp;           /* it is an MPTCP socket */
	bool ours;            /* and one that the supervisor has made */
	bool v6only, bound, nonblocking;
	bool shut;            /* the program has shut it down for reading before it connects */
	bool watched;         /* @sock is registered with supervision.epoll */
	int sock_domain;      /* what @sock is; dial.mptcp: of Multipath TCP */
	bool sock_was_mapped; /* it was connected to a v4-mapped address once */
	bool cookieless;      /* @sock takes data in its SYN without a Fast Open cookie */
	int64_t limit;        /* CLOCK_MONOTONIC in ns, as all below: the call has to be answered by then; 0: it may take its time */
	int unfinished;       /* the error that says so while the socket goes on connecting; EINPROGRESS unless a signal ends a call that blocks */
	int64_t look_at;      /* when to look at it even if nothing happens */
	int64_t caller_at;    /* when to look whether the caller still waits */
	int lookups;          /* of converters' names */
	enum connection_state state;
	struct dial dial;     /* the engine's: the server, the network, the attempt */
	bool probing;         /* keepalive is ours */
	int kept[CONNECTION_KEEPALIVES]; /* the program's values for keepalive, while ours are set */
	uint8_t *early;       /* data that the program has given with the call, to be freed; NULL: the call is connect(). dial.early_len bytes */
	uint64_t answer_at;   /* where sendmmsg() wants the count of bytes; 0: it is another call */
	UT_hash_handle hh;
};

/* What all connections share. */
struct supervision {
	const struct settings *settings;
	int listener;
	int epoll;                    /* @sock of each connection is registered here, with the connection */
	struct connection *connections;
	int resolver_ready;           /* an eventfd, readable once a name was looked up */
	int retry_ready;              /* likewise, once requests were made again (blind_retry.c) */
};

extern struct supervision supervision;

/* Forgets the socket that is connected, if it is a stand-in, and has it be the program's own again. */
void connection_drop_stand_in(struct connection *connection);

/* Has @sock, a new socket of these kinds, be the one that is connected. */
void connection_use(struct connection *connection, int sock, int domain, bool mptcp);

/* Has progress_step() be called for what happens to the socket that is connected, from now on. */
void connection_watch(struct connection *connection);

/* Answers the call with @value or @error, and forgets the connection. */
void connection_answer(struct connection *connection, int64_t value, int error);

/* Answers with @taken bytes of early data, or as connect() succeeds; and forgets the connection. */
void connection_succeed(struct connection *connection, size_t taken);

/* Forgets the connection: its call has ended. */
void connection_forget(struct connection *connection);

/* --- what the engine does to a supervised program's socket (engine/dial.h) --- */

/* Has the connection's dial use its socket. @peer: the server */
void connection_operations_begin(struct connection *connection, const union sockaddr_ip *peer);

/* Ends the attempt, by a reset if need be, so that the socket can be connected again, and gives the program its keepalive back. */
void connection_disconnect(struct connection *connection);

/* Gives the program its keepalive back, if ours is on. */
void connection_probes_end(struct connection *connection);

/*
 * connection_connect() - connect(2) that doesn't block, whatever the mode of the program's socket, which is shared with the program
 * Others of its threads see the mode change for a moment in which the socket isn't connected, so that their calls fail in any case.
 * Returns 0 if it is under way, or -errno.
 */
int connection_connect(int fd, const union sockaddr_ip *to);

/* The dials' connection. */
struct connection *connection_of_dial(const struct dial *dial);

#endif
