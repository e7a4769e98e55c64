/* SPDX-License-Identifier: BSD-3-Clause */
/* session.h - one client's connection through the converter, from accept to close */
#ifndef CONVERTD_SESSION_H
#define CONVERTD_SESSION_H

#include "common/sockaddr.h"
#include "convertd/limits.h"
#include "convertd/log.h"
#include "convertd/request.h"

#include <stdint.h>
#include <sys/time.h>

struct event;
struct event_base;
struct hold_table;
struct session;
struct settings;

/* Deadlines of sessions. */
enum session_timeout {
	SESSION_TIMEOUT_REQUEST,
	SESSION_TIMEOUT_CONNECT,
	SESSION_TIMEOUT_LINGER,
	SESSION_TIMEOUT_RESET_POLL,
	SESSION_TIMEOUT_LOOK, /* how often RELAY looks whether anything moves; 0: never */
	SESSION_TIMEOUT_COUNT
};

/* What all sessions of an event loop share. Only session.c looks into the last part. */
struct session_pool {
	struct event_base *base;
	const struct settings *settings;
	struct route *route;
	struct limits *limits;
	struct hold_table *held; /* what was done for SYNs that were withheld; may be NULL */
	size_t sessions_max; /* beyond it a client is reset at once; 0: no such limit */
	struct log_limit drops;
	struct request_features features;
	int syn_retries; /* net.ipv4.tcp_syn_retries */

	struct timeval timeouts[SESSION_TIMEOUT_COUNT]; /* for event_add() */
	unsigned timeout_ms[SESSION_TIMEOUT_COUNT];     /* what they are */
	unsigned common_timeouts;                       /* asked of libevent so far */

	struct session *sessions;
	struct session *waiting; /* have sent no whole request yet, the first that came first */
	struct session *hungry;  /* had more to relay than their share of a round */
	struct event *feed;      /* runs these in the next round */
	uint8_t *scratch;
	uint64_t last_id;
};

/*
 * session_pool_init() - prepare for sessions; session_pool_configure() must follow
 * Returns 0 or -errno.
 */
int session_pool_init(struct session_pool *pool, struct event_base *base);

/*
 * session_pool_configure() - what holds from now on
 * Sessions go on; what has been decided about them already stays so.
 * @settings: must live until others take their place
 * @limits: in place of those in @settings
 */
void session_pool_configure(struct session_pool *pool, const struct settings *settings,
			    const struct limits_settings *limits,
			    const struct request_features *features);

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
