/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * monitor.h - reports about a daemon as a whole: by HTTP, and by the log about lines that it has left out
 *
 * The main thread owns all of it, except the counters and limits that it hands out. monitor.c collects the facts,
 * status_write.c writes them as tables and metrics, status_page.c as a page, and endpoint.c speaks HTTP.
 */
#ifndef OBSERVE_MONITOR_H
#define OBSERVE_MONITOR_H

#include "common/problems.h"
#include "daemon/limits.h"
#include "daemon/listen_address.h"
#include "daemon/log.h"
#include "daemon/metrics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

struct event_base;
struct monitor;

struct status_program;

/*
 * Returns a monitor, which answers in @base's loop, or NULL without memory.
 * @program: the daemon's own part of the status, a constant. @own: for its functions
 */
struct monitor *monitor_create(struct event_base *base, const struct status_program *program, void *own);

/* Call it after all that counts in the monitor. Logs the number of lines left out. NULL is fine. */
void monitor_destroy(struct monitor *monitor);

/* Returns counters for one more thread that runs sessions; the monitor owns them. Returns NULL without memory. */
struct metrics *monitor_add_metrics(struct monitor *monitor);

/*
 * New settings come into force in two steps. monitor_open() listens at the @count @addresses. It returns false after
 * adding an error to @problems, with everything as it was. Then monitor_commit(), which can't fail, stops listening
 * at all other addresses; or the caller calls monitor_abandon(), if something else has failed.
 */
bool monitor_open(struct monitor *monitor, const struct metrics_address *addresses, size_t count,
		  struct problems *problems);
void monitor_abandon(struct monitor *monitor);

/*
 * @listening: the addresses and the protocols there, for people; copied
 * @limits: those in force
 */
void monitor_commit(struct monitor *monitor, const char *listening, size_t workers,
		    const struct limits_settings *limits);

/* Counts a reload. @ok: its settings are in force */
void monitor_count_reload(struct monitor *monitor, bool ok);

/* Makes /healthz answer 503 from now on, so that balancers look for another one. */
void monitor_set_draining(struct monitor *monitor);

/* Stops listening and answering, so that the next process can listen. */
void monitor_close(struct monitor *monitor);

/*
 * Returns rate limits of the lines about sessions, one for each of OUTCOME_COUNT outcomes, for all threads; the
 * monitor owns them.
 */
struct log_limit *monitor_log_limits(struct monitor *monitor);

/* ----- the status, and how it is written (status_write.c, status_page.c; no I/O) ----- */

/* A copy of all counters. */
struct sample {
	struct metrics_sum sum;
	uint64_t at_ms; /* clock_now_ms() */
};

/* The history of an hour: a sample every half minute, and one more where it begins. */
#define HISTORY_SECONDS 30
#define HISTORY_MAX (3600 / HISTORY_SECONDS + 1)

/* The resources that this process uses (getrusage(2)). */
struct resource_usage {
	uint64_t open_files, max_files; /* UINT64_MAX: not known; no limit */
	uint64_t resident_bytes, virtual_bytes; /* 0: not known */
	double cpu_seconds;             /* user and system, of all threads */
};

struct status {
	const struct status_program *program;
	void *own; /* for its functions */
	/* facts that change rarely: the monitor keeps them here */
	time_t started, configured;
	uint64_t reloads, reloads_failed;
	bool draining;
	const char *listening; /* "[::]:1234 (MPTCP, Fast Open), …"; NULL: nowhere */
	size_t workers;
	unsigned max_connections, max_pending; /* 0: no limit */
	uint64_t max_memory;                   /* bytes of kernel memory; 0: no limit */
	/* facts of the moment */
	time_t now;
	struct sample latest;
	const struct sample *before; /* the counters half a minute to a minute ago, or at the start, for rates; NULL: none */
	const struct sample *history; /* @history_count samples, the oldest first; the monitor's */
	size_t history_count;
	struct resource_usage process;
	size_t notice_count;
	struct notice notices[NOTICES_MAX];
};

