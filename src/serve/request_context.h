/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_context.h - a worker's means to judge requests and to connect to their servers
 *
 * Sessions and withheld SYNs use it. It belongs to the worker's thread; objects in it that several threads share are safe for that.
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

#endif
