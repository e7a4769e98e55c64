/* SPDX-License-Identifier: BSD-3-Clause */
/* gateway_checks.c - finds faults of this host that keep a gateway from working as its settings say */
#include "config.h"

#include "gateway/gateway.h"

#include "client/settings.h"
#include "common/netlink.h"
#include "common/os.h"
#include "host/host_model.h"

#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/neighbour.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define OWN_TABLES "convertgw" /* the beginning of their names: gateway_rules.c */
#define LOOPBACK_MS 200 /* for a connection of this host to itself, which takes less than 1 ms */

/* Sysctls whose lowest bit has to be set. */
static const struct {
	const char *name;
	bool lan; /* it matters only to hosts behind this one */
	const char *otherwise;
} sysctls[] = {
	{ "net.mptcp.enabled", false, "connections to the converter use one network" },
	{ "net.ipv4.tcp_fastopen", false, "each connection takes one more round trip" },
	{ "net.ipv4.ip_forward", true, "this host forwards nothing, and converts nothing of hosts behind it" },
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

/*
 * The kernel removes the default routes of router advertisements once it forwards IPv6, unless accept_ra is 2. So the remedy sets that,
 * too, for the interface by which IPv6 leaves.
 */
static void check_forwarding_v6(const char *lan, gateway_warn *warn)
{
	const union sockaddr_ip anywhere = host_way_anywhere(AF_INET6);
	char name[SYSCTL_NAME_MAX], other[SYSCTL_NAME_MAX] = "", device[IF_NAMESIZE];
	struct host_way way;

	sysctl_of_device(name, 6, lan, "forwarding");
	if (sysctl_read(name) != 0)
		return;
	host_way_ask(-1, &anywhere, NULL, 0, &way);
	if (!way.error && if_indextoname(way.index, device)) {
		sysctl_of_device(other, 6, device, "accept_ra");
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

/* Looks for the names of expressions and targets that translate addresses, but not in the rules of a gateway that runs. */
static int note_nat(const struct nlmsghdr *rule, void *arg)
{
	static const struct {
		size_t len;
		char name[12];
	} names[] = { { 5, "masq" }, { 4, "nat" }, { 5, "SNAT" }, { 11, "MASQUERADE" } };
	const struct nlattr *attr;
	bool *found = arg;

	mnl_attr_for_each(attr, rule, sizeof(struct nfgenmsg))
		if (mnl_attr_get_type(attr) == NFTA_RULE_TABLE && strncmp(mnl_attr_get_str(attr), OWN_TABLES, strlen(OWN_TABLES)) == 0)
			return MNL_CB_OK;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		*found |= memmem(rule, rule->nlmsg_len, names[i].name, names[i].len) != NULL;
	return MNL_CB_OK;
}

/* Returns whether there are rules for NAT; true if we can't tell. */
static bool has_nat(gateway_warn *warn)
{
	static struct netlink netlink;
	bool found = has_legacy_nat();
	int ret;

	if (found || netlink_open(&netlink, NETLINK_NETFILTER) < 0)
		return true;
	ret = netlink_dump(&netlink, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE, AF_UNSPEC, note_nat, &found);
	netlink_close(&netlink);
	if (ret < 0 && ret != -EINTR)
		tell(warn, "rules for NAT can't be read: %s; check as root", strerror(-ret));
	return found || ret < 0;
}

static void check_interface(const char *device, gateway_warn *warn)
{
	const struct lan lan = read_addresses(device);
	char name[SYSCTL_NAME_MAX];

	sysctl_of_device(name, 4, device, "forwarding");
	if (sysctl_read(name) == 0 && sysctl_read("net.ipv4.ip_forward") == 1)
		tell(warn, "%s is 0: this host converts nothing of the hosts at %s; set it with: sysctl -w %s=1", name, device, name);
	if (lan.has_v6)
		check_forwarding_v6(device, warn);
	if (lan.is_private && !has_nat(warn))
		tell(warn, "no rule translates the private addresses of %s: routed connections get no answer, unless the next router has a "
			   "route to them; add: nft 'table ip lan_nat { chain out { type nat hook postrouting priority srcnat; "
			   "iifname \"%s\" oifname != \"%s\" masquerade; }; }'",
		     device, device, device);
}

static void check_interfaces(const struct gateway_settings *settings, gateway_warn *warn)
{
	struct if_nameindex *all = if_nameindex();

	for (size_t i = 0; all && i < settings->lan_count; i++) {
		bool found = false;

		for (const struct if_nameindex *one = all; one->if_name; one++) {
			if (!gateway_device_matches(settings->lan[i], one->if_name))
				continue;
			found = true;
			check_interface(one->if_name, warn);
		}
		if (!found)
			tell(warn, "there is no interface %s yet (see: ip link); its hosts' connections are converted once there is",
			     settings->lan[i]);
	}
	if (all)
		if_freenameindex(all);
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

/* Clients reach a converter in the LAN without this host. */
static void check_converters(const struct gateway_settings *settings, gateway_warn *warn)
{
	char device[IF_NAMESIZE], text[SOCKADDR_STRLEN], name[SYSCTL_NAME_MAX];

	for (size_t i = 0; i < settings->client.converter_count; i++) {
		const struct settings_converter *converter = &settings->client.converters[i];
		struct host_way way = { 0 };

		if (converter->name[0])
			continue;
		host_way_ask(-1, &converter->addr, NULL, 0, &way);
		if (way.error)
			tell(warn, "there is no route to converter %s: %s", sockaddr_ip_format(&converter->addr, text),
			     settings->client.converter_count > 1 ? "it isn't used" : "all connections are routed");
		if (way.error || !if_indextoname(way.index, device) || !gateway_settings_have_lan(settings, device))
			continue;
		tell(warn, "converter %s is reached by %s, where the clients are", sockaddr_ip_format(&converter->addr, text), device);
		sysctl_of_device(name, 4, device, "send_redirects");
		if (sysctl_read(name) == 1 || sysctl_read("net.ipv4.conf.all.send_redirects") == 1)
			tell(warn, "ICMP errors to clients wait for the redirects that this host sends in their place; set: sysctl -w "
				   "net.ipv4.conf.all.send_redirects=0 %s=0", name);
	}
}

/* ----- NAT of other routers ----- */

/* May a converter be beyond NAT? Its IPv4 address is public, or its name may have such an address. */
static bool has_public_converter(const struct gateway_settings *settings)
{
	for (size_t i = 0; i < settings->client.converter_count; i++) {
		const struct settings_converter *converter = &settings->client.converters[i];

		if (converter->name[0] || (sockaddr_ip_is_v4(&converter->addr) && !policy_is_private(&converter->addr)))
			return true;
	}
	return false;
}

/* Another router translates a private address of a network that leads to the converter. */
static void check_outer_nat(const struct gateway_settings *settings, const struct host_network *network, gateway_warn *note)
{
	char text[PREFIX_STRLEN];

	if (!sockaddr_ip_is_v4(&network->address) || !policy_is_private(&network->address) || !has_public_converter(settings))
		return;
	tell(note, "another router translates %s, the address of %s (double NAT): a converter %scounts all hosts behind that router as one client",
	     host_format_address(&network->address, text), network->link.name,
	     settings->client.cookie_len ? "" : "has to admit this host by a cookie, not by its address, and ");
}

struct routers_of {
	const char *device;
	unsigned index;
	gateway_warn *note;
};

/* Notes a neighbour that says it is a router (RFC 4861, 4.4). We can't see whether it translates addresses. */
static int note_router(const struct nlmsghdr *message, void *arg)
{
	const struct ndmsg *neighbour = mnl_nlmsg_get_payload(message);
	const struct routers_of *lan = arg;
	union sockaddr_ip address;
	const struct nlattr *attr;
	char text[PREFIX_STRLEN];

	if (mnl_nlmsg_get_payload_len(message) < sizeof(*neighbour) || (unsigned)neighbour->ndm_ifindex != lan->index ||
	    !(neighbour->ndm_flags & NTF_ROUTER))
		return MNL_CB_OK;
	mnl_attr_for_each(attr, message, sizeof(*neighbour))
		if (mnl_attr_get_type(attr) == NDA_DST && netlink_read_address(&address, attr, neighbour->ndm_family))
			tell(lan->note, "%s at %s is a router: if it translates addresses (double NAT), all hosts behind it are one client for "
					"max-pending-per-client and max-connections-per-client",
			     host_format_address(&address, text), lan->device);
	return MNL_CB_OK;
}

static void check_inner_nat(const char *device, gateway_warn *note)
{
	static struct netlink netlink;
	struct routers_of lan = { device, if_nametoindex(device), note };

	if (!lan.index || netlink_open(&netlink, NETLINK_ROUTE) < 0)
		return;
	netlink_dump(&netlink, RTM_GETNEIGH, AF_INET6, note_router, &lan);
	netlink_close(&netlink);
}

/* ----- offloads ----- */

/* Tells whether ethtool(8) shows the offload as @on; false if the kernel doesn't tell. @command: reads a value that has @bit for it */
static bool has_offload(const char *device, uint32_t command, uint32_t bit, bool on)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ethtool_value value = { .cmd = command };
	struct ifreq request = { .ifr_data = (char *)&value };
	bool told;

	strcpy(request.ifr_name, device);
	told = ioctl(fd, SIOCETHTOOL, &request) == 0;
	if (fd >= 0)
		close(fd);
	return told && !(value.data & bit) != on;
}

/* The networks of this host. */
struct uplinks {
	struct host host;
	struct host_network *networks;
	size_t count;
};

/*
 * Does the link carry packets of the device called @upper, or of one of this pattern: itself, as a port of a bridge or bond, or below a
 * VLAN?
 */
static bool is_below(const struct host *host, const struct host_link *link, const char *upper)
{
	char path[PATH_MAX];

	if (gateway_device_matches(upper, link->name))
		return true;
	for (size_t i = 0; i < host->link_count; i++) {
		const struct host_link *next = &host->links[i];

		snprintf(path, sizeof(path), "/sys/class/net/%s/upper_%s", link->name, next->name);
		if (next != link && (link->master == next->index || access(path, F_OK) == 0) && is_below(host, next, upper))
			return true;
	}
	return false;
}

/* Does the link carry the clients' packets, or those of a network that leads away? */
static bool carries(const struct gateway_settings *settings, const struct uplinks *uplinks, const struct host_link *link)
{
	for (size_t i = 0; i < settings->lan_count; i++)
		if (is_below(&uplinks->host, link, settings->lan[i]))
			return true;
	for (size_t i = 0; i < uplinks->count; i++)
		if (uplinks->networks[i].verdict == HOST_USED && is_below(&uplinks->host, link, uplinks->networks[i].link.name))
			return true;
	return false;
}

/*
 * TSO and GSO matter little: the kernel's TCP makes large packets in any case, and drivers that switch TSO off have their reasons. Devices
 * of other kinds have no GRO of their own, or the kernel's default for them is off.
 */
static void check_offloads(const struct gateway_settings *settings, const struct uplinks *uplinks, const struct host_link *link,
			   gateway_warn *warn)
{
	const bool joins = !link->kind[0] || strcmp(link->kind, "vxlan") == 0 || strcmp(link->kind, "wireguard") == 0;
	const bool lro = settings->lan_count && has_offload(link->name, ETHTOOL_GFLAGS, ETH_FLAG_LRO, true);
	const bool gro = !joins || !has_offload(link->name, ETHTOOL_GGRO, 1, false);

	if ((!lro && gro) || !carries(settings, uplinks, link))
		return;
	if (lro)
		tell(warn, "%s joins packets by LRO, and the kernel forwards none that are joined; switch it off with: ethtool -K %s lro off",
		     link->name, link->name);
	if (!gro)
		tell(warn, "%s doesn't join packets by GRO, and each packet costs CPU time of its own; switch it on with: ethtool -K %s gro on",
		     link->name, link->name);
}

/* The kernel routes no packets of a port: they are those of its bridge, bond or VRF. */
static void check_port(const struct host *host, const struct host_link *link, gateway_warn *warn)
{
	const struct host_link *master = host_link_of(host, link->master);
	const struct host_link *vrf = master ? master : link;

	if (strcmp(vrf->kind, "vrf") == 0)
		tell(warn, "%s is a VRF: the connections of its hosts are routed", vrf->name);
	else if (master)
		tell(warn, "%s is a port of %s, by whose name the kernel knows the packets of its hosts: write --lan %s in its place", link->name,
		     master->name, master->name);
}

static void check_networks(const struct gateway_settings *settings, gateway_warn *warn, gateway_warn *note)
{
	const struct network_policy policy = { .paths = &settings->client.paths, .device = "*" };
	struct uplinks uplinks;

	if (host_read(&uplinks.host, NULL) < 0)
		return;
	uplinks.count = host_networks_find(&uplinks.networks, &uplinks.host, &policy);
	for (size_t i = 0; i < uplinks.count; i++)
		if (uplinks.networks[i].verdict == HOST_USED && !gateway_settings_have_lan(settings, uplinks.networks[i].link.name))
			check_outer_nat(settings, &uplinks.networks[i], note);
	for (size_t i = 0; i < uplinks.host.link_count; i++) {
		const struct host_link *link = &uplinks.host.links[i];

		if (gateway_settings_have_lan(settings, link->name)) {
			check_inner_nat(link->name, note);
			check_port(&uplinks.host, link, warn);
			if (!link->up)
				tell(warn, "%s is down, and its hosts reach nothing; set it up with: ip link set dev %s up", link->name, link->name);
		}
		check_offloads(settings, &uplinks, link, warn);
	}
	free(uplinks.networks);
	host_fini(&uplinks.host);
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

		if (rule->device[0] && !gateway_settings_have_lan(settings, rule->device))
			tell(warn, "the rule for device %s matches nothing; add: --lan %s", rule->device, rule->device);
		if (matches_all(rule) && i + 1 < settings->rule_count)
			tell(warn, "the rules behind \"%s all\" never decide, as the first one that matches does; put it last", rule->place.name);
	}
}

void gateway_check_host(const struct gateway_settings *settings, gateway_warn *warn, gateway_warn *note)
{
	for (size_t i = 0; i < sizeof(sysctls) / sizeof(sysctls[0]); i++) {
		const int value = sysctls[i].lan && !settings->lan_count ? 1 : sysctl_read(sysctls[i].name);

		if (value >= 0 && !(value & 1))
			tell(warn, "%s is %d: %s; set it with: sysctl -w %s=1", sysctls[i].name, value, sysctls[i].otherwise, sysctls[i].name);
	}
	check_interfaces(settings, warn);
	check_networks(settings, warn, note);
	check_loopback(warn);
	check_rules(settings, warn);
	check_converters(settings, warn);
}