/* Writes a line like "convertd 0.1.0: serving", and tables of figures with names; the same as JSON. */
void status_write_text(FILE *out, const struct status *status);
void status_write_json(FILE *out, const struct status *status);

/* How a format lays tables out. */
struct status_layout {
	void (*heading)(FILE *out, const char *text, bool first);
	void (*row)(FILE *out, const char *name, const char *value, bool first);
	void (*end)(FILE *out);
};

void status_write_tables(FILE *out, const struct status *status, const struct status_layout *layout);

/* Writes tables: a row goes below the latest heading. */
struct status_sink {
	FILE *out;
	const struct status_layout *layout;
	bool started, has_row;
};

void status_heading(struct status_sink *sink, const char *text);
void status_row(struct status_sink *sink, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Writes a row like "7 of 100", or "7" if @limit is 0 or UINT64_MAX. */
void status_row_of(struct status_sink *sink, const char *name, uint64_t value, uint64_t limit);

/* Returns by how much a second the sum of @count counters from @first on has grown between two samples; 0 if no time has passed. */
double status_rate(const struct sample *from, const struct sample *to, unsigned first, unsigned count);

/* Writes a table of the fates of SYNs, if there were any. */
void status_tell_syns(struct status_sink *sink, const struct status *status);

/* The facts that a daemon adds to its status. Functions may be NULL. */
struct status_program {
	const char *name, *title; /* "convertd", "Converter" */
	struct {
		const char *row, *figure; /* "errors sent", "errors a second": what an operator watches beside new connections */
		unsigned metric, count; /* the counters that add up to it */
	} failures;
	void (*tick)(void *own); /* now and then */
	void (*write_marks)(FILE *out, const struct status *status); /* <span>s of the page's head */
	void (*tell_now)(struct status_sink *sink, const struct status *status); /* rows about the connections now */
	void (*tell_tables)(struct status_sink *sink, const struct status *status); /* tables behind that of the ends */
	void (*write_metrics)(FILE *out, const struct status *status);
};

/* Writes a metric without labels. @name: without the program's name and "_" in front */
void status_write_value(FILE *out, const struct status *status, const char *name, const char *type, const char *help, double value);

/* Writes the same as an HTML page, with pictures of the last hour: one file without scripts, light or dark as the browser is. */
void status_write_html(FILE *out, const struct status *status);

/* Writes all metrics for Prometheus: those of metrics_write(), and those that aren't counters of sessions. */
void status_write_metrics(FILE *out, const struct status *status);

/* --- HTTP (endpoint.c) --- */

struct endpoint;

/* The most descriptors that an endpoint uses. */
#define ENDPOINT_FILES_MAX 20

struct endpoint_answer {
	unsigned status;   /* the HTTP status code */
	const char *type;  /* the Content-Type, a constant */
	char *body;        /* from malloc(); the endpoint frees it */
	size_t len;        /* of the body, in bytes */
};

/* Fills the answer to GET @path. Returns false if there is no such page. */
bool monitor_answer(const struct monitor *monitor, const char *path, struct endpoint_answer *answer);

/*
 * endpoint_create() - listen at @where, and have @monitor answer each request from now on
 * Returns the endpoint, for endpoint_destroy(), or NULL after adding the error to @problems.
 */
struct endpoint *endpoint_create(struct event_base *base, const struct metrics_address *where,
				 const struct monitor *monitor, struct problems *problems);

/* Returns the address at which the endpoint listens. */
const struct metrics_address *endpoint_address(const struct endpoint *endpoint);

/* Ends all connections and stops listening. NULL is fine. */
void endpoint_destroy(struct endpoint *endpoint);

/*
 * endpoint_ask() - print the status of the daemon whose --metrics address is @where: "convertd status"
 * @program: the name of the daemon
 * Returns the exit status: EXIT_FAILURE after saying why on standard error.
 */
int endpoint_ask(const char *program, const struct metrics_address *where);

#endif
