/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugs.h - the functions that a daemon gives its workers: to judge a client's bytes, and to connect to the server
 *
 * convertd's judge Convert requests, and call connect(). Workers call them in their own threads; the functions must not block.
 */
#ifndef SERVE_PLUGS_H
#define SERVE_PLUGS_H

#include "convertd/net/downstream.h"
#include "convertd/policy/judgement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request_context;
struct tcp_info;

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
