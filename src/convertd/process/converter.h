/* SPDX-License-Identifier: BSD-3-Clause */
/* converter.h - what makes the workers of src/serve a converter: RFC 8803's judgement and answers, and connect() */
#ifndef CONVERTD_CONVERTER_H
#define CONVERTD_CONVERTER_H

#include "convertd/policy/judgement.h"
#include "daemon/log.h"
#include "serve/plugs.h"

struct effective_settings;
struct event;
struct monitor;
struct probes;
struct route;

/* The state that all workers share; the argument of converter_plugs.start(). */
struct converter_shared {
	struct demand *demand;   /* says whether we demand cookies */
	struct monitor *monitor; /* for the main thread alone; workers use only the objects that it returns */
	struct log_limit unrouted, sources; /* for warnings, each of which stands for many sessions */
};

/* A worker's own state: serve_context.own. */
struct converter {
	struct serve_context *context;
	struct converter_shared *shared;
	struct effective_settings *effective; /* the settings in force; NULL before the first ones */
	struct admission admission;           /* the basis of judgements: part of the settings, limits, demand, routes */
	struct route *route;
	struct probes *probes;
	struct event *tests; /* the next test of an address family that doesn't work */
};

/* Returns the plugs. @shared: must outlive the workers */
struct serve_plugs converter_plugs(struct converter_shared *shared);

#endif
