/* SPDX-License-Identifier: BSD-3-Clause */
/* gateway_checks.c - finds what on this host would keep a gateway from working as its settings say */
#include "config.h"

#include "gateway/gateway_checks.h"

#include "client/settings.h"
#include "common/netlink.h"
#include "common/os.h"
#include "host/lookup.h"

#include <ifaddrs.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOPBACK_MS 200 /* for a connection of this host to itself, which takes less than 1 ms */

/* A sysctl that has to have a bit, or the value 1, and for whom. */
static const struct {
	const char *name, *remedy;
	bool lan; /* only for hosts behind this one */
	const char *otherwise;
} sysctls[] = {
	{ "net.mptcp.enabled", "net.mptcp.enabled=1", false, "connections to the converter use one network" },
	{ "net.ipv4.tcp_fastopen", "net.ipv4.tcp_fastopen=1", false, "each connection takes a round trip more" },
	{ "net.ipv4.ip_forward", "net.ipv4.ip_forward=1", true, "this host forwards nothing, and converts nothing of hosts behind it" },
};

static void tell(gateway_warn *warn, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void tell(gateway_warn *warn, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	warn(text);
}

/* ----- the clients' interfaces ----- */

/* The addresses of an interface of clients: a private IPv4 address; an IPv6 address that isn't of the link alone. */
struct lan {
	bool is_private, has_v6;
};

static struct lan read_addresses(const char *device)
{
	struct lan lan = { 0 };
	struct ifaddrs *all = NULL;

	if (getifaddrs(&all) < 0)
		return lan;
	for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
		const union sockaddr_ip *address = (const union sockaddr_ip *)one->ifa_addr;

		if (!address || strcmp(one->ifa_name, device) != 0)
			continue;
		if (address->sa.sa_family == AF_INET)
			lan.is_private |= policy_is_private(address);
		else if (address->sa.sa_family == AF_INET6)
			lan.has_v6 |= !IN6_IS_ADDR_LINKLOCAL(&address->in6.sin6_addr);
	}
	freeifaddrs(all);
	return lan;
}

/* Writes "net.ipv4.conf.NAME.forwarding", as sysctl(8) spells it. */
static void name_sysctl(char text[static 64], unsigned version, const char *device, const char *name)
{
	int len = snprintf(text, 64, "net.ipv%u.conf.", version);

	for (; *device && len < 40; device++)
		text[len++] = (char)(*device == '.' ? '/' : *device);
	snprintf(text + len, 64 - (size_t)len, ".%s", name);
}

/*
 * The kernel removes the default routes of router advertisements once it forwards IPv6, unless accept_ra is 2. So the remedy sets that,
 * too, for the interface by which IPv6 leaves.
 */
static void check_forwarding_v6(const char *lan, gateway_warn *warn)
{
	const union sockaddr_ip anywhere = host_way_anywhere(AF_INET6);
	char name[64], other[64] = "", device[IF_NAMESIZE];
	struct host_way way;

	name_sysctl(name, 6, lan, "forwarding");
	if (sysctl_read(name) != 0)
		return;
	host_way_ask(-1, &anywhere, NULL, 0, &way);
	if (!way.error && if_indextoname(way.index, device)) {
		name_sysctl(other, 6, device, "accept_ra");
		if (sysctl_read(other) != 1)
			other[0] = '\0';
	}
	tell(warn, "%s is 0: this host forwards no IPv6, and converts none of hosts behind it; set it with: sysctl -w "
		   "%s%snet.ipv6.conf.all.forwarding=1",
	     name, other, other[0] ? "=2 " : "");
}

/* Returns whether iptables' older back end, whose rules nftables doesn't list, has a table for NAT. */
static bool has_legacy_nat(void)
{
	FILE *file = fopen("/proc/net/ip_tables_names", "re");
	char name[64];
	bool found = false;

	while (file && fgets(name, sizeof(name), file))
		found |= strcmp(name, "nat\n") == 0;
	if (file)
		fclose(file);
	return found;
}

/* Looks for the names of expressions and targets that translate addresses. */
static int note_nat(const struct nlmsghdr *rule, void *arg)
{
	static const struct {
		size_t len;
		char name[12];
	} names[] = { { 5, "masq" }, { 4, "nat" }, { 5, "SNAT" }, { 11, "MASQUERADE" } };
	bool *found = arg;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		*found |= memmem(rule, rule->nlmsg_len, names[i].name, names[i].len) != NULL;
	return MNL_CB_OK;
}

/* Returns whether there are rules for NAT; also if we can't tell. */
static bool has_nat(void)
{
	static struct netlink netlink;
	bool found = has_legacy_nat();

	if (found || netlink_open(&netlink, NETLINK_NETFILTER) < 0)
		return true;
	if (netlink_dump(&netlink, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE, AF_UNSPEC, note_nat, &found) < 0)
		found = true;
	netlink_close(&netlink);
	return found;
}

