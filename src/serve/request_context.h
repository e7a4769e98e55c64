/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_context.h - what one worker needs to judge requests and to ask the servers that they name
 *
 * Both that come with requests use it: sessions, and SYNs that are withheld. It belongs to the worker's thread; what
 * it points to and other threads use as well is safe for that.
 */
#ifndef SERVE_REQUEST_CONTEXT_H
#define SERVE_REQUEST_CONTEXT_H

#include "convertd/policy/judgement.h"
#include "convertd/policy/limits.h"

struct event;
struct event_base;
struct far_clients;
struct log_limit;
struct metrics;
struct poller;
struct probes;
struct route;
struct effective_settings;
struct hold_table;
struct serve_plugs;

struct request_context {
	struct event_base *base;
	struct poller *poller;           /* has the events of sockets to clients and servers */
	bool single_worker;              /* there is no other one, whose clients might need what this one has */
	struct effective_settings *effective;             /* those in force; NULL before the first ones */
	struct admission admission;      /* what requests are judged by: part of the settings, limits, demand, routes */
	struct metrics *metrics;         /* where this worker counts */
	struct route *route;
	struct probes *probes;
	struct event *tests;             /* the next test of an address family that doesn't work: blame.c */
	struct log_limit *unrouted;      /* of warnings about missing routes, all workers' */
	const struct serve_plugs *plugs; /* who judges, and who connects */
	struct hold_table *withheld;     /* SYNs that are withheld, and released ones, all workers' */
	struct far_clients *far_clients; /* whose SYNs are withheld for a shorter time, all workers' */
	struct limits_owner owner;       /* of this worker's sessions and of the SYNs that it withholds */
};

#endif
