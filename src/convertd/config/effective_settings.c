/* SPDX-License-Identifier: BSD-3-Clause */
/* effective_settings.c - the settings in force, with the values that follow from them on this host; sessions use these */
#include "config.h"

#include "convertd/config/effective_settings.h"

#include "common/os.h"
#include "convertd/config/convertd_settings.h"
#include "convertd/policy/families.h"
#include "daemon/log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * Sessions beyond the limit of connections, which exist only until their clients have the refusal: at least
 * REFUSALS_MIN, and one in REFUSALS_PART of the limit.
 */
#define REFUSALS_MIN 8
#define REFUSALS_PART 64

/* Linux's defaults of net.ipv4.tcp_syn_retries and tcp_synack_retries, used if these can't be read. */
#define SYN_RETRIES_DEFAULT 6
#define SYNACK_RETRIES_DEFAULT 5

/* Reads which options the SYNs of this host can have. An unreadable sysctl of TCP counts as its default, that of MPTCP as off. */
static struct request_features read_features(const struct convertd_settings *settings, const struct effective_syns *syns)
{
	/*
	 * A silent request is one in a SYN. If no SYN data were taken, clients that rely on silence would lose each
	 * connection, and a Hold Time TLV would have no effect.
	 */
	bool carried = syns->withheld && syns->taken, silent = carried && !settings->no_silence;
	struct request_features features = {
		.sack = sysctl_read("net.ipv4.tcp_sack") != 0,
		.timestamps = sysctl_read("net.ipv4.tcp_timestamps") != 0,
		.mptcp = sysctl_read("net.mptcp.enabled") > 0,
		.withholding = { .withheld = syns->withheld,
				 .limit_ms = syns->withheld ? (uint16_t)settings->hold_time : 0,
				 .corrects = syns->withheld,
				 .silent = silent,
				 .blind = silent && syns->refused, .repeats = silent && syns->refused,
				 .hold_times = carried },
	};

	return features;
}

/*
 * Returns the limits that the available descriptors allow: two descriptors for each connection, two for each session
 * beyond them that is refused or has to make room (limits.sockets), and some of our own, pipes among them.
 */
static struct limits_settings fit_limits(const struct convertd_settings *settings, rlim_t own,
					 size_t *pipes)
{
	struct limits_settings limits = settings->limits;
	rlim_t connections = 1;
	struct rlimit files = { .rlim_cur = RLIM_INFINITY };

	getrlimit(RLIMIT_NOFILE, &files);
	*pipes = relay_pipes_fit(files.rlim_cur);
	if (files.rlim_cur > INT_MAX)
		return limits;
	own += 2 * *pipes;
	if (files.rlim_cur > own + 2)
		connections = (files.rlim_cur - own) * 64 / 130;
	if (!limits.connections.total)
		limits.connections.total = (unsigned)connections;
	else if (limits.connections.total > connections)
		log_warning("--max-connections %u needs %llu open files, and the limit is %llu; raise it "
			    "(LimitNOFILE=, ulimit -Hn), or clients will have to wait",
			    limits.connections.total,
			    limits.connections.total * 130ULL / 64 + own,
			    (unsigned long long)files.rlim_cur);
	return limits;
}

static int read_last_fd(void)
{
	struct rlimit files = { .rlim_cur = RLIM_INFINITY };

	getrlimit(RLIMIT_NOFILE, &files);
	return files.rlim_cur > INT_MAX ? INT_MAX : (int)files.rlim_cur - 1;
}

/*
 * Returns the number of SYN+ACKs for a SYN with data: the first, those of the sysctl, and one more
 * (tcp_fastopen_synack_timer(), Linux 6.18).
 */
static unsigned read_synacks(void)
{
	int retries = sysctl_read("net.ipv4.tcp_synack_retries");

	return (retries < 0 ? SYNACK_RETRIES_DEFAULT : (unsigned)retries) + 2;
}

