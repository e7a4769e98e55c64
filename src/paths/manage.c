/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * manage.c - "convertize paths --manage": keeps endpoints, rules and tables right for as long as it runs
 *
 * A change of the network comes in many messages, and the states in between don't count: an address that DHCP renews may be gone for a
 * moment. So the manager reads the kernel's state SETTLE_MS after the last message, or SETTLE_MAX_MS after the first. It also
 * reads it every LOOK_MS, since no message reports that somebody has changed an endpoint; after a SIGHUP; and when the clock was set, as
 * at a resume (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET).
 *
 * Besides, it watches subflows, since no message reports that a network drops all packets: outage.c.
 *
 * After a failure it tries again, first after a second, then after twice as long each time, up to a minute.
 */
#include "config.h"

#include "paths/plan.h"

#include "common/clock.h"
#include "common/os.h"
#include "host/survey.h"
#include "paths/mend.h"

#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SETTLE_MS 50
#define SETTLE_MAX_MS 300
#define LOOK_MS 30000
#define RETRY_MS 1000
#define RETRY_MAX_MS 60000
#define END_TRIES 4
#define END_AGAIN_MS 500
#define STATUS_BYTES (64 + QUOTAS_MAX * (IF_NAMESIZE + QUOTA_TEXT_MAX + 4)) /* of the report to the service manager */
#define FIRST_PROBE 3 /* index of the first probe in the array for poll(2) */

/* --- subflows over silent networks ------------------------------------------------------ */

/*
 * When a silent network works again, its subflow shows that only after its retransmission timer expires, or after Linux repeats its SYN,
 * perhaps many seconds later. A SYN of our own to the same peer and port shows it at once, and passes all firewalls that the subflow's SYN
 * passed (host/path_probe.c). outage.c decides when.
 */

#define AGAIN_MS 1000 /* the next look after the kernel failed to answer */
#define NEEDED_MS 100 /* until the next look, while an endpoint stays only until a connection has another subflow */

/* SYNs of plain TCP that wait for an answer, at most one for each network. */
struct probes {
	struct {
		union sockaddr_ip local;
		struct path_probe probe;
	} list[PATHS_OUTAGES_MAX];
	size_t count;
	bool told; /* that none can be sent */
};

struct renewer {
	struct paths_outages outages;
	struct paths_subflows subflows;
	struct probes probes;
};

static void drop(struct probes *probes, size_t at)
{
	path_probe_close(&probes->list[at].probe);
	probes->list[at] = probes->list[--probes->count];
}

/* Reports, once, that SYNs can't be sent because something around this process forbids it. Other errors may be over soon. */
static void tell_forbidden(struct probes *probes, int error)
{
	if (probes->told || (error != EAFNOSUPPORT && error != EPERM && error != EACCES))
		return;
	probes->told = true;
	paths_say("silent networks can't be asked whether they work again: %s; what confines this service has to permit TCP "
		  "(RestrictAddressFamilies=AF_INET AF_INET6)",
		  strerror(error));
}

/* Sends a SYN over the device @index, and drops an earlier one from the same address. */
static void probe_send(struct probes *probes, const union sockaddr_ip *local, unsigned int index, const union sockaddr_ip *peer)
{
	const struct in6_addr source = sockaddr_ip_in6(local);

	for (size_t i = probes->count; i-- > 0;)
		if (sockaddr_ip_equal(&probes->list[i].local, local))
			drop(probes, i);
	if (probes->count == PATHS_OUTAGES_MAX)
		return;
	if (path_probe_send_to(&probes->list[probes->count].probe, peer, &source, (int)index, true))
		probes->list[probes->count++].local = *local;
	else
		tell_forbidden(probes, errno);
}

/* Sets @out to the probes' descriptors for poll(2), so that each answer counts at once. Returns their number. */
static size_t probes_poll(const struct probes *probes, struct pollfd out[static PATHS_OUTAGES_MAX])
{
	for (size_t i = 0; i < probes->count; i++)
		out[i] = (struct pollfd){ .fd = probes->list[i].probe.fd, .events = POLLOUT };
	return probes->count;
}

/* Returns the message about a silent network; NULL: it isn't silent. */
static const char *silence_of(const struct paths_network *state)
{
	if (state->kept_since)
		return "silent, as all are; subflows are kept here, and their peers are asked until an answer comes";
	if (state->silent)
		return "silent; connections go on over the others, and ask here until an answer comes";
	return NULL;
}

/* Prints the networks that have fallen silent or are heard again since the last look. */
static void tell_silence(struct renewer *renewer, const struct paths_mender *mender)
{
	for (size_t i = 0; i < renewer->outages.count; i++) {
		struct paths_network *state = &renewer->outages.list[i];
		const struct host_network *network = paths_wanted_used(&mender->wanted, &state->local);
		const char *now = silence_of(state);
		char text[PREFIX_STRLEN];

		if (now != state->told && network)
			paths_say("%s %s: %s", network->link.name, host_format_address(&state->local, text), now ? now : "an answer has come");
		state->told = now;
	}
}

