/* SPDX-License-Identifier: BSD-3-Clause */
/* check_host.c - "convertize check" without a converter: kernel, CONVERT_BYPASS, cache, a gateway here, converters' addresses */
#include "config.h"

#include "client/cache_file.h"
#include "client/resolve.h"
#include "common/kernel_socket.h"
#include "common/netlink.h"
#include "common/os.h"
#include "convertize/check/check.h"
#include "convertize/check/converter_probe.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#define SYSCTL_FASTOPEN_CLIENT 1 /* ip-sysctl.rst */

/* --- the kernel --------------------------------------------------------------------- */

static void check_mptcp(struct report *report, const char *release)
{
	int enabled = sysctl_read("net.mptcp.enabled");
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP), error = errno;
	struct fact *fact;

	if (fd >= 0) {
		fact = report_plain(report, FACT_OK, "kernel.mptcp", "Linux %s speaks Multipath TCP", release);
		close(fd);
	} else if (enabled == 0) {
		fact = report_plain(report, FACT_WARN, "kernel.mptcp",
				    "Multipath TCP is off (net.mptcp.enabled = 0): connections are converted over plain TCP, on one path");
		fact_command(fact, COMMAND_HERE, "sysctl", "-w", "net.mptcp.enabled=1");
	} else if (enabled < 0) {
		fact = report_plain(report, FACT_WARN, "kernel.mptcp",
				    "Linux %s has no Multipath TCP: connections are converted over plain TCP, on one path", release);
		fact_remedy(fact, "upgrade to Linux 6.2 or newer, built with CONFIG_MPTCP");
	} else {
		fact = report_plain(report, FACT_WARN, "kernel.mptcp",
				    "no Multipath TCP for this process (%s): connections are converted over plain TCP, on one path",
				    strerror(error));
		fact_remedy(fact, "let the security policy, such as a seccomp filter, allow it");
	}
	fact_value_bool(fact, fd >= 0);
}

/* Does this kernel put data into the SYNs of @protocol's sockets? Returns true if it has no such sockets. */
static bool takes_syn_data(int protocol)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, protocol);
	bool takes;

	if (fd < 0)
		return true;
	takes = kernel_set(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1);
	close(fd);
	return takes;
}

static void check_syn_data(struct report *report, const char *release)
{
	int fastopen = sysctl_read("net.ipv4.tcp_fastopen");
	char setting[48];
	struct fact *fact;

	if (fastopen >= 0 && !(fastopen & SYSCTL_FASTOPEN_CLIENT)) {
		fact = report_plain(report, FACT_WARN, "kernel.syn_data",
				    "Fast Open is off for clients (net.ipv4.tcp_fastopen = %d): each connection takes one more round trip",
				    fastopen);
		snprintf(setting, sizeof(setting), "net.ipv4.tcp_fastopen=%d",
			 fastopen | SYSCTL_FASTOPEN_CLIENT);
		fact_command(fact, COMMAND_HERE, "sysctl", "-w", setting);
		fact_value_bool(fact, false);
		return;
	}
	if (!takes_syn_data(IPPROTO_MPTCP)) {
		fact = report_plain(report, FACT_WARN, "kernel.syn_data",
				    "Linux %s puts no data into SYNs of Multipath TCP: each connection takes one more round trip", release);
		fact_remedy(fact, "upgrade to Linux 6.2 or newer");
		fact_value_bool(fact, false);
		return;
	}
	fact = report_plain(report, FACT_OK, "kernel.syn_data", "Fast Open is on for clients (net.ipv4.tcp_fastopen = %d)", fastopen);
	fact_value_bool(fact, true);
}

/*
 * Has this kernel switched MPTCP off for a while, because SYNs were lost (Linux 6.12)? It counts each SYN that it sends without
 * MP_CAPABLE for that reason. So we send a SYN to a closed port of this host, and compare the counter.
 */