static void set_admission(struct effective_settings *effective, const struct convertd_settings *settings)
{
	static unsigned made; /* used by the main thread alone */

	effective->admission = (struct admission_rules){
		.number = ++made,
		.features = &effective->features,
		.access = &settings->access,
		.cookies = settings->cookies,
		.cookie_lifetime = settings->cookie_lifetime,
		.retry_delay = (uint8_t)settings->retry_delay,
	};
}

/* Sets the settings of sessions and withheld SYNs, except the number of pipes. */
static void set_serve(struct effective_settings *effective, const struct convertd_settings *settings)
{
	struct serve_settings *serve = &effective->serve;

	serve->number = effective->admission.number;
	serve->request_ms = settings->request_timeout * 1000;
	serve->connect_ms = settings->connect_timeout * 1000;
	serve->patience_ms = FAMILIES_PATIENCE_MS;
	serve->hold_ms = settings->hold_time;
	serve->watch = (struct relay_watch_settings){
		.stall_ms = settings->stall_timeout * 1000ULL,
		.half_close_ms = settings->half_close_timeout * 1000ULL,
		.idle_ms = settings->idle_timeout * 1000ULL,
	};
	serve->log_rate = settings->log_rate;
	serve->synacks = read_synacks();
	serve->drop_foreign = settings->drop_foreign_syns;
	serve->refuses_syns = effective->features.withholding.blind;
}

struct effective_settings *effective_settings_create(struct convertd_settings *settings, size_t files_own,
						     const struct effective_syns *syns)
{
	struct effective_settings *effective = calloc(1, sizeof(*effective));

	if (!effective)
		return NULL;
	effective->settings = settings;
	set_admission(effective, settings);
	effective->limits = fit_limits(settings, files_own, &effective->serve.pipes_max);
	effective->limits.memory = memory_budget((uint64_t)settings->max_memory << 20,
					     (uint64_t)settings->max_memory_per_client << 20);
	effective->limits.sockets = effective->limits.connections.total;
	if (effective->limits.sockets)
		effective->limits.sockets += REFUSALS_MIN + effective->limits.sockets / REFUSALS_PART;
	effective->features = read_features(settings, syns);
	effective->last_fd = read_last_fd();
	effective->syn_retries = sysctl_read("net.ipv4.tcp_syn_retries");
	if (effective->syn_retries < 1)
		effective->syn_retries = SYN_RETRIES_DEFAULT;
	set_serve(effective, settings);
	return effective;
}

void effective_settings_destroy(struct effective_settings *effective)
{
	if (!effective)
		return;
	convertd_settings_destroy((struct convertd_settings *)effective->settings);
	free(effective);
}

/* ----- shortages ----- */

void shortage_of_connections(const struct effective_settings *effective)
{
	static struct log_limit limit;
	unsigned suppressed;

	if (!log_limit_pass(&limit, &suppressed))
		return;
	if (effective->settings->limits.connections.total)
		log_warning("all %u connections of --max-connections are taken: clients are refused (%u "
			    "more since the last such line); raise it, or the number of converters",
			    effective->limits.connections.total, suppressed);
	else
		log_warning("all %u connections that the limit of open files (%d) allows are taken: "
			    "clients are refused (%u more since the last such line); raise it "
			    "(LimitNOFILE=, ulimit -Hn)",
			    effective->limits.connections.total, effective->last_fd + 1, suppressed);
}

/*
 * ----- how much of the kernel's memory connections may hold on this host -----
 *
 * tcp_mem has three numbers of pages for all TCP and Multipath TCP sockets of the host: above the second the kernel
 * takes buffers from all sockets, and above the third none gets any more. Peers that take nothing may hold half of
 * the second: the other half is for connections that move, and for other programs. In a control group with a limit,
 * which socket buffers count towards, they may hold half of that limit.
 */

