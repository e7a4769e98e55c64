/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.h - the sessions of a worker, and how they begin
 *
 * A session is one client's connection, from accept() to its end.
 */
#ifndef SERVE_SESSION_H
#define SERVE_SESSION_H

#include "common/sockaddr.h"
#include "daemon/blocks.h"
#include "daemon/log.h"
#include "daemon/poller.h"
#include "relay/relay.h"
#include "serve/plugs.h"

#include <stdatomic.h>
#include <stdint.h>

struct event;
struct event_base;
struct hold_table;
struct session;
struct session_pool;

/* The time-outs that a session's deadline enforces. */
enum session_timeout {
	SESSION_TIMEOUT_REQUEST,               /* until the request is whole; in REFUSING, until our answer is written */
	SESSION_TIMEOUT_CONNECT,               /* until the server has answered; then until the third ACK and the response's write */
	SESSION_TIMEOUT_CONNECT_WITHHELD,      /* likewise, for a server that was asked while the SYN was withheld */
	SESSION_TIMEOUT_PATIENCE,              /* the first part of the two CONNECT times; 0: the shorter one is too short to have parts */
	SESSION_TIMEOUT_CONNECT_REST,          /* the second part of SESSION_TIMEOUT_CONNECT */
	SESSION_TIMEOUT_CONNECT_WITHHELD_REST, /* the second part of SESSION_TIMEOUT_CONNECT_WITHHELD */
	SESSION_TIMEOUT_LINGER,                /* until the peer has taken our answer, or the last bytes */
	SESSION_TIMEOUT_RESET_POLL,            /* until we look again whether the bytes have arrived */
	SESSION_TIMEOUT_LOOK,                  /* until we look again whether anything moves in RELAY; 0: never */
	SESSION_TIMEOUT_COUNT
};

/* The state that the pools of all workers share. Each thread may use it at any time. */
struct session_shared {
	const struct serve_plugs *plugs;
	struct limits *limits;
	struct hold_table *withheld;     /* withheld and released SYNs */
	struct log_limit drops, memory;  /* for warnings, each of which stands for many sessions */
	_Atomic uint64_t last_id;
	size_t pool_count; /* set before the first session begins */
};

/* The sessions of one event loop, and the state that they share. It belongs to one thread, except where marked. */
struct session_pool {
	struct serve_context context; /* this worker's withheld SYNs use it, too */
	struct session_shared *shared;

	unsigned timeout_ms[SESSION_TIMEOUT_COUNT];
	struct blocks blocks; /* memory for sessions */
	struct session *sessions;
	struct session *heavy;   /* sessions that may hold much kernel memory: session_pool.c */
	struct event *look;      /* looks at the heavy ones; pending while there are any */
	struct session *runnable; /* sessions that will run in the next round, or at the end of this one: session_life.c */
	struct event *run;       /* runs them */
	uint8_t *scratch;
	struct relay_pipes pipes;

	int evictions_fd; /* an eventfd: readable when the limits have evicted some of this worker's members */
	struct event *evictions; /* reads it */
};

/*
 * session_pool_init() - prepare for sessions; session_pool_configure() must follow
 * @shared: the caller counts this pool before the first session is accepted
 * Returns 0 or -errno.
 */
int session_pool_init(struct session_pool *pool, struct event_base *base,
		      struct session_shared *shared);

/*
 * session_pool_configure() - put new settings in force
 * Sessions continue; earlier decisions about them stay in force.
 * @settings: must live as long as they are in force, which the daemon's configure() sees to
 */
void session_pool_configure(struct session_pool *pool, const struct serve_settings *settings);

/* Ends all sessions, by a reset unless the client has got its refusal, and frees the pool's members. */
void session_pool_fini(struct session_pool *pool);

/*
 * session_accept() - begin the session of a client that has connected
 * @fd: its non-blocking socket, which the pool owns from now on, even if this fails
 * @mptcp: whether the listener takes Multipath TCP; if not, @fd has inherited SO_OOBINLINE from it
 */
void session_accept(struct session_pool *pool, int fd, bool mptcp, const union sockaddr_ip *client);

#endif