static void send_probes(struct renewer *renewer, const struct paths_mender *mender, const struct paths_renewal *renewals,
			size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct host_network *network = paths_wanted_used(&mender->wanted, &renewals[i].local);

		if (renewals[i].ask && network)
			probe_send(&renewer->probes, &renewals[i].local, network->link.index, &renewals[i].peer);
	}
}

/* Takes the answers to probes, without waiting; a refusal is an answer, too. */
static void take_answers(struct renewer *renewer, int64_t now)
{
	struct probes *probes = &renewer->probes;

	for (size_t i = probes->count; i-- > 0;) {
		struct path_probe *probe = &probes->list[i].probe;

		if (path_probe_look(probe) || probe->refused)
			paths_outages_answered(&renewer->outages, &probes->list[i].local, now);
		if (probe->fd < 0)
			drop(probes, i);
	}
}

/* Do fewer networks that are gone still carry a connection's last subflow than paths_mend() found? */
static bool are_spared(const struct renewer *renewer, const struct paths_wanted *wanted)
{
	bool needed[PATHS_OUTAGES_MAX];

	return wanted->needed_count &&
	       paths_needed_find(&renewer->subflows, wanted->needed, wanted->needed_count, needed) < wanted->needed_count;
}

/*
 * Looks at all subflows, and renews those of networks that have fallen silent, by their endpoints. paths_mend() has run before.
 * Returns the milliseconds until the next look, or -errno if an endpoint is missing, which paths_mend() cures.
 */
static int renew_silent(struct renewer *renewer, struct paths_mender *mender)
{
	struct paths_managed own[PATHS_OUTAGES_MAX];
	struct paths_renewal renewals[PATHS_OUTAGES_MAX];
	int64_t now = clock_ns();
	size_t count = paths_managed_addresses(mender, own), due;
	int ret, interval;

	if (paths_kernel_subflows(&renewer->subflows) < 0)
		return AGAIN_MS;
	take_answers(renewer, now);
	due = paths_outages_find(&renewer->outages, &renewer->subflows, own, count, now, renewals);
	tell_silence(renewer, mender);
	send_probes(renewer, mender, renewals, due);
	ret = due ? paths_renew_endpoints(mender, renewals, due) : 0;
	if (ret < 0)
		return ret;
	mender->is_due = are_spared(renewer, &mender->wanted);
	interval = paths_outages_interval_ms(&renewer->outages, &renewer->subflows, now);
	return mender->wanted.needed_count && interval > NEEDED_MS ? NEEDED_MS : interval;
}

/* --- the manager ------------------------------------------------------------------------ */

struct manager {
	struct paths_mender mender;
	struct renewer renewer;
	struct traffic_keeper keeper;
	int watch, signals, clock;
	int64_t look_at;     /* when to read the kernel's state: CLOCK_MONOTONIC in nanoseconds, as all times here */
	int64_t settled_at;  /* the latest time for that after the first of several messages; 0: there were none */
	int64_t watchdog_at; /* 0: there is none */
	int64_t renew_at;    /* when to look at the subflows */
	int retry_ms;        /* 0: nothing has failed */
	char told[STATUS_BYTES]; /* the last report to the service manager */
};

static int fail_with(const char *text)
{
	fprintf(stderr, "convertize: paths: %s\n", text);
	return 1;
}

/* Does the same, but returns the exit status after which the service manager doesn't start the service again. */
static int fail_for_good(const char *text)
{
	fail_with(text);
	return 2;
}

/* --- requirements ----------------------------------------------------------------------- */

/* Checks the requirements. Returns 0, or an exit status after naming the missing one, with the remedy. */
static int check_host(enum paths_task task, bool dry_run)
{
	int enabled = sysctl_read("net.mptcp.enabled");

	if (enabled == -ENOENT && task != PATHS_TASK_REMOVE)
		return fail_for_good("this kernel has no Multipath TCP (CONFIG_MPTCP): there is nothing to manage; use another kernel");
	if (enabled == 0 && task != PATHS_TASK_REMOVE)
		return fail_for_good("Multipath TCP is switched off (net.mptcp.enabled = 0); remedy: sysctl -w net.mptcp.enabled=1, then start "
				     "this again");
	if (!dry_run && !capabilities_has(CAPABILITIES_BIT(CAP_NET_ADMIN)))
		return fail_with("changing endpoints, rules and routes needs CAP_NET_ADMIN; run it as root, or systemctl enable --now "
			    "convertize-paths; --dry-run shows the commands");
	return 0;
}

