/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim_runs.h - connections of the shim, each on its way along some of the transitions between phases (phase.h)
 *
 * A run is a process with one application (shim_world.h); it ends with a message if something is wrong. The runs are in three lists;
 * test_shim_transitions.c does them all, and checks the transitions that all of them together have shown.
 */
#ifndef TESTS_UNIT_SHIM_RUNS_H
#define TESTS_UNIT_SHIM_RUNS_H

#include "shim_world.h"

struct shim_run {
	const char *what;
	void (*body)(void *arg);
	void *arg;
};

/* The shim asks a converter, which answers, refuses, isn't one, or can't be reached. */
extern const struct shim_run runs_asked[];
extern const size_t runs_asked_count;

/* The application dissolves the connection or shuts it down, or it goes to the server itself. */
extern const struct shim_run runs_otherwise[];
extern const size_t runs_otherwise_count;

/* The request is silent, also one of another process: the SYN+ACK confirms the server, or it doesn't. */
extern const struct shim_run runs_silent[];
extern const size_t runs_silent_count;

/* --- common parts of the runs --- */

/* A converter whose SYN+ACK takes 10 ms, and which says nothing; and one that refuses. */
extern struct fake_host run_accepting;
extern const struct fake_host run_refusing;

/* The user's settings: early data; withheld SYNs; bypass for servers of Multipath TCP; early data without fallback. */
extern const struct world_options run_early, run_withholding, run_bypass, run_closed;

/* Begins a run with the converter @host, which answers with @message after 20 ms unless that is NULL. */
void run_begin(const struct world_options *options, struct fake_host host, const struct world_message *message);

/* Adds SERVER, which is as @host says, and sends "hello". */
void run_add_server(struct fake_host host);

void run_expect(int fd, enum world_state state);

/* Returns a non-blocking socket whose connect() is in progress. */
int run_connecting(void);

/* Returns a socket whose connect() has returned 0, since early data may follow. */
int run_connected_early(void);

/* Returns a connection that the SYN+ACK has confirmed, whose converter answers with @message after half a second. */
int run_confirmed(const struct world_message *message);

/* connect() to AF_UNSPEC */
void run_dissolve(int fd);

/* close(), after which nothing may be left. */
void run_finish(int fd);

#endif
