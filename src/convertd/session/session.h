/* SPDX-License-Identifier: BSD-3-Clause */
/* session.h - one client's connection through the converter, from accept to close */
#ifndef CONVERTD_SESSION_H
#define CONVERTD_SESSION_H

#include "common/sockaddr.h"
#include "convertd/base/blocks.h"
#include "convertd/base/log.h"
#include "convertd/relay/relay_pipe.h"
#include "convertd/config/terms.h"
#include "convertd/session/request_context.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/time.h>

struct demand;
struct event;
struct event_base;
struct withheld_table;
struct monitor;
struct session;
struct session_pool;

/* Deadlines of sessions. */
enum session_timeout {
	SESSION_TIMEOUT_REQUEST,
	SESSION_TIMEOUT_CONNECT,
	SESSION_TIMEOUT_CONNECT_WITHHELD, /* the same, less what the SYN was withheld */
	SESSION_TIMEOUT_PATIENCE, /* the first part of each of these; 0: they are shorter */
	SESSION_TIMEOUT_CONNECT_REST, /* the other part of the first */
	SESSION_TIMEOUT_CONNECT_WITHHELD_REST,
	SESSION_TIMEOUT_LINGER,
	SESSION_TIMEOUT_RESET_POLL,
	SESSION_TIMEOUT_LOOK, /* how often RELAY looks whether anything moves; 0: never */
	SESSION_TIMEOUT_COUNT
};

/* What the pools of all workers share; each may use it at any time. */
struct session_shared {
	struct limits *limits;
	struct demand *demand;   /* are cookies demanded? */
	struct withheld_table *withheld; /* what was done for SYNs; fixed as well */
	struct monitor *monitor; /* main thread only, but for what it hands out */
	struct log_limit drops, sources, memory, unrouted;
	_Atomic uint64_t last_id;
	struct session_pool **pools; /* fixed before the first session */
	size_t pool_count;
};

/* What all sessions of an event loop share: one thread's own, but for what is marked. */
struct session_pool {
	struct request_context context; /* what the SYNs that this worker withholds need as well */
	struct session_shared *shared;
	struct fastopen *fastopen; /* NULL: the kernel can't be asked for cookies */
	struct log_limit *log_limits; /* all threads': of lines about sessions, by outcome */

	struct timeval timeouts[SESSION_TIMEOUT_COUNT]; /* for event_add() */
	unsigned timeout_ms[SESSION_TIMEOUT_COUNT];     /* what they are */
	unsigned common_timeouts;                       /* asked of libevent so far */

	struct blocks blocks; /* what sessions are made of */
	struct session *sessions;
	struct session *heavy;   /* may hold much of the kernel's memory */
	struct event *look;      /* looks at these; pending as long as there are any */
	struct session *hungry;  /* had more to relay than their share of a round */
	struct event *feed;      /* runs these in the next round */
	uint8_t *scratch;
	struct relay_pipes pipes;

	int told_fd; /* an eventfd: the limits have told some of this worker's members to go */
	struct event *told;
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

/* Ends all sessions: with a reset, but for those whose client has got a refusal. */
void session_pool_fini(struct session_pool *pool);

/*
 * session_accept() - a client has connected
 * @fd: its non-blocking socket, taken over also in failure
 */
void session_accept(struct session_pool *pool, int fd, const union sockaddr_ip *client);

#endif
