/* SPDX-License-Identifier: BSD-3-Clause */
/* session.h - one client's connection through the converter, from accept to close */
#ifndef CONVERTD_SESSION_H
#define CONVERTD_SESSION_H

#include "common/sockaddr.h"
#include "convertd/request.h"

#include <stdint.h>
#include <sys/time.h>

struct event;
struct event_base;
struct session;

/* What all sessions of an event loop share. Only session.c looks into the last part. */
struct session_pool {
	struct event_base *base;
	struct request_features features;

	/* Deadlines, as event_base_init_common_timeout() returned them. */
	const struct timeval *request_timeout;
	const struct timeval *connect_timeout;
	const struct timeval *linger_timeout;
	const struct timeval *reset_poll;

	struct session *sessions;
	struct session *hungry; /* had more to relay than their share of a round */
	struct event *feed;     /* runs these in the next round */
	uint8_t *scratch;
	uint64_t last_id;
};

/*
 * session_pool_init() - prepare for sessions
 * @request_seconds: from accept to the end of the request
 * @connect_seconds: for the server to answer
 * Returns 0 or -ENOMEM.
 */
int session_pool_init(struct session_pool *pool, struct event_base *base,
		      const struct request_features *features, unsigned request_seconds,
		      unsigned connect_seconds);

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