static void check_interfaces(const struct gateway_settings *settings, gateway_warn *warn)
{
	char name[64];

	for (size_t i = 0; i < settings->lan_count; i++) {
		const char *device = settings->lan[i];
		const struct lan lan = read_addresses(device);

		if (!if_nametoindex(device)) {
			tell(warn, "there is no interface %s yet (see: ip link); its hosts' connections are converted once there is", device);
			continue;
		}
		name_sysctl(name, 4, device, "forwarding");
		if (sysctl_read(name) == 0 && sysctl_read("net.ipv4.ip_forward") == 1)
			tell(warn, "%s is 0: this host converts nothing of the hosts at %s; set it with: sysctl -w %s=1", name, device, name);
		if (lan.has_v6)
			check_forwarding_v6(device, warn);
		if (lan.is_private && !has_nat())
			tell(warn, "no rule translates the private addresses of %s: routed connections get no answer, unless the next router has a "
				   "route to them; add: nft 'table ip lan_nat { chain out { type nat hook postrouting priority srcnat; "
				   "iifname \"%s\" oifname != \"%s\" masquerade; }; }'",
			     device, device, device);
	}
}

/* ----- the firewall ----- */

/* Connects to this host itself: released SYNs take the same way (gateway_rules.c). */
static void check_loopback(gateway_warn *warn)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd connected = { .fd = client, .events = POLLOUT };
	socklen_t len = sizeof(address);

	if (server >= 0 && client >= 0 && bind(server, (const struct sockaddr *)&address, len) == 0 && listen(server, 1) == 0 &&
	    getsockname(server, (struct sockaddr *)&address, &len) == 0) {
		connect(client, (const struct sockaddr *)&address, len);
		if (poll(&connected, 1, LOOPBACK_MS) == 0 || connected.revents & POLLERR)
			tell(warn, "a firewall drops new connections from lo, and with them each connection that is converted; accept them with: "
				   "iptables -I INPUT -i lo -j ACCEPT; ip6tables -I INPUT -i lo -j ACCEPT; or in nftables' chain of the hook input: "
				   "iifname \"lo\" accept");
	}
	if (server >= 0)
		close(server);
	if (client >= 0)
		close(client);
}

static bool is_lan(const struct gateway_settings *settings, const char *device)
{
	for (size_t i = 0; i < settings->lan_count; i++)
		if (strcmp(settings->lan[i], device) == 0)
			return true;
	return false;
}

/* A converter that is reached through the LAN isn't beyond this router, so that its clients can reach it themselves. */
static void check_converters(const struct gateway_settings *settings, gateway_warn *warn)
{
	char device[IF_NAMESIZE], text[SOCKADDR_STRLEN];

	for (size_t i = 0; i < settings->client.converter_count; i++) {
		const struct settings_converter *converter = &settings->client.converters[i];
		struct host_way way = { 0 };

		if (converter->name[0])
			continue;
		host_way_ask(-1, &converter->addr, NULL, 0, &way);
		if (way.error)
			tell(warn, "there is no route to converter %s: all connections are routed", sockaddr_ip_format(&converter->addr, text));
		else if (if_indextoname(way.index, device) && is_lan(settings, device))
			tell(warn, "converter %s is reached by %s, where the clients are", sockaddr_ip_format(&converter->addr, text), device);
	}
}

/* ----- the operator's rules ----- */

static bool matches_all(const struct gateway_rule *rule)
{
	return !rule->client.length && !rule->destination.prefix.length && !rule->destination.port_first &&
	       rule->destination.port_last == UINT16_MAX && !rule->device[0] && !rule->has_dscp && !rule->has_mark;
}

static void check_rules(const struct gateway_settings *settings, gateway_warn *warn)
{
	for (size_t i = 0; i < settings->rule_count; i++) {
		const struct gateway_rule *rule = &settings->rules[i];

		if (rule->device[0] && !is_lan(settings, rule->device))
			tell(warn, "the rule for device %s matches nothing; add: --lan %s", rule->device, rule->device);
		if (matches_all(rule) && i + 1 < settings->rule_count)
			tell(warn, "the rules behind \"%s all\" never decide, as the first one that matches does; put it last", rule->place.name);
	}
}

void gateway_check_host(const struct gateway_settings *settings, gateway_warn *warn)
{
	for (size_t i = 0; i < sizeof(sysctls) / sizeof(sysctls[0]); i++) {
		const int value = sysctls[i].lan && !settings->lan_count ? 1 : sysctl_read(sysctls[i].name);

		if (value >= 0 && !(value & 1))
			tell(warn, "%s is %d: %s; set it with: sysctl -w %s", sysctls[i].name, value, sysctls[i].otherwise, sysctls[i].remedy);
	}
	check_interfaces(settings, warn);
	check_loopback(warn);
	check_rules(settings, warn);
	check_converters(settings, warn);
}