static int lock(void)
{
	int fd = paths_memory_lock();

	if (fd == -EWOULDBLOCK)
		fail_with("another one manages paths here already; see systemctl status convertize-paths");
	else if (fd < 0)
		fprintf(stderr, "convertize: paths: " PATHS_MEMORY_DIRECTORY ": %s; the directory must be writable, and be made by "
				"RuntimeDirectory= for a service\n",
			strerror(-fd));
	return fd;
}

/* --- the service manager: sd_notify(3), without libsystemd ----------------------------- */

/* Sends @text to the service manager. Returns false if that fails. */
static bool notify(const char *text)
{
	struct service_manager manager;
	bool taken;
	int fd;

	service_manager_read(&manager, getenv("NOTIFY_SOCKET"));
	fd = service_manager_connect(&manager);
	if (fd < 0)
		return false;
	taken = send(fd, text, strlen(text), MSG_NOSIGNAL) >= 0;
	close(fd);
	return taken;
}

/* Returns the interval at which to send WATCHDOG=1; -1: never. */
static int watchdog_interval_ms(void)
{
	const char *interval = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	unsigned long long us = interval ? strtoull(interval, NULL, 10) : 0;

	if (!us || !getenv("NOTIFY_SOCKET") || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return -1;
	return us / 2000 < 1000000 ? (int)(us / 2000) : 1000000;
}

/* --- the loop --------------------------------------------------------------------------- */

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	/* a child (nmcli) inherits the blocked signals, which is harmless: it ends by itself after a short time */
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Returns a descriptor that becomes readable when the clock is set. */
static int open_clock(void)
{
	struct itimerspec never = { .it_value.tv_sec = INT32_MAX };
	int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd >= 0)
		timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
	return fd;
}

static int64_t in_ms(int ms)
{
	return clock_ns() + ms * CLOCK_NS_PER_MS;
}

/* Reports the result of a look to the service manager, unless it is the same as before: the manager may be slow to read. */
static void tell_used(struct manager *manager)
{
	const struct paths_choice *choice = &manager->mender.choice;
	char status[STATUS_BYTES], text[QUOTA_TEXT_MAX];
	size_t used = 0, len;

	for (size_t i = 0; i < manager->mender.wanted.count; i++)
		used += manager->mender.wanted.networks[i].verdict == HOST_USED;
	len = (size_t)snprintf(status, sizeof(status), "READY=1\nSTATUS=%zu network addresses used", used);
	for (size_t i = 0; i < choice->quotas.count; i++)
		len += (size_t)snprintf(status + len, sizeof(status) - len, "; %s %s", choice->quotas.list[i].device,
					quota_text(&choice->quotas.list[i],
						   quota_used(&choice->quotas.list[i], &manager->keeper.traffic, traffic_today()), text));
	if (strcmp(status, manager->told) != 0 && notify(status))
		memcpy(manager->told, status, sizeof(status));
}

static void look_at_host(struct manager *manager)
{
	int ret = paths_mend(&manager->mender);

	manager->settled_at = 0;
	manager->keeper.look_at = clock_ns(); /* connections may have outlived a network */
	manager->retry_ms = ret == 0 ? 0 : !manager->retry_ms ? RETRY_MS : manager->retry_ms * 2;
	if (manager->retry_ms > RETRY_MAX_MS)
		manager->retry_ms = RETRY_MAX_MS;
	manager->look_at = in_ms(manager->retry_ms ? manager->retry_ms : LOOK_MS);
	tell_used(manager);
}

/* Looks at the subflows. If an endpoint couldn't be made again, we read the kernel's state at once: paths_mend() makes it. */
static void renew(struct manager *manager)
{
	int ret = renew_silent(&manager->renewer, &manager->mender);

	if (ret < 0 || manager->mender.is_due)
		manager->look_at = clock_ns();
	manager->renew_at = in_ms(ret < 0 ? RETRY_MS : ret);
}

/* Takes the kernel's messages. After a possible change, schedules a look for when no message has come for a while. */
static void hear(struct manager *manager)
{
	int64_t quiet = in_ms(SETTLE_MS);

	if (!paths_kernel_heard(manager->watch))
		return;
	if (!manager->settled_at)
		manager->settled_at = in_ms(SETTLE_MAX_MS);
	manager->look_at = quiet < manager->settled_at ? quiet : manager->settled_at;
}

/* Handles pending signals. Returns false if the manager must end. */
static bool take_signals(struct manager *manager)
{
	struct signalfd_siginfo info;

	while (read(manager->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo != SIGHUP)
			return false;
		manager->mender.others_at = 0;
		manager->look_at = clock_ns();
	}
	return true;
}

static void hear_clock(struct manager *manager)
{
	uint64_t expirations;

	/* ECANCELED: the clock was set; only a new descriptor reports the next time */
	if (read(manager->clock, &expirations, sizeof(expirations)) >= 0 || errno != ECANCELED)
		return;
	close(manager->clock);
	manager->clock = open_clock();
	manager->look_at = in_ms(SETTLE_MS);
}

