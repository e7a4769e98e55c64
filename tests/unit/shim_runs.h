/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim_runs.h - connections of the shim, each on its way along some of the transitions between phases (phase.h)
 *
 * A run is a process with one application (shim_world.h), which ends with a message if something isn't as it should be. The runs are in
 * three lists; test_shim_transitions.c goes through them, and looks at what was seen in all of them together.
 */
#ifndef TESTS_UNIT_SHIM_RUNS_H
#define TESTS_UNIT_SHIM_RUNS_H

#include "shim_world.h"

struct shim_run {
	const char *what;
	void (*body)(void *arg);
	void *arg;
};

/* A converter is asked: it answers, refuses, isn't a converter, isn't reached. */
extern const struct shim_run runs_asked[];
extern const size_t runs_asked_count;

/* The connection ends otherwise: the application dissolves it, it goes to the server itself, another process is first. */
extern const struct shim_run runs_otherwise[];
extern const size_t runs_otherwise_count;

/* The request is silent: the SYN+ACK says it all, or it doesn't. */
extern const struct shim_run runs_silent[];
extern const size_t runs_silent_count;

/* --- what the runs have in common --- */

/* A converter that says nothing, whose SYN+ACK takes 10 ms; and one that refuses. */
extern struct fake_host run_accepting;
extern const struct fake_host run_refusing;

/* The user's settings: early data, SYNs withheld, servers of Multipath TCP asked themselves; early data and no fallback. */
extern const struct world_options run_early, run_withholding, run_bypass, run_closed;

/* Begins a run: a converter that answers with @message after 20 ms, or is as @host says. */
void run_begin(const struct world_options *options, struct fake_host host, const struct world_message *message);

/* SERVER is as @host says, and says "hello". */
void run_add_server(struct fake_host host);

void run_expect(int fd, enum world_state state);

/* A socket on which connect() has begun, without waiting. */
int run_connecting(void);

/* A socket whose connect() has returned 0, since early data may follow. */
int run_connected_early(void);

/* A connection that is confirmed by the SYN+ACK, whose converter answers with @message half a second later. */
int run_confirmed(const struct world_message *message);

/* connect() to AF_UNSPEC */
void run_dissolve(int fd);

/* close(), after which nothing may be left. */
void run_finish(int fd);

#endif