/*
 * All clients together may hold 1/TOTAL_PART of the available memory, and each client 1/CLIENT_PART of that, but at
 * least CLIENT_MIN bytes.
 */
#define TOTAL_PART 2
#define CLIENT_PART 8
#define CLIENT_MIN (16ULL << 20)

/* "max" isn't a number: no limit. @error: set to the -errno of a file that is there and can't be read */
static uint64_t read_limit(const char *directory, const char *name, int *error)
{
	char path[PATH_MAX], text[32], *end;
	unsigned long long value;
	ssize_t n;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return UINT64_MAX;
	n = file_read_text(path, text, sizeof(text));
	if (n < 0 && n != -ENOENT)
		*error = (int)n;
	errno = 0;
	value = strtoull(text, &end, 10);
	return end == text || errno ? UINT64_MAX : value;
}

/*
 * Returns the lowest limit of a control group and the groups around it (cgroups(7), version 2), in bytes; UINT64_MAX
 * without a limit. @cgroup: the text of /proc/self/cgroup
 */
static uint64_t cgroup_limit(const char *cgroup)
{
	static const char root[] = "/sys/fs/cgroup";
	static const char *const names[] = { "memory.max", "memory.high" };
	const char *line = strncmp(cgroup, "0::/", 4) == 0 ? cgroup : strstr(cgroup, "\n0::/");
	uint64_t least = UINT64_MAX;
	char directory[PATH_MAX];
	int error = 0;

	if (!line)
		return least;
	line += line == cgroup ? 3 : 4;
	if (snprintf(directory, sizeof(directory), "%s%.*s", root, (int)strcspn(line, "\n"), line) >=
	    (int)sizeof(directory))
		return least;
	/* From the group up to the root, which has no limit. */
	while (strlen(directory) >= sizeof(root)) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			uint64_t limit = read_limit(directory, names[i], &error);

			least = limit < least ? limit : least;
		}
		*strrchr(directory, '/') = '\0';
	}
	if (error)
		log_warning("a limit of this control group's memory can't be read: %s; without --max-memory, convertd may take more "
			    "than the group may have", strerror(-error));
	return least;
}

struct limits_memory memory_budget_of(uint64_t total, uint64_t per_client, const char *tcp_mem,
				      uint64_t page, uint64_t cgroup_max)
{
	struct limits_memory memory = { .per_client = per_client, .total = total };
	unsigned long long low, pressure;

	if (!memory.total && cgroup_max != UINT64_MAX)
		memory.total = cgroup_max / TOTAL_PART;
	if (!total && sscanf(tcp_mem, "%llu %llu", &low, &pressure) == 2 &&
	    (!memory.total || pressure * page / TOTAL_PART < memory.total))
		memory.total = pressure * page / TOTAL_PART;
	if (per_client || !memory.total)
		return memory;
	memory.per_client = memory.total / CLIENT_PART;
	if (memory.per_client < CLIENT_MIN)
		memory.per_client = CLIENT_MIN < memory.total / 2 ? CLIENT_MIN : memory.total / 2;
	return memory;
}

struct limits_memory memory_budget(uint64_t total, uint64_t per_client)
{
	char tcp_mem[128], cgroup[4096];

	file_read_text("/proc/sys/net/ipv4/tcp_mem", tcp_mem, sizeof(tcp_mem));
	/*
	 * Only the host's own network namespace has this file. Otherwise we take Linux's default for the second
	 * number, as far as it can be known:
	 */
	if (!tcp_mem[0])
		snprintf(tcp_mem, sizeof(tcp_mem), "0 %ld", sysconf(_SC_PHYS_PAGES) / 16);
	file_read_text("/proc/self/cgroup", cgroup, sizeof(cgroup));
	return memory_budget_of(total, per_client, tcp_mem, (uint64_t)sysconf(_SC_PAGESIZE),
				total ? UINT64_MAX : cgroup_limit(cgroup));
}
