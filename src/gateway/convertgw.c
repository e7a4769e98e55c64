/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * convertgw.c - convertgw, a transparent gateway: starts it, obeys signals, and stops it
 *
 * The gateway is a composition: hold withholds SYNs, serve accepts and relays connections, the engine asks the converter. One process:
 *
 *     main thread       signals, reloads, status by HTTP, policy rules, trials of failed paths
 *     resolver thread   looks up converters' names
 *     workers           judge SYNs, dial, relay
 *
 * Nothing is diverted before all of that is ready. The kernel removes the tables of nftables when the process ends, however it ends, and
 * the hosts behind the gateway go on by routing. A first SIGTERM or SIGINT drains: new connections are routed, open ones may end. A second
 * one cuts them. SIGHUP reloads.
 */
#include "config.h"

#include "client/cache.h"
#include "client/converters.h"
#include "common/clock.h"
#include "common/os.h"
#include "common/thread.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "gateway/gateway.h"
#include "gateway/gateway_rules.h"
#include "hold/hold_table.h"
#include "relay/relay.h"
#include "serve/listening.h"
#include "serve/syn_judge.h"
#include "serve/worker.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define EXIT_USAGE 2
#define LISTENERS 2
#define DRAIN_LOOK_MS 100
#define END_SECONDS 10 /* besides drain-timeout, to reset the connections that are left: EXTEND_TIMEOUT_USEC= */

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

struct convertgw {
	int argc;
	char **argv;
	struct event_base *base;
	struct event *signals[SIGNALS];
	struct event *trials;   /* when failed paths are looked at */
	struct event *woken;    /* reads wake_fd */
	int wake_fd;            /* an eventfd: the engine has begun a trial */
	struct event *policies; /* reads policies_fd */
	int policies_fd;        /* readable when a program has changed policy rules; -1: we don't hear of it */
	struct event *drain;    /* looks whether sessions are left; NULL: the gateway isn't stopping */
	bool accepts_no_more;   /* it is stopping, and no client's third ACK is on its way any more */
	uint64_t drain_until_ms;
	struct gateway gateway;
	struct gateway_settings *settings, *earlier; /* those in force; those before, which the resolver may be copying */
	struct serve_settings serve;
	struct serve_plugs plugs;
	struct session_shared shared;
	struct workers *workers;
	struct listener *listeners[LISTENERS];
	struct gateway_rules *rules;
	pthread_barrier_t barrier; /* of all workers, for a reload */
};

static const struct place nowhere; /* of problems that no option has */

static struct convertgw self = { .wake_fd = -1, .policies_fd = -1, .gateway.copying = PTHREAD_MUTEX_INITIALIZER };

/* ----- the engine's surroundings ----- */

static void log_engine(const char *format, ...)
{
	char text[512];
	va_list args;

	if (!log_enabled(LOG_LEVEL_DEBUG))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_debug("%s", text);
}

static void trial_begins(void)
{
	eventfd_write(self.wake_fd, 1);
}

static void look_at_trials(evutil_socket_t fd, short what, void *arg)
{
	const int64_t at = path_trials_look(), now = clock_ns();
	const int64_t ms = at > now ? (at - now) / CLOCK_NS_PER_MS + 1 : 1;
	const struct timeval left = { .tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000 * 1000) };
	eventfd_t ignored;

	(void)arg;
	if (what & EV_READ)
		eventfd_read(fd, &ignored);
	if (at)
		event_add(self.trials, &left);
}

static void start_engine(const struct gateway_settings *settings)
{
	user_cache_init(&settings->client);
	dial_init(&(struct dial_host){
		.settings = &settings->client, .log = log_engine, .clock = clock_ns, .trial_begins = trial_begins,
	});
}

/* ----- settings ----- */

/* The settings of src/serve that follow from these. */
static struct serve_settings serve_settings_of(const struct gateway_settings *settings, unsigned number, bool refuses)
{
	struct rlimit files = { .rlim_cur = RLIM_INFINITY };

