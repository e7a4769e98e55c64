/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugs.h - what a worker has, and the functions that a daemon gives it: to judge a client's bytes, and to connect to the server
 *
 * convertd's judge Convert requests, and call connect(). Workers call them in their own threads; the functions must not block.
 */
#ifndef SERVE_PLUGS_H
#define SERVE_PLUGS_H

#include "convertd/net/downstream.h"
#include "convertd/policy/judgement.h"
#include "daemon/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct effective_settings;
struct event;
struct event_base;
struct far_clients;
struct hold_table;
struct log_limit;
struct metrics;
struct poller;
struct probes;
struct route;
struct serve_plugs;
struct tcp_info;

/*
 * A worker's means to judge requests and to connect to their servers. Sessions and withheld SYNs use it. It belongs to the worker's thread;
 * objects in it that several threads share are safe for that.
 */
struct request_context {
	struct event_base *base;
	struct poller *poller;           /* watches the sockets of clients and servers */
	bool single_worker;              /* there is no other worker */
	struct effective_settings *effective;             /* the settings in force; NULL before the first ones */
	struct admission admission;      /* the basis of judgements: part of the settings, limits, demand, routes */
	struct metrics *metrics;         /* this worker's counters */
	struct route *route;
	struct probes *probes;
	struct event *tests;             /* the next test of an address family that doesn't work: blame.c */
	struct log_limit *unrouted;      /* for warnings about missing routes; all workers' */
	const struct serve_plugs *plugs; /* judge requests, and connect */
	struct hold_table *withheld;     /* withheld and released SYNs; all workers' */
	struct far_clients *far_clients; /* clients whose SYNs we withhold for a shorter time; all workers' */
	struct limits_owner owner;       /* of this worker's sessions and withheld SYNs */
};

/* Judges a flow by its bytes: judgement_make(). */
typedef void serve_judge(const struct admission *admission, const struct judgement_case *c, struct judgement *judgement);

/* Connects to servers. */
struct serve_dial {
	/* Begins to connect. Returns a non-blocking socket, or -errno. */
	int (*connect)(const struct downstream_plan *plan);
	/* Returns 0 with @info set if the socket has connected, -EINPROGRESS or -errno. */
	int (*result)(int fd, struct tcp_info *info);
	/* Returns whether the server of a connected socket speaks Multipath TCP. */
	bool (*speaks_mptcp)(int fd);
	/*
	 * Returns the error for a client whose server can't be reached. @fd: the server's socket or -1; @asked_ms: when the server was
	 * asked, as clock_now_ms(); @error: -errno, -ETIMEDOUT if the time is over
	 */
	struct downstream_error (*refusal)(struct request_context *context, int fd, const union sockaddr_ip *server,
					   uint64_t asked_ms, int error);
	/* Notes that the server was reached. */
	void (*reached)(const union sockaddr_ip *server);
	/*
	 * Called when the server has been silent for a while. Returns whether that is more likely this host's fault: then we tell the
	 * client.
	 */
	bool (*silence)(struct request_context *context, const union sockaddr_ip *server, uint64_t asked_ms);
};

struct serve_plugs {
	serve_judge *judge;
	struct serve_dial dial;
	/* Called when a request was refused because this host lacks something: tests that again, if a test is due. */
	void (*lacking)(struct request_context *context, const union sockaddr_ip *server);
	/*
	 * start() prepares a worker's context, whose other members are set, and returns 0 or -errno. stop() undoes that, also after a
	 * failure.
	 */
	int (*start)(struct request_context *context);
	void (*stop)(struct request_context *context);
};

#endif
