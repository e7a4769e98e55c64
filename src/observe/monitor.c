/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * monitor.c - reports about a daemon as a whole
 *
 * Every HISTORY_SECONDS it copies all counters, and keeps the copies of the last hour, so that one question is enough
 * for a status with rates and for pictures of that hour. The answer adds the counters of its moment. The history takes
 * HISTORY_MAX copies of 1 kB, however busy the daemon is.
 */
#include "config.h"

#include "observe/monitor.h"

#include "common/clock.h"
#include "daemon/limits.h"
#include "daemon/outcome.h"

#include <assert.h>
#include <dirent.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* How often the number of lines that the log has left out is logged. The counters are copied every few ticks. */
#define TICK_SECONDS 10
static_assert(HISTORY_SECONDS % TICK_SECONDS == 0, "samples are taken at ticks");

struct shard {
	struct metrics metrics; /* first: it is aligned */
	struct shard *next;
};

struct monitor {
	struct event_base *base;
	struct event *tick;
	void *own; /* for the program's functions */
	struct shard *shards;
	struct log_limit log_limits[OUTCOME_COUNT];
	unsigned ticks;
	struct sample history[HISTORY_MAX]; /* the oldest first */
	size_t history_count;
	struct endpoint *endpoints[METRICS_ADDRESSES_MAX];
	struct endpoint *next[METRICS_ADDRESSES_MAX]; /* the endpoints of monitor_open() */
	struct status facts; /* those that change rarely; the others are 0 */
};

static void sum_up(const struct monitor *monitor, struct sample *sample)
{
	memset(sample, 0, sizeof(*sample));
	for (const struct shard *shard = monitor->shards; shard; shard = shard->next)
		metrics_add_up(&sample->sum, &shard->metrics);
	sample->at_ms = clock_now_ms();
}

static void take_sample(struct monitor *monitor)
{
	if (monitor->history_count == HISTORY_MAX)
		memmove(monitor->history, monitor->history + 1, --monitor->history_count * sizeof(monitor->history[0]));
	sum_up(monitor, &monitor->history[monitor->history_count++]);
}

/* ----- the resources that this process uses ----- */

#define DESCRIPTORS "/proc/self/fd"

static uint64_t count_files(void)
{
	DIR *table = opendir(DESCRIPTORS);
	const struct dirent *entry;
	uint64_t count = 0;

	if (!table)
		return UINT64_MAX;
	while ((entry = readdir(table)))
		count += entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(table);
	closedir(table);
	return count;
}

/* Since Linux 6.2 the directory's size is the number of descriptors. Counting 20,000 takes 10 ms. */
static uint64_t read_files(void)
{
	struct stat fds;

	return stat(DESCRIPTORS, &fds) == 0 && fds.st_size > 0 ? (uint64_t)fds.st_size : count_files();
}

static void read_memory(struct resource_usage *usage)
{
	unsigned long long pages = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (!file)
		return;
	if (fscanf(file, "%llu %llu", &pages, &resident) == 2) {
		usage->virtual_bytes = pages * page;
		usage->resident_bytes = resident * page;
	}
	fclose(file);
}