	getrlimit(RLIMIT_NOFILE, &files);
	return (struct serve_settings){
		.number = number,
		.request_ms = settings->connect_timeout * 1000,
		.connect_ms = settings->connect_timeout * 1000,
		.patience_ms = settings->connect_timeout * 1000,
		.hold_ms = settings->connect_timeout * 1000,
		.watch = {
			.stall_ms = settings->stall_timeout * UINT64_C(1000),
			.half_close_ms = settings->half_close_timeout * UINT64_C(1000),
			.idle_ms = settings->idle_timeout * UINT64_C(1000),
		},
		.log_rate = settings->log_rate,
		.synacks = 6,
		.pipes_max = relay_pipes_fit(files.rlim_cur),
		.refuses_syns = refuses,
	};
}

/* Do both name the same converters? Then their addresses are known, and we resolve no name. */
static bool same_converters(const struct settings *a, const struct settings *b)
{
	return a->converter_count == b->converter_count &&
	       memcmp(a->converters, b->converters, a->converter_count * sizeof(a->converters[0])) == 0;
}

/* Takes over new settings, in the worker's thread. Worker 0 changes what the engine reads, while all others wait. */
static void take_settings(const struct worker_context *worker, void *arg)
{
	const bool first = arg != NULL;

	pthread_barrier_wait(&self.barrier);
	if (worker->number == 0 && !first) {
		if (!same_converters(&self.settings->client, &self.earlier->client))
			converters_replace(&self.settings->client);
		start_engine(self.settings);
	}
	pthread_barrier_wait(&self.barrier);
	session_pool_configure(worker->pool, &self.serve);
	syn_judge_again(worker->judge);
}

/* The service manager may have made it. Without a directory, the gateway forgets at its end what it has learned. */
static void make_cache_directory(const struct gateway_settings *settings)
{
	if (strcmp(settings->texts.cache.name, "none") != 0)
		mkdir(settings->texts.cache.name, 0700);
}

static void apply_log(const struct gateway_settings *settings)
{
	log_set_level((enum log_level)settings->log_level);
	log_set_format((enum log_format)settings->log_format);
}

#define CLIENTS_TEXT_MAX (GATEWAY_INTERFACES_MAX * (IFNAMSIZ + 2) + sizeof("this host"))

/* Names the clients: "br0, docker0, this host". */
static void describe_clients(const struct gateway_settings *settings, char text[static CLIENTS_TEXT_MAX])
{
	char *end = text;

	*end = '\0';
	for (size_t i = 0; i < settings->lan_count; i++)
		end += sprintf(end, "%s%s", i ? ", " : "", settings->lan[i]);
	if (settings->host)
		sprintf(end, "%sthis host", end > text ? ", " : "");
}

/* Puts settings in force, after monitor_open(). @first: at the start, before there are rules; a reload has replaced these already */
static void put_in_force(struct gateway_settings *settings, bool refuses, bool first)
{
	char clients[CLIENTS_TEXT_MAX];

	pthread_mutex_lock(&self.gateway.copying);
	gateway_settings_free(self.earlier);
	pthread_mutex_unlock(&self.gateway.copying);
	self.earlier = self.settings;
	self.settings = settings;
	self.serve = serve_settings_of(settings, self.serve.number + 1, refuses);
	atomic_store(&self.gateway.settings, settings);
	limits_configure(self.shared.limits, &settings->limits);
	apply_log(settings);
	workers_order(self.workers, take_settings, first ? &self : NULL);
	eventfd_write(self.gateway.resolver, 1);
	describe_clients(settings, clients);
	monitor_commit(self.gateway.monitor, clients, workers_count(self.workers), &settings->limits);
}

static struct hold_rules_queues queues(void)
{
	return (struct hold_rules_queues){ gateway_queues_first(), (uint16_t)workers_count(self.workers) };
}

static void print_log(const char *line)
{
	log_error("%s", line);
}