static bool mptcp_is_withheld(void)
{
	static const char counter[] = "MPTcpExtMPCapableSYNTXDisabled";
	union sockaddr_ip address = { .in = { .sin_family = AF_INET,
					      .sin_addr = { htonl(INADDR_LOOPBACK) } } };
	int closed = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_MPTCP);
	socklen_t len = sizeof(address);
	uint64_t before = counters_read(counter);
	bool withheld = false;

	if (closed >= 0 && fd >= 0 && bind(closed, &address.sa, sizeof(address.in)) == 0 &&
	    getsockname(closed, &address.sa, &len) == 0) {
		connect(fd, &address.sa, sizeof(address.in));
		withheld = counters_read(counter) > before;
	}
	if (closed >= 0)
		close(closed);
	if (fd >= 0)
		close(fd);
	return withheld;
}

static void check_mptcp_blackhole(struct report *report)
{
	int timeout = sysctl_read("net.mptcp.blackhole_timeout");
	bool withheld = mptcp_is_withheld();
	struct fact *fact;

	if (timeout < 0)
		return;
	if (withheld)
		fact = report_plain(report, FACT_WARN, "kernel.mptcp_blackhole",
				    "Multipath TCP is off for a while, because SYNs with it were lost (net.mptcp.blackhole_timeout = %d)",
				    timeout);
	else if (timeout > 0)
		fact = report_plain(report, FACT_NOTE, "kernel.mptcp_blackhole",
				    "three lost SYNs switch Multipath TCP off for %d s or more (net.mptcp.blackhole_timeout)", timeout);
	else
		fact = report_plain(report, FACT_OK, "kernel.mptcp_blackhole",
				    "lost SYNs don't switch Multipath TCP off (net.mptcp.blackhole_timeout = 0)");
	if (timeout > 0)
		fact_command(fact, COMMAND_HERE, "sysctl", "-w", "net.mptcp.blackhole_timeout=0");
	fact_value_bool(fact, withheld);
}

/* Reports that this kernel has switched off data in SYNs for a while (never, by default). The kernel doesn't show when that ends. */
static void check_fastopen_blackhole(struct report *report)
{
	int timeout = sysctl_read("net.ipv4.tcp_fastopen_blackhole_timeout_sec");
	uint64_t times = counters_read("TcpExtTCPFastOpenBlackhole");
	struct fact *fact;

	if (timeout <= 0 || !times)
		return;
	fact = report_plain(report, FACT_WARN, "kernel.fastopen_blackhole",
			    "Fast Open was off for %d s or more after failures, %llu times since this system started, and may be now",
			    timeout, (unsigned long long)times);
	fact_command(fact, COMMAND_HERE, "sysctl", "-w", "net.ipv4.tcp_fastopen_blackhole_timeout_sec=0");
	fact_value_number(fact, (double)times);
}

void check_kernel(struct report *report)
{
	struct utsname names;

	uname(&names);
	check_mptcp(report, names.release);
	check_syn_data(report, names.release);
	check_mptcp_blackhole(report);
	check_fastopen_blackhole(report);
}

/* --- the rules of this user --------------------------------------------------------------- */

/* Does the rule match each address, of IPv4 alone or of both families, and each port? */
static bool excludes_all(const struct prefix_rule *rule, bool v4_only)
{
	const bool is_v4 = rule->prefix.length == 96 && IN6_IS_ADDR_V4MAPPED(&rule->prefix.address);

	return (v4_only ? is_v4 : !rule->prefix.length) && rule->port_first <= 1 && rule->port_last == UINT16_MAX;
}

void check_bypass(struct report *report, const struct settings *settings)
{
	bool all = false, v4 = false;

	for (size_t i = 0; i < settings->bypass_count; i++) {
		all = all || excludes_all(&settings->bypass[i], false);
		v4 = v4 || excludes_all(&settings->bypass[i], true);
	}
	if (all || v4)
		fact_remedy(report_plain(report, all ? FACT_FAIL : FACT_WARN, "bypass", "CONVERT_BYPASS excludes all destinations%s",
					 all ? "" : " with IPv4 addresses"), "leave that rule out of --bypass (CONVERT_BYPASS)");
}

/* --- the cache of this user's programs --------------------------------------------------- */

int check_cache_open(struct cache *cache, const struct settings *settings, struct cache_place *place)
{
	struct cache_search search = { settings->cache, settings->runtime_dir, false };

	return cache_find(cache, &search, place);
}