static double seconds(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static void read_usage(struct resource_usage *usage)
{
	struct rusage own = { 0 };
	struct rlimit files = { .rlim_cur = RLIM_INFINITY };

	*usage = (struct resource_usage){ .open_files = read_files() };
	getrlimit(RLIMIT_NOFILE, &files);
	usage->max_files = files.rlim_cur == RLIM_INFINITY ? UINT64_MAX : files.rlim_cur;
	getrusage(RUSAGE_SELF, &own);
	usage->cpu_seconds = seconds(&own.ru_utime) + seconds(&own.ru_stime);
	read_memory(usage);
}

/* ----- the status ----- */

static void read_status(const struct monitor *monitor, struct status *status)
{
	*status = monitor->facts;
	sum_up(monitor, &status->latest);
	status->history = monitor->history;
	status->history_count = monitor->history_count;
	/* The last sample may be too young for a rate, so we take the one before it. */
	status->before = &monitor->history[monitor->history_count > 1 ? monitor->history_count - 2 : 0];
	status->now = time(NULL);
	read_usage(&status->process);
	status->notice_count = notices_copy(status->notices);
}

static void write_health(FILE *out, const struct status *status)
{
	fputs(status->draining ? "draining\n" : "ok\n", out);
}

/* The pages that are served. */
static const struct page {
	const char *path, *type;
	void (*write)(FILE *out, const struct status *status);
	bool health; /* its status code says whether new clients are welcome */
} pages[] = {
	{ "/", "text/html; charset=utf-8", status_write_html, false },
	{ "/status", "text/plain; charset=utf-8", status_write_text, false },
	{ "/status.json", "application/json", status_write_json, false },
	{ "/metrics", "text/plain; version=0.0.4; charset=utf-8", status_write_metrics, false },
	{ "/healthz", "text/plain; charset=utf-8", write_health, true },
};

bool monitor_answer(const struct monitor *monitor, const char *path, struct endpoint_answer *answer)
{
	const struct page *page = NULL;
	struct status status;
	FILE *out;

	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		if (strcmp(path, pages[i].path) == 0)
			page = &pages[i];
	out = page ? open_memstream(&answer->body, &answer->len) : NULL;
	if (!out)
		return false;
	read_status(monitor, &status);
	page->write(out, &status);
	fclose(out);
	answer->type = page->type;
	answer->status = page->health && status.draining ? 503 : 200;
	return answer->body != NULL;
}

static void tell_left_out(struct monitor *monitor)
{
	for (int i = 0; i < OUTCOME_COUNT; i++) {
		uint64_t count = atomic_exchange_explicit(&monitor->log_limits[i].left_out, 0,
							  memory_order_relaxed);

		if (count)
			log_info("%llu more connections ended: %s (--log-rate left their lines "
				 "out)",
				 (unsigned long long)count, outcome_text((enum outcome)i));
	}
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct monitor *monitor = arg;

	(void)fd;
	(void)what;
	tell_left_out(monitor);
	if (monitor->facts.program->tick)
		monitor->facts.program->tick(monitor->own);
	if (++monitor->ticks % (HISTORY_SECONDS / TICK_SECONDS) == 0)
		take_sample(monitor);
}

struct monitor *monitor_create(struct event_base *base, const struct status_program *program, void *own)
{
	static const struct timeval tick = { .tv_sec = TICK_SECONDS };
	struct monitor *monitor = calloc(1, sizeof(*monitor));

	if (!monitor)
		return NULL;
	monitor->base = base;
	monitor->own = own;
	monitor->facts.program = program;
	monitor->facts.own = own;
	monitor->facts.started = time(NULL);
	take_sample(monitor);
	monitor->tick = event_new(base, -1, EV_PERSIST, on_tick, monitor);
	if (monitor->tick && event_add(monitor->tick, &tick) == 0)
		return monitor;
	monitor_destroy(monitor);
	return NULL;
}

void monitor_destroy(struct monitor *monitor)
{
	if (!monitor)
		return;
	tell_left_out(monitor);
	monitor_close(monitor);
	free((char *)monitor->facts.listening);
	if (monitor->tick)
		event_free(monitor->tick);
	while (monitor->shards) {
		struct shard *shard = monitor->shards;

		monitor->shards = shard->next;
		free(shard);
	}
	free(monitor);
}

struct metrics *monitor_add_metrics(struct monitor *monitor)
{
	struct shard *shard = aligned_alloc(_Alignof(struct shard), sizeof(*shard));

	if (!shard)
		return NULL;
	memset(shard, 0, sizeof(*shard));
	shard->next = monitor->shards;
	monitor->shards = shard;
	return &shard->metrics;
}

struct log_limit *monitor_log_limits(struct monitor *monitor)
{
	return monitor->log_limits;
}

static struct endpoint *find_endpoint(struct endpoint *const *endpoints,
				      const struct metrics_address *where)
{
	for (size_t i = 0; i < METRICS_ADDRESSES_MAX; i++)
		if (endpoints[i] && metrics_address_equal(endpoint_address(endpoints[i]), where))
			return endpoints[i];
	return NULL;
}

static bool contains(struct endpoint *const *endpoints, const struct endpoint *endpoint)
{
	for (size_t i = 0; i < METRICS_ADDRESSES_MAX; i++)
		if (endpoints[i] == endpoint)
			return true;
	return false;
}

/* Destroys the @endpoints that aren't @kept. */
static void destroy_others(struct endpoint **endpoints, struct endpoint *const *kept)
{
	for (size_t i = 0; i < METRICS_ADDRESSES_MAX; i++) {
		if (endpoints[i] && !contains(kept, endpoints[i]))
			endpoint_destroy(endpoints[i]);
		endpoints[i] = NULL;
	}
}

bool monitor_open(struct monitor *monitor, const struct metrics_address *addresses, size_t count,
		  struct problems *problems)
{
	for (size_t i = 0; i < count; i++) {
		const struct metrics_address *where = &addresses[i];

		/* If an address is given twice, it has one endpoint. */
		if (find_endpoint(monitor->next, where))
			continue;
		monitor->next[i] = find_endpoint(monitor->endpoints, where);
		if (!monitor->next[i])
			monitor->next[i] = endpoint_create(monitor->base, where, monitor, problems);
		if (!monitor->next[i]) {
			monitor_abandon(monitor);
			return false;
		}
	}
	return true;
}

void monitor_abandon(struct monitor *monitor)
{
	destroy_others(monitor->next, monitor->endpoints);
}

void monitor_commit(struct monitor *monitor, const char *listening, size_t workers,
		    const struct limits_settings *limits)
{
	destroy_others(monitor->endpoints, monitor->next);
	memcpy(monitor->endpoints, monitor->next, sizeof(monitor->endpoints));
	memset(monitor->next, 0, sizeof(monitor->next));
	free((char *)monitor->facts.listening);
	monitor->facts.listening = strdup(listening);
	monitor->facts.workers = workers;
	monitor->facts.max_connections = limits->connections.total;
	monitor->facts.max_pending = limits->pending.total;
	monitor->facts.max_memory = limits->memory.total;
	monitor->facts.configured = time(NULL);
}

void monitor_count_reload(struct monitor *monitor, bool ok)
{
	if (ok)
		monitor->facts.reloads++;
	else
		monitor->facts.reloads_failed++;
}

void monitor_close(struct monitor *monitor)
{
	for (size_t i = 0; i < METRICS_ADDRESSES_MAX; i++) {
		endpoint_destroy(monitor->endpoints[i]);
		monitor->endpoints[i] = NULL;
	}
}

void monitor_set_draining(struct monitor *monitor)
{
	monitor->facts.draining = true;
}