static void reload(void)
{
	struct problems problems = { .print = print_log };
	struct gateway_settings *settings = gateway_settings_read(self.argc, self.argv, &problems);
	const struct hold_rules_queues all = queues();
	bool refuses;

	gateway_notify("RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)clock_now_us());
	if (settings && (settings->port != self.settings->port || settings->workers != self.settings->workers ||
			 settings->mark != self.settings->mark || settings->first_queue != self.settings->first_queue))
		log_warning("--port, --workers, --mark and --queue change with the next start");
	if (settings) {
		settings->port = self.settings->port;
		settings->mark = self.settings->mark;
	}
	if (settings && monitor_open(self.gateway.monitor, settings->metrics, settings->metrics_count, &problems) &&
	    gateway_rules_install(&self.rules, settings, &all, &refuses, &problems)) {
		make_cache_directory(settings);
		put_in_force(settings, refuses, false);
		monitor_count_reload(self.gateway.monitor, true);
		log_info("reloaded");
	} else {
		monitor_abandon(self.gateway.monitor);
		monitor_count_reload(self.gateway.monitor, false);
		gateway_settings_free(settings);
		log_error("not reloaded, the old configuration stays in force");
	}
	gateway_notify("READY=1");
}

/* ----- policy rules that another program has removed ----- */

static void on_policies(evutil_socket_t fd, short what, void *arg)
{
	(void)what, (void)arg;
	gateway_policies_restore(fd, self.settings);
}

static bool watch_policies(void)
{
	self.policies_fd = gateway_policies_watch();
	if (self.policies_fd < 0)
		return false;
	self.policies = event_new(self.base, self.policies_fd, EV_READ | EV_PERSIST, on_policies, NULL);
	return self.policies && event_add(self.policies, NULL) == 0;
}

/* ----- the end ----- */

static void stop_withholding(const struct worker_context *worker, void *arg)
{
	(void)arg;
	syn_judge_stop(worker->judge, true);
}

static void stop_accepting(const struct worker_context *worker, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < LISTENERS; i++)
		if (self.listeners[i])
			listener_stop(self.listeners[i], worker, true);
}

static void look_at_drain(evutil_socket_t fd, short what, void *arg)
{
	const bool over = clock_now_ms() >= self.drain_until_ms;
	size_t left;

	(void)fd, (void)what, (void)arg;
	if (!self.accepts_no_more && (over || !hold_table_count(self.shared.withheld))) {
		self.accepts_no_more = true;
		workers_order(self.workers, stop_accepting, NULL);
	}
	left = limits_members(self.shared.limits);
	if (left && !over)
		return;
	if (left)
		log_warning("stopping: %zu connection%s cut", left, left == 1 ? " is" : "s are");
	event_base_loopbreak(self.base);
}

/* From now on connections are routed; those that are open may end by themselves. */
static void drain(const char *reason)
{
	static const struct timeval often = { .tv_usec = DRAIN_LOOK_MS * 1000 };

	/* The manager's own time-out (TimeoutStopSec=) may be shorter. If it killed us, streams that are cut would look complete. */
	gateway_notify("STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu", (self.settings->drain_timeout + END_SECONDS) * 1000000ULL);
	monitor_set_draining(self.gateway.monitor);
	gateway_rules_stop_diverting(self.rules);
	workers_order(self.workers, stop_withholding, NULL);
	self.drain_until_ms = clock_now_ms() + self.settings->drain_timeout * UINT64_C(1000);
	self.drain = event_new(self.base, -1, EV_PERSIST, look_at_drain, NULL);
	log_info("%s: stopping; new connections are routed, %zu may go on for %u s", reason, limits_members(self.shared.limits),
		 self.settings->drain_timeout);
	if (!self.drain || event_add(self.drain, &often) < 0)
		event_base_loopbreak(self.base);
	look_at_drain(-1, 0, NULL);
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	(void)what, (void)arg;
	if (number == SIGHUP && !self.drain)
		reload();
	else if (number != SIGHUP && self.drain)
		event_base_loopbreak(self.base);
	else if (number != SIGHUP)
		drain(strsignal((int)number));
}

/* ----- the start ----- */

