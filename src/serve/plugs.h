/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugs.h - what a daemon plugs into its workers: who judges a client's bytes, and who connects to the server
 *
 * convertd plugs in the judgement of Convert requests and connect(). The calls come from the worker's thread, and don't block.
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

/* What becomes of a flow and its bytes: judgement_make(). */
typedef void serve_judge(const struct admission *admission, const struct judgement_case *c, struct judgement *judgement);

/* How a server is connected to. */
struct serve_dial {
	/* Begins to connect. Returns a non-blocking socket, or -errno. */
	int (*connect)(const struct downstream_plan *plan);
	/* Has it connected? 0 with @info set, -EINPROGRESS or -errno. */
	int (*result)(int fd, struct tcp_info *info);
	/* Does the server of a connected socket speak Multipath TCP? */
	bool (*speaks_mptcp)(int fd);
	/*
	 * What a client is told whose server isn't reached. @fd: its socket or -1; @asked_ms: when it was asked, as clock_now_ms();
	 * @error: -errno, -ETIMEDOUT where time is up
	 */
	struct downstream_error (*refusal)(struct request_context *context, int fd, const union sockaddr_ip *server,
					   uint64_t asked_ms, int error);
	/* The server was reached. */
	void (*reached)(const union sockaddr_ip *server);
	/* The server has been silent for a while. Is that more likely this host's fault, so that the client is told so? */
	bool (*silence)(struct request_context *context, const union sockaddr_ip *server, uint64_t asked_ms);
};

struct serve_plugs {
	serve_judge *judge;
	struct serve_dial dial;
	/* A request was refused for what this host lacks: has that looked at again, if it is time. */
	void (*lacking)(struct request_context *context, const union sockaddr_ip *server);
	/* Prepares a worker's context, of which the rest is set, for all of this: 0 or -errno; and ends that, also after a failure. */
	int (*start)(struct request_context *context);
	void (*stop)(struct request_context *context);
};

#endif