static int timeout_ms(const struct manager *manager)
{
	int64_t at = manager->look_at;

	if (manager->watchdog_at && manager->watchdog_at < at)
		at = manager->watchdog_at;
	if (manager->renew_at < at)
		at = manager->renew_at;
	if (manager->keeper.look_at < at)
		at = manager->keeper.look_at;
	at -= clock_ns();
	return at <= 0 ? 0 : (int)(at / CLOCK_NS_PER_MS) + 1;
}

/* Runs until a signal comes. Returns 0, or -errno if it can't wait for events. */
static int run(struct manager *manager, int watchdog_ms)
{
	for (;;) {
		struct pollfd ready[FIRST_PROBE + PATHS_OUTAGES_MAX] = { { .fd = manager->watch, .events = POLLIN },
								    { .fd = manager->signals, .events = POLLIN },
								    { .fd = manager->clock, .events = POLLIN } };
		size_t probes = probes_poll(&manager->renewer.probes, ready + FIRST_PROBE);

		if (poll(ready, FIRST_PROBE + probes, timeout_ms(manager)) < 0 && errno != EINTR)
			return -errno;
		if (ready[1].revents && !take_signals(manager))
			return 0;
		if (ready[0].revents)
			hear(manager);
		if (ready[2].revents)
			hear_clock(manager);
		for (size_t i = 0; i < probes; i++)
			if (ready[FIRST_PROBE + i].revents)
				manager->renew_at = 0;
		if (manager->watchdog_at && clock_ns() >= manager->watchdog_at) {
			notify("WATCHDOG=1\n");
			manager->watchdog_at = in_ms(watchdog_ms);
		}
		if (clock_ns() >= manager->keeper.look_at && traffic_keeper_look(&manager->keeper, &manager->mender))
			manager->look_at = clock_ns();
		if (clock_ns() >= manager->look_at)
			look_at_host(manager);
		if (clock_ns() >= manager->renew_at)
			renew(manager);
	}
}

/* --- all of it -------------------------------------------------------------------------- */

/* Takes away what we made. Tries again after a failure, as the kernel may lack memory or descriptors for a moment. */
static int end(struct manager *manager)
{
	struct paths_subflows *subflows = &manager->renewer.subflows;
	int ret = -1;

	for (int i = 0; i < END_TRIES && ret < 0; i++) {
		if (i)
			poll(NULL, 0, END_AGAIN_MS);
		/* if the kernel doesn't show subflows, remove all endpoints */
		ret = paths_unmend(&manager->mender, paths_kernel_subflows(subflows) < 0 ? NULL : subflows);
	}
	return ret;
}

static int manage(struct manager *manager)
{
	int watchdog_ms = watchdog_interval_ms(), error, ret;

	manager->watch = paths_kernel_watch(); /* before the first look, so as to miss no change in between */
	manager->clock = open_clock();
	if (manager->signals < 0 || manager->watch < 0)
		return fail_with("there is no descriptor to hear from the kernel; raise the limit of open files, ulimit -n");
	manager->watchdog_at = watchdog_ms > 0 ? in_ms(watchdog_ms) : 0;
	look_at_host(manager);
	error = run(manager, watchdog_ms);
	if (error < 0)
		paths_say("waiting for events failed: %s", strerror(-error));
	notify("STOPPING=1\n");
	traffic_keeper_end(&manager->keeper, &manager->mender);
	ret = end(manager);
	while (manager->renewer.probes.count)
		drop(&manager->renewer.probes, 0);
	close(manager->watch);
	close(manager->signals);
	if (manager->clock >= 0)
		close(manager->clock);
	return ret < 0 || error < 0;
}

int paths_manage(const struct paths_choice *choice, enum paths_task task, bool dry_run)
{
	static struct manager manager;
	const bool stays = task == PATHS_TASK_MANAGE && !dry_run;
	int held = -1, ret = check_host(task, dry_run);

	if (ret)
		return ret;
	/* Before anything that takes time: a signal would end the process, even SIGHUP. */
	if (stays)
		manager.signals = open_signals();
	if (!dry_run && (held = lock()) < 0)
		return 1;
	if (paths_mender_init(&manager.mender, choice, dry_run) < 0)
		ret = 1;
	else if (task == PATHS_TASK_REMOVE)
		ret = paths_unmend(&manager.mender, NULL) < 0;
	else {
		traffic_keeper_begin(&manager.keeper, &manager.mender, !dry_run);
		ret = stays ? manage(&manager) : paths_mend(&manager.mender) < 0;
	}
	paths_mender_fini(&manager.mender);
	if (held >= 0)
		paths_memory_unlock(held);
	return ret;
}