static void begin_to_serve(const struct worker_context *worker, void *arg)
{
	bool *failed = arg;

	if (hold_start(worker->judge->hold) < 0)
		*failed = true;
	for (size_t i = 0; i < LISTENERS; i++)
		if (self.listeners[i])
			listener_accept(self.listeners[i], worker);
}

/* Listens on loopback, where only diverted packets arrive. IPv6 may be off on this host. Returns false after adding the error. */
static bool listen_on_loopback(struct problems *problems)
{
	static const char *const addresses[LISTENERS] = { "127.0.0.1", "::1" };
	static const struct place port_place = { .name = "port" };

	for (size_t i = 0; i < LISTENERS; i++) {
		struct listen_address where = { 0 };
		struct problems found = { 0 };

		sockaddr_ip_parse(&where.address, addresses[i], (uint16_t)self.settings->port);
		self.listeners[i] = listener_create(&where, false, self.workers, NULL, 0, &found);
		if (self.listeners[i] && listener_listen(self.listeners[i], &found))
			continue;
		listener_destroy(self.listeners[i]);
		self.listeners[i] = NULL;
		if (i == 0) {
			if (strstr(found.first, strerror(EADDRINUSE)))
				problems_add(problems, &port_place, "another program listens on port %u of %s, as another convertgw would (see: "
					     "ss -tlnp sport = %u); end it, or choose another port",
					     self.settings->port, addresses[i], self.settings->port);
			else
				problems_add(problems, &nowhere, "%s", found.first);
			return false;
		}
	}
	return true;
}

static bool create_shared(const struct gateway_settings *settings)
{
	self.plugs = gateway_plugs(&self.gateway);
	self.shared.plugs = &self.plugs;
	self.shared.limits = limits_create();
	self.shared.withheld = hold_table_create();
	self.base = event_base_new();
	self.gateway.monitor = self.base ? monitor_create(self.base, &gateway_status, &self.gateway) : NULL;
	self.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!self.gateway.monitor || !self.shared.limits || !self.shared.withheld || !self.base ||
	    self.wake_fd < 0)
		return false;
	limits_configure(self.shared.limits, &settings->limits);
	self.trials = event_new(self.base, -1, 0, look_at_trials, NULL);
	self.woken = event_new(self.base, self.wake_fd, EV_READ | EV_PERSIST, look_at_trials, NULL);
	for (size_t i = 0; i < SIGNALS; i++) {
		self.signals[i] = evsignal_new(self.base, signals[i], on_signal, NULL);
		if (!self.signals[i] || event_add(self.signals[i], NULL) < 0)
			return false;
	}
	return self.trials && self.woken && event_add(self.woken, NULL) == 0;
}

static bool create_workers(const struct gateway_settings *settings, struct problems *problems)
{
	static const struct place queue_place = { .name = "queue" };
	const size_t wished = settings->workers ? settings->workers : workers_default();
	const size_t count = wished < GATEWAY_WORKERS_MAX ? wished : GATEWAY_WORKERS_MAX;
	int error;

	self.workers = workers_create(count, &self.shared);
	if (!self.workers)
		return false;
	self.gateway.workers = count;
	error = gateway_queues_own((uint16_t)settings->first_queue, count, settings->mark, (uint16_t)settings->port);
	if (error == -EBUSY)
		problems_add(problems, &queue_place, "other programs have the netfilter queues from %u on; choose another number",
			     settings->first_queue);
	else if (error)
		problems_add(problems, &queue_place, "no netfilter queues: %s; the gateway needs CAP_NET_ADMIN, CAP_NET_RAW and the kernel's "
			     "nfnetlink_queue",
			     strerror(-error));
	for (size_t i = 0; i < count && !error; i++)
		error = hold_open(workers_context(self.workers, i)->judge->hold, i);
	pthread_barrier_init(&self.barrier, NULL, (unsigned)count);
	return !error;
}