static void report_refused(struct report *report, const struct cache_place *place)
{
	struct fact *fact = report_plain(report, FACT_WARN, "cache.refused", "what programs learn is not kept in %s: %s", place->refused,
					 cache_problem(place->refusal));

	fact_remedy(fact, "make it a directory of this user's alone, or give --cache DIRECTORY");
	fact_value_text(fact, place->refused);
}

/* Can a file of the cache's size be made in the directory? */
static bool has_room(const char *path)
{
	struct statvfs mount;

	return statvfs(path, &mount) < 0 ||
	       (!(mount.f_flag & ST_RDONLY) && (uint64_t)mount.f_bavail * mount.f_frsize >= cache_file_size());
}

void check_cache(struct report *report, const struct settings *settings)
{
	struct cache_place place;
	struct cache cache;
	int ret = check_cache_open(&cache, settings, &place);
	struct fact *fact;

	cache_close(&cache);
	if (place.refused)
		report_refused(report, &place);
	if (place.path && ret == -ENOENT && !has_room(place.path)) {
		fact = report_plain(report, FACT_WARN, "cache", "what programs learn is not kept in %s: it is full or read-only",
				    place.path);
		fact_remedy(fact, "make room there, or give --cache DIRECTORY");
	} else if (place.path) {
		fact = report_plain(report, FACT_OK, "cache", "what programs learn is kept in %s", place.path);
		fact_value_text(fact, place.path);
	} else if (ret == -ECANCELED) {
		report_plain(report, FACT_NOTE, "cache", "what a program learns is not kept for the next one (CONVERT_CACHE=none)");
	} else if (!place.refused) {
		fact = report_plain(report, FACT_WARN, "cache", "what a program learns is not kept for the next one%s%s",
				    ret == -ENOENT ? "" : ": ", ret == -ENOENT ? "" : cache_problem(ret));
		fact_remedy(fact, "give --cache DIRECTORY, one of this user's alone");
	}
}

/* --- a gateway on this host ----------------------------------------------------------------- */

static int note_table(const struct nlmsghdr *table, void *arg)
{
	const struct nlattr *attr;
	bool *found = arg;

	mnl_attr_for_each(attr, table, sizeof(struct nfgenmsg))
		if (mnl_attr_get_type(attr) == NFTA_TABLE_NAME)
			*found |= strcmp(mnl_attr_get_str(attr), "convertgw") == 0;
	return MNL_CB_OK;
}

/* The kernel shows a gateway's table to root only. */
void check_gateway(struct report *report)
{
	static struct netlink netlink;
	bool found = false;
	struct fact *fact;

	if (netlink_open(&netlink, NETLINK_NETFILTER) < 0)
		return;
	netlink_dump(&netlink, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE, AF_UNSPEC, note_table, &found);
	netlink_close(&netlink);
	if (!found)
		return;
	fact = report_plain(report, FACT_NOTE, "gateway", "a gateway runs here: with its setting host, it also converts connections that "
			    "the lines below call direct");
	fact_remedy(fact, "check it by: convertgw --config /etc/convertgw/convertgw.conf --check-config");
	fact_value_bool(fact, true);
}

/* --- the addresses of converters ---------------------------------------------------------- */

void check_addresses_find(struct check_addresses *out, const struct settings *settings)
{
	out->count = out->unresolved_count = 0;
	for (size_t i = 0; settings->enabled && i < settings->converter_count; i++) {
		const struct settings_converter *setting = &settings->converters[i];
		const size_t first = out->count, room = CHECK_ADDRESSES_MAX - first;
		const char *reason = NULL;

		if (!setting->name[0] && room)
			out->list[out->count++] = setting->addr;
		else if (setting->name[0])
			out->count += resolve_converter(setting->name, setting->port, settings->timeout_ms, out->list + first, room,
							&reason);
		for (size_t j = first; j < out->count; j++)
			out->names[j] = setting->name;
		if (reason)
			out->unresolved[out->unresolved_count++] = (struct check_unresolved){ setting->name, reason };
	}
}

void check_addresses_warn(const struct check_addresses *addresses)
{
	for (size_t i = 0; i < addresses->unresolved_count; i++)
		fprintf(stderr, "convertize: %s can't be resolved: %s\n", addresses->unresolved[i].name, addresses->unresolved[i].reason);
}
