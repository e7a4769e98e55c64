/* SPDX-License-Identifier: BSD-3-Clause */
/* connection.h - a connection that a supervised program is making: what is known of it until its call is answered */
#ifndef SUPERVISE_CONNECTION_H
#define SUPERVISE_CONNECTION_H

#include "client/converters.h"
#include "client/handshake.h"
#include "client/ride.h"
#include "client/settings.h"
#include "supervise/begin.h"
#include "supervise/listener.h"

#include <uthash.h>

/* What a connection waits for. Its call is unanswered in all of these; answered, it is forgotten. */
enum connection_state {
	CONNECTION_RESOLVING, /* the converter's name is looked up */
	CONNECTION_ASKED,     /* the converter's SYN+ACK and response, or its deadline */
	CONNECTION_DIRECT,    /* the server's SYN+ACK, without a converter */
};

/* The converter that is asked at present, and how. */
struct attempt {
	union sockaddr_ip addr; /* in the form that the socket takes */
	int converter;
	enum ride ride;
	bool syn_data;     /* the SYN carried data */
	bool want_output;  /* a part of the message is still to be sent */
	bool answered;     /* the SYN was, and what that tells of its path is noted */
	bool synack_due;   /* an MPTCP attempt whose SYN+ACK wasn't looked at yet */
	bool ask_info, ask_mptcp, cookie_asked;
	bool ask_silent;   /* no response where the SYN+ACK says it all (doc/private-tlvs.md) */
	bool ask_blind;    /* nor any other: the call is answered when the SYN is sent */
	uint64_t ask_attempt; /* a random number, for a converter that knows blind requests by it when they are made again; 0: none */
	unsigned int hold_ms; /* the request says that its SYN may be withheld for so many milliseconds at most; 0: it says nothing */
	bool silence_due;  /* a silent request went with the SYN, whose SYN+ACK wasn't looked at yet */
	converters_cookie_number cookie_number;
	size_t sent;       /* bytes of the message, which is the request */
	size_t request_len; /* of so many, and early data behind it */
	int64_t ends;      /* CLOCK_MONOTONIC in nanoseconds: when a converter that is silent counts as dead */
	bool probing;      /* keepalive is ours */
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
	bool sock_mptcp;      /* what @sock is */
	int sock_domain;
	bool sock_was_mapped; /* it was connected to a v4-mapped address once */
	union sockaddr_ip peer;
	int64_t started;      /* CLOCK_MONOTONIC in nanoseconds */
	int64_t limit;        /* when the call has to be answered at the latest; 0: it may take its time */
	int unfinished;       /* the error that says so while the socket goes on connecting; EINPROGRESS unless a signal ends a call that blocks */
	int64_t look_at;      /* when to look at it even if nothing happens */
	int64_t caller_at;    /* when to look whether the caller still waits */
	uint32_t tried;       /* a bit for each converter */
	int lookups;          /* of converters' names */
	enum connection_state state;
	struct begin begin;   /* the network that it begins on */
	struct attempt attempt;
	int kept[CONNECTION_KEEPALIVES]; /* the program's values for keepalive, while ours are set */
	uint8_t *early;       /* data that the program has given with the call, to be freed; NULL: the call is connect() */
	size_t early_len;
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
	int again_ready;              /* likewise, once requests were made again (again.c) */
};

extern struct supervision supervision;

/* Time in the log. */
double connection_ms(const struct connection *connection);

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

#endif
