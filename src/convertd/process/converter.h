/* SPDX-License-Identifier: BSD-3-Clause */
/* converter.h - the converter's plugs for the workers of src/serve: RFC 8803's judgement and answers, and connect() */
#ifndef CONVERTD_CONVERTER_H
#define CONVERTD_CONVERTER_H

#include "convertd/net/downstream.h"
#include "convertd/policy/judgement.h"
#include "daemon/log.h"
#include "serve/plugs.h"

struct blame;
struct effective_settings;
struct monitor;
struct route;
struct status_program;

/* The state that all workers share; the argument of converter_plugs.start(). */
struct converter_shared {
	struct demand *demand;   /* says whether we demand cookies */
	struct monitor *monitor; /* for the main thread alone; workers use only the objects that it returns */
	struct log_limit unrouted, sources; /* for warnings, each of which stands for many sessions */
};

/* A worker's own state: serve_context.daemon. */
struct converter {
	struct serve_context *context;
	struct converter_shared *shared;
	const struct effective_settings *effective; /* the settings in force; NULL before the first ones */
	struct admission admission;           /* the basis of judgements: part of the settings, limits, demand, routes */
	struct route *route;
	struct blame *blame; /* tests of servers: blame.c */
};

/* Returns the plugs. @shared: must outlive the workers */
struct serve_plugs converter_plugs(struct converter_shared *shared);

/* ----- the parts of the status that only a converter has: converter_status.c ----- */

/* For monitor_create(), with the struct demand, which it also checks now and then. */
extern const struct status_program converter_status;

/* ----- which side failed when a server isn't reached, the server's or this converter's: blame.c ----- */

/* Prepares the functions below. Returns 0 or -ENOMEM. */
int blame_init(struct converter *converter);

/* Resets probes that are under way, and frees what blame_init() has made, also after its failure. */
void blame_fini(struct converter *converter);

/*
 * blame_refusal() - return the error to send to a client whose server wasn't reached
 * @fd: the server's socket, -1 if there is none
 * @asked_ms: when the server was asked, as clock_now_ms()
 * @error: -errno of downstream_connect() or downstream_result(), -ETIMEDOUT if time is up
 */
struct downstream_error blame_refusal(struct converter *converter, int fd, const union sockaddr_ip *server, uint64_t asked_ms,
				      int error);

/* Tells whether the server's silence is more likely this host's fault; then the client should be told. */
bool blame_silence(struct converter *converter, const union sockaddr_ip *server, uint64_t asked_ms);

/* Notes that a request is refused since its family doesn't work here, and starts the next test of the family if it is due. */
void blame_again(struct converter *converter, const union sockaddr_ip *server);

#endif