/* Returns false after adding the error to @problems, if it isn't a lack of memory or descriptors. Takes over @settings. */
static bool start(struct gateway_settings *settings, struct problems *problems)
{
	struct hold_rules_queues all;
	bool refuses = false, failed = false;

	atomic_store(&self.gateway.settings, settings);
	self.settings = settings;
	if (!create_shared(settings) || !create_workers(settings, problems))
		return false;
	converters_init(&settings->client);
	start_engine(settings);
	gateway_status_watch(self.base);
	path_probe_mark(gateway_own_mark(settings));
	if (!monitor_open(self.gateway.monitor, settings->metrics, settings->metrics_count, problems) || !listen_on_loopback(problems) ||
	    gateway_resolver_start(&self.gateway) < 0)
		return false;
	self.settings = NULL;
	put_in_force(settings, true, true);
	workers_order(self.workers, begin_to_serve, &failed);
	all = queues();
	if (failed || !gateway_rules_install(&self.rules, settings, &all, &refuses, problems))
		return false;
	if (!refuses)
		log_warning("this kernel can't refuse SYNs (CONFIG_NFT_REJECT_INET): a client of a closed port waits");
	if (!watch_policies())
		log_warning("policy rules that another program removes don't come back, as there is no netlink socket");
	return true;
}

static void stop(void)
{
	gateway_rules_remove(self.rules);
	if (self.workers) {
		workers_order(self.workers, stop_withholding, NULL);
		workers_order(self.workers, stop_accepting, NULL);
	}
	workers_destroy(self.workers);
	for (size_t i = 0; i < LISTENERS; i++)
		listener_destroy(self.listeners[i]);
	monitor_destroy(self.gateway.monitor);
}

static void print_problem(const char *line)
{
	fprintf(stderr, "convertgw: %s\n", line);
}

/* Facts go to the standard output, since they are no faults. */
static void print_fact(const char *line)
{
	printf("convertgw: %s\n", line);
}

static void log_finding(const char *line)
{
	log_warning("%s", line);
}

static void log_fact(const char *line)
{
	log_info("%s", line);
}

/* Carries out a command line that doesn't run the gateway. Returns the exit status. */
static int act(const struct gateway_settings *settings)
{
	static const struct metrics_address usual = { .path = GATEWAY_METRICS_DEFAULT };

	if (settings->action == GATEWAY_STATUS)
		return endpoint_ask("convertgw", settings->metrics_count ? &settings->metrics[0] : &usual);
	if (settings->action == GATEWAY_HELP)
		options_print_help(&gateway_options);
	else if (settings->action == GATEWAY_VERSION)
		puts("convertgw " PACKAGE_VERSION);
	else
		gateway_check_host(settings, print_problem, print_fact);
	return EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
	struct problems problems = { .print = print_problem };
	struct gateway_settings *settings = gateway_settings_read(argc, argv, &problems);
	bool started;

	/* This process is ours alone: no library replaces the C library's clock_gettime(), and nobody changes the user. */
	clock_use_library();
	thread_process_is_ours = true;
	if (!settings)
		return EXIT_USAGE;
	if (settings->action != GATEWAY_RUN) {
		const int status = act(settings);

		gateway_settings_free(settings);
		return status;
	}
	log_start("convertgw");
	make_cache_directory(settings);
	apply_log(settings);
	open_files_raise();
	capabilities_keep(CAPABILITIES_BIT(CAP_NET_ADMIN) | CAPABILITIES_BIT(CAP_NET_RAW));
	signal(SIGPIPE, SIG_IGN);
	self.argc = argc;
	self.argv = argv;
	started = start(settings, &problems);
	if (!started && !problems.count)
		problems_add(&problems, &nowhere, "it can't start without more memory, or open files (LimitNOFILE=, ulimit -n)");
	if (started) {
		log_info("ready: %zu worker%s", workers_count(self.workers), workers_count(self.workers) == 1 ? "" : "s");
		gateway_check_host(settings, log_finding, log_fact);
		gateway_notify("READY=1");
		event_base_dispatch(self.base);
	}
	stop();
	return started ? EXIT_SUCCESS : EXIT_FAILURE;
}
