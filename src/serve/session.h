/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.h - the sessions of a worker, and how a client comes to have one
 *
 * A session is one client's connection through the converter, from accept() to its end.
 */
#ifndef SERVE_SESSION_H
#define SERVE_SESSION_H

#include "common/sockaddr.h"
#include "convertd/base/blocks.h"
#include "convertd/base/log.h"
#include "convertd/base/poller.h"
#include "relay/relay_pipe.h"
#include "convertd/config/effective_settings.h"
#include "serve/request_context.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/time.h>

struct demand;
struct event;
struct event_base;
struct far_clients;
struct hold_table;
struct monitor;
struct session;
struct session_pool;

/* What a session's deadline is for. */
enum session_timeout {
	SESSION_TIMEOUT_REQUEST,               /* a whole request has come */
	SESSION_TIMEOUT_CONNECT,               /* the server has answered; and the client's third ACK, and its answer */
	SESSION_TIMEOUT_CONNECT_WITHHELD,      /* the server has answered that was asked while the SYN was withheld */
	SESSION_TIMEOUT_PATIENCE,              /* the first part of these two; 0: they are too short to have parts */
	SESSION_TIMEOUT_CONNECT_REST,          /* the second part of SESSION_TIMEOUT_CONNECT */
	SESSION_TIMEOUT_CONNECT_WITHHELD_REST, /* the second part of SESSION_TIMEOUT_CONNECT_WITHHELD */
	SESSION_TIMEOUT_LINGER,                /* the peer has taken the converter's last word, or the last bytes */
	SESSION_TIMEOUT_RESET_POLL,            /* the next look whether bytes have arrived, or a token has come back */
	SESSION_TIMEOUT_LOOK,                  /* the next look whether anything moves in RELAY; 0: never */
	SESSION_TIMEOUT_COUNT
};

/* What the pools of all workers share. Each thread may use it at any time. */
struct session_shared {
	const struct serve_plugs *plugs;
	struct limits *limits;
	struct demand *demand;           /* are cookies demanded? */
	struct hold_table *withheld;     /* SYNs that are withheld, and released ones */
	struct far_clients *far_clients; /* whose SYNs are withheld for a shorter time */
	struct monitor *monitor;         /* for the main thread alone, but for what it hands out */
	struct log_limit drops, sources, memory, unrouted; /* of warnings, each of which stands for many sessions */
	_Atomic uint64_t last_id;
	struct session_pool **pools; /* of all workers; set before the first session begins */
	size_t pool_count;
};

/* The sessions of one event loop, and what they share. It belongs to one thread, but for what is marked. */
struct session_pool {
	struct request_context context; /* what this worker's withheld SYNs use as well */
	struct session_shared *shared;
	struct log_limit *log_limits; /* of lines about sessions, by outcome; all threads use them */

	struct timeval timeouts[SESSION_TIMEOUT_COUNT]; /* what event_add() is given */
	unsigned timeout_ms[SESSION_TIMEOUT_COUNT];     /* the same in milliseconds */
	unsigned common_timeouts;                       /* queues of timers that libevent has made for this pool */

	struct blocks blocks; /* memory for sessions */
	poller_callback *on_events[2]; /* what is called for a client's socket, and for a server's */
	struct session *sessions;
	struct session *heavy;   /* those that may hold much of the kernel's memory: session_pool.c */
	struct event *look;      /* looks at the heavy ones; pending as long as there are any */
	struct session *runnable; /* those that are to run in the next round, or at the end of this one: session_life.c */
	struct event *run;       /* runs them */
	uint8_t *scratch;
	struct relay_pipes pipes;

	int room_fd; /* an eventfd: the limits have told some of this worker's members to go */
	struct event *room; /* reads it */
};

/*
 * session_pool_init() - prepare for sessions; session_pool_configure() must follow
 * @shared: has this pool in its list before the first session is accepted
 * Returns 0 or -errno.
 */
int session_pool_init(struct session_pool *pool, struct event_base *base,
		      struct session_shared *shared);

/*
 * session_pool_configure() - puts new settings in force
 * Sessions go on; what has been decided about them already stays so.
 * @effective: the pool takes a reference of its own
 */
void session_pool_configure(struct session_pool *pool, struct effective_settings *effective);

/* Ends all sessions, by a reset unless the client has its refusal, and frees what the pool has. */
void session_pool_fini(struct session_pool *pool);

/*
 * session_accept() - begins the session of a client that has connected
 * @fd: its non-blocking socket, which is the pool's from now on, also in failure
 */
void session_accept(struct session_pool *pool, int fd, const union sockaddr_ip *client);

#endif
