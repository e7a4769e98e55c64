/* SPDX-License-Identifier: BSD-3-Clause */
/* session.h - one client's connection through the converter, from accept to close */
#ifndef CONVERTD_SESSION_H
#define CONVERTD_SESSION_H

#include "common/sockaddr.h"
#include "convertd/blocks.h"
#include "convertd/limits.h"
#include "convertd/log.h"
#include "convertd/relay_pipe.h"
#include "convertd/terms.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/time.h>

struct event;
struct event_base;
struct hold_table;
struct metrics;
struct monitor;
struct session;
struct session_pool;

/* Deadlines of sessions. */
enum session_timeout {
	SESSION_TIMEOUT_REQUEST,
	SESSION_TIMEOUT_CONNECT,
	SESSION_TIMEOUT_CONNECT_HELD, /* the same, less what the SYN was withheld */
	SESSION_TIMEOUT_LINGER,
	SESSION_TIMEOUT_RESET_POLL,
	SESSION_TIMEOUT_LOOK, /* how often RELAY looks whether anything moves; 0: never */
	SESSION_TIMEOUT_COUNT
};

/* What the pools of all workers share; each may use it at any time. */
struct session_shared {
	struct limits *limits;
	struct hold_table *held; /* what was done for SYNs that were withheld; fixed as well */
	struct monitor *monitor; /* main thread only, but for what it hands out */
	struct log_limit drops, sources;
	_Atomic uint64_t last_id;
	struct session_pool **pools; /* fixed before the first session */
	size_t pool_count;
};

/* What all sessions of an event loop share: one thread's own, but for what is marked. */
struct session_pool {
	struct event_base *base;
	struct session_shared *shared;
	struct terms *terms;
	struct route *route;
	struct fastopen *fastopen; /* NULL: the kernel can't be asked for cookies */
	struct metrics *metrics;      /* what its sessions count in */
	struct log_limit *log_limits; /* all threads': of lines about sessions, by outcome */

	struct timeval timeouts[SESSION_TIMEOUT_COUNT]; /* for event_add() */
	unsigned timeout_ms[SESSION_TIMEOUT_COUNT];     /* what they are */
	unsigned common_timeouts;                       /* asked of libevent so far */

	struct blocks blocks; /* what sessions are made of */
	struct session *sessions;
	struct session *waiting; /* have sent no whole request yet, the first that came first */
	struct session *hungry;  /* had more to relay than their share of a round */
	struct event *feed;      /* runs these in the next round */
	uint8_t *scratch;
	struct relay_pipes pipes;

	/* For all threads: since when the first of @waiting waits, UINT64_MAX if none does; an */
	/* eventfd, to which they write how many of these have to go. */
	_Atomic uint64_t waiting_since_ms;
	int evict_fd;
	struct event *evict;
};

/*
 * session_pool_init() - prepare for sessions; session_pool_configure() must follow
 * @shared: has this pool in its list before the first session is accepted
 * Returns 0 or -errno.
 */
int session_pool_init(struct session_pool *pool, struct event_base *base,
		      struct session_shared *shared);

/*
 * session_pool_configure() - what holds from now on
 * Sessions go on; what has been decided about them already stays so.
 * @terms: a reference of its own is taken
 */
void session_pool_configure(struct session_pool *pool, struct terms *terms);

/*
 * Ends all sessions. Those that relay are reset, since their streams are cut short, and
 * those whose handshake isn't complete, since the end of their stream would not be sent.
 */
void session_pool_fini(struct session_pool *pool);

/*
 * session_accept() - a client has connected
 * @fd: its non-blocking socket, taken over also in failure
 */
void session_accept(struct session_pool *pool, int fd, const union sockaddr_ip *client);

#endif
