/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_host.c - library, doctor and service agree on the networks that they use on each of a table of hosts
 *
 * A host is lists of devices, addresses and routes. For each, and each setting of a user, all three judge all networks: the library by
 * networks_to(), which asks the lists here in place of the kernel (fake_lookup.h); the doctor and the service by host_networks_find().
 */
#include "config.h"

#include "host/lookup.h"
#include "host/networks.h"
#include "paths_world.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct path_preferences none;
static struct path_preferences wishes;

/* --- hosts --- */

static void tunnel(const char *name, const char *kind, const char *address)
{
	add_link(name, kind);
	add_address(name, address);
}

static void host_without_vpn(void)
{
	two_networks();
}

static void host_with_bridge_and_container(void)
{
	two_networks();
	add_link("docker0", "bridge");
	add_address("docker0", "172.17.0.1");
	add_route("docker0", AF_INET, "172.17.0.0/16", NULL, 0);
}

/* The second network is plugged in after more bridges, up or down, than networks_to() finds networks. */
static void host_with_many_bridges(void)
{
	add_network("wlan0", "", "192.0.2", 600);
	for (size_t i = 0; i < 2 * NETWORKS_MAX + 2; i++) {
		char name[IF_NAMESIZE], address[16], prefix[20];

		snprintf(name, sizeof(name), "br%zu", i);
		snprintf(address, sizeof(address), "172.17.%zu.1", i);
		snprintf(prefix, sizeof(prefix), "172.17.%zu.0/24", i);
		add_link(name, "bridge")->up = i % 2;
		add_address(name, address);
		if (i % 2)
			add_route(name, AF_INET, prefix, NULL, 0);
	}
	add_network("wwan0", "wwan", "198.51.100", 700);
}

static void container(void)
{
	add_network("eth0", "veth", "192.0.2", 0);
	add_network("eth1", "veth", "198.51.100", 10);
}

static void vpn_by_halves(void)
{
	two_networks();
	tunnel("tun0", "tun", "10.8.0.2");
	add_route("tun0", AF_INET, "0.0.0.0/1", NULL, 0);
	add_route("tun0", AF_INET, "128.0.0.0/1", NULL, 0);
}

static void vpn_of_lower_metric(void)
{
	two_networks();
	tunnel("tun0", "tun", "10.8.0.2");
	add_route("tun0", AF_INET, NULL, NULL, 50);
}

static void vpn_of_higher_metric(void)
{
	two_networks();
	tunnel("tun0", "tun", "10.8.0.2");
	add_route("tun0", AF_INET, NULL, NULL, 5000);
}

static void vpn_of_wg_quick(void)
{
	two_networks();
	tunnel("wg0", "wireguard", "10.8.0.2");
	add_route("wg0", AF_INET, NULL, NULL, 0)->table = 51820;
}

static void vpn_without_private_networks(void)
{
	two_networks();
	tunnel("wg0", "wireguard", "10.8.0.2");
	add_route("wg0", AF_INET, "0.0.0.0/5", NULL, 0);
	add_route("wg0", AF_INET, "128.0.0.0/3", NULL, 0);
	add_route("wg0", AF_INET, "192.128.0.0/11", NULL, 0);
	add_route("wg0", AF_INET, "200.0.0.0/5", NULL, 0);
	add_route("wg0", AF_INET, "192.172.0.0/14", NULL, 0);
}

static void vpn_of_one_family(void)
{
	vpn_by_halves();
	add_address("wlan0", "2001:db8:1::2");
	add_route("wlan0", AF_INET6, NULL, "2001:db8:1::1", 600);
	add_address("wwan0", "2001:db8:2::2");
	add_route("wwan0", AF_INET6, NULL, "2001:db8:2::1", 700);
}

static void vpn_to_the_converter(void)
{
	two_networks();
	tunnel("tun0", "tun", "10.8.0.2");
	add_route("tun0", AF_INET, "203.0.113.0/24", NULL, 0);
}

static void vpn_but_for_the_converter(void)
{
	vpn_by_halves();
	add_route("wlan0", AF_INET, "203.0.113.0/24", "192.0.2.1", 0);
}

static void vpn_elsewhere(void)
{
	two_networks();
	tunnel("tun0", "tun", "10.8.0.2");
	add_route("tun0", AF_INET, "10.0.0.0/8", NULL, 0);
}

static void vpn_that_is_down(void)
{
	vpn_by_halves();
	link_called("tun0")->up = false;
}

static void network_manager(void)
{
	two_networks();
	host.managers.nm_count = 2;
	host.managers.nm[0] = (struct host_nm_device){ .name = "wlan0", .metered = HOST_METERED_YES };
	host.managers.nm[1] = (struct host_nm_device){ .name = "wwan0", .disabled = true };
}

/* A device with two IPv6 addresses, of which the kernel lists @first first. */
static void two_addresses(uint32_t first, uint32_t second)
{
	two_networks();
	add_address("wwan0", "2001:db8:2::1")->flags = first;
	add_address("wwan0", "2001:db8:2::2")->flags = second;
	add_route("wwan0", AF_INET6, NULL, "fe80::1", 700);
}

static void temporary_address_behind(void)
{
	two_addresses(0, IFA_F_TEMPORARY);
}

static void deprecated_address_in_front(void)
{
	two_addresses(IFA_F_DEPRECATED | IFA_F_TEMPORARY, 0);
}

static void deprecated_address_with_endpoint(void)
{
	two_addresses(IFA_F_DEPRECATED, IFA_F_DADFAILED);
	add_endpoint("2001:db8:2::1", 1, "wwan0");
}

static void endpoint_of_another_manager(void)
{
	two_addresses(IFA_F_TEMPORARY, 0);
	add_endpoint("2001:db8:2::2", 1, "wwan0");
}

static void endpoint_of_the_service(void)
{
	two_addresses(0, 0);
	add_endpoint("2001:db8:2::2", 1, "wwan0");
	lists.rules[host.rule_count++] = (struct host_rule){ .from = address_of("2001:db8:2::2"), .protocol = HOST_PROTOCOL_OURS, .table = 8810 };
}

static void temporary_address_beside_the_services(void)
{
	endpoint_of_the_service();
	lists.addresses[2].flags = IFA_F_TEMPORARY;
}

static void address_of_the_link_in_front(void)
{
	add_network("wlan0", "", "192.0.2", 600);
	add_link("wwan0", "wwan");
	add_address("wwan0", "198.51.100.3")->scope = RT_SCOPE_LINK;
	add_address("wwan0", "198.51.100.2");
	add_route("wwan0", AF_INET, NULL, "198.51.100.1", 700);
}

static void two_addresses_of_a_network(void)
{
	two_networks();
	add_address("wwan0", "198.51.100.3");
}

static void usual_network_without_carrier(void)
{
	two_networks();
	link_called("wlan0")->carrier = false;
}

static void second_network_without_carrier(void)
{
	two_networks();
	link_called("wwan0")->carrier = false;
}

static void no_carrier_at_all(void)
{
	second_network_without_carrier();
	link_called("wlan0")->carrier = false;
}

static void network_in_a_vrf(void)
{
	two_networks();
	add_link("red", "vrf");
	link_called("wwan0")->master = link_called("red")->index;
}

static void two_devices_with_one_address(void)
{
	two_networks();
	add_network("eth0", "", "192.0.2", 100);
}

static void better_device_without_carrier(void)
{
	two_devices_with_one_address();
	link_called("eth0")->carrier = false;
}

/* @used: the networks of a connection to the converter if no user says anything */
static const struct {
	const char *name;
	void (*make)(void);
	const char *used;
} hosts[] = {
	{ "without a VPN", host_without_vpn, "wlan0 wwan0" },
	{ "bridge and container", host_with_bridge_and_container, "wlan0 wwan0" },
	{ "many bridges", host_with_many_bridges, "wlan0 wwan0" },
	{ "container", container, "eth0 eth1" },
	{ "VPN by halves", vpn_by_halves, "" },
	{ "VPN of lower metric", vpn_of_lower_metric, "" },
	{ "VPN of higher metric", vpn_of_higher_metric, "wlan0 wwan0" },
	{ "VPN of wg-quick", vpn_of_wg_quick, "" },
	{ "VPN without private networks", vpn_without_private_networks, "" },
	{ "VPN of one family", vpn_of_one_family, "" },
	{ "VPN to the converter", vpn_to_the_converter, "" },
	{ "VPN but for the converter", vpn_but_for_the_converter, "wlan0" },
	{ "VPN elsewhere", vpn_elsewhere, "wlan0 wwan0" },
	{ "VPN that is down", vpn_that_is_down, "wlan0 wwan0" },
	{ "NetworkManager", network_manager, "wlan0" },
	{ "temporary address behind", temporary_address_behind, "wlan0 wwan0 2001:db8:2::2" },
	{ "deprecated address in front", deprecated_address_in_front, "wlan0 wwan0 2001:db8:2::2" },
	{ "deprecated address with an endpoint", deprecated_address_with_endpoint, "wlan0 wwan0 2001:db8:2::1" },
	{ "endpoint of another manager", endpoint_of_another_manager, "wlan0 wwan0 2001:db8:2::2" },
	{ "endpoint of the service", endpoint_of_the_service, "wlan0 wwan0 2001:db8:2::2" },
	{ "temporary address beside the service's", temporary_address_beside_the_services, "wlan0 wwan0 2001:db8:2::1" },
	{ "address of the link in front", address_of_the_link_in_front, "wlan0 wwan0" },
	{ "two addresses of a network", two_addresses_of_a_network, "wlan0 wwan0" },
	{ "usual network without carrier", usual_network_without_carrier, "wwan0" },
	{ "second network without carrier", second_network_without_carrier, "wlan0" },
	{ "no carrier at all", no_carrier_at_all, "wlan0 wwan0" },
	{ "network in a VRF", network_in_a_vrf, "wlan0" },
	{ "two devices with one address", two_devices_with_one_address, "wwan0 eth0" },
	{ "better device without carrier", better_device_without_carrier, "wlan0 wwan0" },
};

/* --- the three --- */

/* The library's questions to the kernel (fake_lookup.h), with the host's answers. */

void host_way_ask(int netlink, const union sockaddr_ip *to, const struct in6_addr *from, unsigned int index, struct host_way *out)
{
	(void)netlink, (void)from; /* no host of the table has rules that send packets by another device */
	*out = (struct host_way){ .type = RTN_UNICAST, .index = find_way(to, index) };
	out->assumed = index && !out->index;
	out->error = out->index ? 0 : ENETUNREACH;
}

void host_ways_ask(int netlink, const union sockaddr_ip *converter, unsigned int ways[static HOST_WAY_COUNT])
{
	(void)netlink;
	find_ways(converter);
	memcpy(ways, host.ways, sizeof(host.ways));
}

struct host_link host_link_ask(int netlink, unsigned int index)
{
	const struct host_link *link = host_link_of(&host, index);

	(void)netlink;
	return link ? *link : (struct host_link){ .index = index };
}

bool host_device_name(int fd, unsigned int index, char name[static IF_NAMESIZE])
{
	(void)fd;
	strcpy(name, host_link_ask(fd, index).name);
	return *name;
}

int addresses_visit(int netlink, int family, address_visitor *visitor, void *arg)
{
	(void)netlink;
	for (size_t i = 0; i < host.address_count; i++) {
		const struct host_address *address = &host.addresses[i];

		if (address->address.sa.sa_family == family)
			visitor(arg, &(struct local_address){ .device = (int)address->index, .address = sockaddr_ip_in6(&address->address),
							      .flags = address->flags, .scope = address->scope });
	}
	return 0;
}

int service_rules_visit(int netlink, int family, service_rule_visitor *visitor, void *arg)
{
	(void)netlink;
	for (size_t i = 0; i < host.rule_count; i++) {
		const struct host_rule *rule = &host.rules[i];
		struct service_rule found = { .priority = rule->priority };

		if (rule->protocol != HOST_PROTOCOL_OURS || (*rule->device ? AF_INET : rule->from.sa.sa_family) != family)
			continue;
		strcpy(found.device, rule->device);
		if (!*rule->device)
			found.from = sockaddr_ip_in6(&rule->from);
		visitor(arg, &found);
	}
	return 0;
}

int endpoints_visit(endpoint_visitor *visitor, void *arg, struct mptcp_limits *limits)
{
	(void)limits;
	for (size_t i = 0; i < host.endpoints.count; i++)
		visitor(arg, &host.endpoints.endpoint[i]);
	return 0;
}

/* Does the library use the network for connections to @converter? NetworkManager's list, which takes a program to read, isn't its. */
static bool library_uses(const struct host_network *network, const struct network_policy *policy, const union sockaddr_ip *converter)
{
	const struct in6_addr address = sockaddr_ip_in6(&network->address);
	struct network found[NETWORKS_MAX];
	const size_t count = networks_to(converter, policy, found);

	for (size_t i = 0; i < count; i++)
		if (IN6_ARE_ADDR_EQUAL(&found[i].source, &address) && found[i].device == (int)network->link.index)
			return !found[i].unused && found[i].use != PATH_USE_NEVER;
	return false;
}

static bool is_kind_of_service(const char *kind)
{
	return !*kind || strcmp(kind, "wwan") == 0 || strcmp(kind, "bridge") == 0;
}

static void compare(const char *name, const struct network_policy *policy, const union sockaddr_ip *converter)
{
	struct network_policy doctors = *policy;
	struct host_network *doctor, *service;
	size_t count;

	find_ways(converter);
	doctors.any_kind = true;
	count = host_networks_find(&doctor, &host, &doctors);
	ck_assert_uint_eq(host_networks_find(&service, &host, policy), count);
	for (size_t i = 0; i < count; i++) {
		const char *device = doctor[i].link.name;
		char address[PREFIX_STRLEN];

		host_format_address(&doctor[i].address, address);
		if (host_kind_is_vpn(doctor[i].link.kind)) {
			ck_assert_msg((doctor[i].verdict != HOST_USED || policy->beside_vpn) && service[i].verdict != HOST_USED, "%s: %s", name, device);
			continue;
		}
		if (doctor[i].address.sa.sa_family == converter->sa.sa_family && doctor[i].verdict != HOST_DISABLED)
			ck_assert_msg((doctor[i].verdict == HOST_USED) == library_uses(&doctor[i], &doctors, converter),
				      "%s: %s %s: the doctor says %s, the library differs", name, device, address,
				      host_verdict_name(doctor[i].verdict));
		if (is_kind_of_service(doctor[i].link.kind))
			ck_assert_msg(service[i].verdict == doctor[i].verdict, "%s: %s %s: the service says %s, the doctor %s", name, device,
				      address, host_verdict_name(service[i].verdict), host_verdict_name(doctor[i].verdict));
		else
			ck_assert_msg(service[i].verdict != HOST_USED, "%s: %s %s", name, device, address);
	}
	free(doctor);
	free(service);
}

static void make(size_t i)
{
	union sockaddr_ip converter = address_of("203.0.113.7");

	begin();
	hosts[i].make();
	find_ways(&converter);
}

START_TEST(test_all_agree)
{
	const union sockaddr_ip converters[] = { address_of("203.0.113.7"), address_of("2001:db8:7::7") };
	struct path_preferences addresses = { .count = 0 };
	const struct network_policy policies[] = {
		{ .paths = &none },
		{ .paths = &none, .beside_vpn = true },
		{ .paths = &none, .never = "wlan*" },
		{ .paths = &none, .backup = "wwan0" },
		{ .paths = &wishes },
		{ .paths = &wishes, .beside_vpn = true, .never = "eth1" },
		{ .paths = &addresses },
	};

	wishes.count = 0;
	ck_assert_ptr_null(path_preferences_add(&wishes, "wwan0=never"));
	ck_assert_ptr_null(path_preferences_add(&wishes, "wlan0=backup"));
	ck_assert_ptr_null(path_preferences_add(&addresses, "198.51.100.2=never"));
	ck_assert_ptr_null(path_preferences_add(&addresses, "2001:db8:2::2=never"));
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		for (size_t j = 0; j < sizeof(policies) / sizeof(policies[0]); j++) {
			make(i);
			for (size_t k = 0; k < sizeof(converters) / sizeof(converters[0]); k++)
				compare(hosts[i].name, &policies[j], &converters[k]);
		}
}
END_TEST

/* One network with an address in each state: the library begins connections there if the doctor and the service use it. */
START_TEST(test_all_agree_about_addresses)
{
	static const struct {
		const char *address;
		uint8_t scope;
		uint32_t flags;
		enum host_verdict verdict;
	} cases[] = {
		{ "192.0.2.7", RT_SCOPE_UNIVERSE, 0, HOST_USED },
		{ "192.0.2.7", RT_SCOPE_UNIVERSE, IFA_F_PERMANENT, HOST_USED },
		{ "192.0.2.7", RT_SCOPE_SITE, 0, HOST_USED },
		{ "2001:db8::7", RT_SCOPE_UNIVERSE, IFA_F_TEMPORARY, HOST_USED },
		{ "2001:db8::7", RT_SCOPE_UNIVERSE, IFA_F_TENTATIVE, HOST_NOT_READY },
		{ "2001:db8::7", RT_SCOPE_UNIVERSE, IFA_F_TENTATIVE | IFA_F_OPTIMISTIC, HOST_USED },
		{ "2001:db8::7", RT_SCOPE_UNIVERSE, IFA_F_OPTIMISTIC, HOST_USED },
		{ "2001:db8::7", RT_SCOPE_UNIVERSE, IFA_F_DADFAILED, HOST_NOT_READY },
		{ "2001:db8::7", RT_SCOPE_UNIVERSE, IFA_F_TENTATIVE | IFA_F_OPTIMISTIC | IFA_F_DADFAILED, HOST_NOT_READY },
		{ "2001:db8::7", RT_SCOPE_UNIVERSE, IFA_F_DEPRECATED, HOST_DEPRECATED },
		{ "169.254.1.7", RT_SCOPE_UNIVERSE, 0, HOST_VERDICT_COUNT }, /* no network at all */
		{ "fe80::7", RT_SCOPE_LINK, 0, HOST_VERDICT_COUNT },
	};
	const struct network_policy policy = { .paths = &none, .any_kind = true };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const union sockaddr_ip address = address_of(cases[i].address);
		const union sockaddr_ip converter = address_of(sockaddr_ip_is_v4(&address) ? "203.0.113.7" : "2001:db8:7::7");
		struct network found[NETWORKS_MAX];
		struct host_network *networks;
		struct host_address *added;
		enum host_verdict verdict;

		begin();
		add_link("wlan0", "");
		added = add_address("wlan0", cases[i].address);
		added->scope = cases[i].scope;
		added->flags = cases[i].flags;
		add_route("wlan0", address.sa.sa_family, sockaddr_ip_is_v4(&address) ? "0.0.0.0/0" : "::/0",
			  sockaddr_ip_is_v4(&address) ? "192.0.2.1" : "2001:db8::1", 0);
		verdict = host_networks_find(&networks, &host, &policy) ? networks[0].verdict : HOST_VERDICT_COUNT;
		free(networks);
		ck_assert_msg(verdict == cases[i].verdict, "case %zu: the doctor says %s", i,
			      verdict == HOST_VERDICT_COUNT ? "no network" : host_verdict_name(verdict));
		ck_assert_msg(networks_to(&converter, &policy, found) == (verdict == HOST_USED), "case %zu: the library", i);
	}
}
END_TEST

START_TEST(test_what_is_used)
{
	const struct network_policy policy = { .any_kind = true };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		struct host_network *networks;
		char used[256] = "";
		size_t count;

		make(i);
		count = host_networks_find(&networks, &host, &policy);
		for (size_t j = 0; j < count; j++)
			if (networks[j].verdict == HOST_USED) {
				strcat(used, *used ? " " : "");
				if (sockaddr_ip_is_v4(&networks[j].address))
					strcat(used, networks[j].link.name);
				else
					host_format_address(&networks[j].address, used + strlen(used));
			}
		ck_assert_msg(strcmp(used, hosts[i].used) == 0, "%s: \"%s\" is used, and not \"%s\"", hosts[i].name, used, hosts[i].used);
		free(networks);
	}
}
END_TEST

/* However many networks the user names, and whatever for, what the service says of a device can only make a wish stricter. */
START_TEST(test_service_excludes_beside_all_wishes)
{
	static const char *const texts[] = { "eth0", "eth1", "wwan0", "eth2", "eth3", "wlan0=backup", "wwan1=never", "198.51.100.2=never" };
	const struct in6_addr address = { .s6_addr = { [10] = 0xff, 0xff, 198, 51, 100, 2 } };
	static struct settings settings;
	const struct path_preferences *found;
	uint8_t preference;

	for (size_t i = 0; i < PATH_PREFERENCES_MAX; i++)
		ck_assert_ptr_null(path_preferences_add(&settings.paths, texts[i]));
	lists.rules[host.rule_count++] = (struct host_rule){ .device = "wwan0", .protocol = HOST_PROTOCOL_OURS,
							     .priority = HOST_PROGRAMS_BACKUP_PRIORITY };
	lists.rules[host.rule_count++] = (struct host_rule){ .device = "wwan1", .protocol = HOST_PROTOCOL_OURS,
							     .priority = HOST_PROGRAMS_BACKUP_PRIORITY };
	lists.rules[host.rule_count++] = (struct host_rule){ .device = "wlan0", .protocol = HOST_PROTOCOL_OURS,
							     .priority = HOST_PROGRAMS_NEVER_PRIORITY };
	found = host_preferences(&settings);
	ck_assert_int_eq(path_preferences_of(found, "wwan0", &in6addr_any, &preference), PATH_USE_BACKUP);
	ck_assert_uint_eq(preference, PATH_PREFERENCE_NONE);
	ck_assert_int_eq(path_preferences_of(found, "wwan0", &address, &preference), PATH_USE_NEVER);
	ck_assert_int_eq(path_preferences_of(found, "wlan0", &in6addr_any, &preference), PATH_USE_NEVER);
	ck_assert_int_eq(path_preferences_of(found, "wwan1", &in6addr_any, &preference), PATH_USE_NEVER);
	ck_assert_int_eq(path_preferences_of(found, "eth2", &in6addr_any, &preference), PATH_USE_ORDERED);
	ck_assert_uint_eq(preference, 3);
}
END_TEST

/* Of several default routes over a device the one with the least metric says how it is preferred. */
START_TEST(test_least_metric_is_the_devices)
{
	const union sockaddr_ip router = address_of("192.0.2.7");

	add_network("eth0", "", "192.0.2", 300);
	add_route("eth0", AF_INET, NULL, "192.0.2.7", 100);
	add_route("eth0", AF_INET, NULL, "192.0.2.8", 200);
	look();
	ck_assert_uint_eq(wanted.count, 1);
	ck_assert_uint_eq(wanted.networks[0].metric, 100);
	ck_assert(sockaddr_ip_equal(&wanted.networks[0].gateway, &router));
}
END_TEST

/* Whichever is listed first. */
START_TEST(test_address_of_two_devices_is_left_to_the_one_with_a_carrier)
{
	for (int i = 0; i < 2; i++) {
		begin();
		add_network("eth0", "", "192.0.2", i ? 10 : 100);
		add_network("eth1", "", "192.0.2", i ? 100 : 10);
		link_called("eth0")->carrier = !i;
		link_called("eth1")->carrier = i;
		look();
		ck_assert_int_eq(verdict_of("eth0", "192.0.2.2"), i ? HOST_TWICE : HOST_USED);
		ck_assert_int_eq(verdict_of("eth1", "192.0.2.2"), i ? HOST_USED : HOST_TWICE);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("host");
	TCase *tcase = tcase_create("host");

	tcase_add_checked_fixture(tcase, begin, NULL);
	tcase_add_test(tcase, test_all_agree);
	tcase_add_test(tcase, test_all_agree_about_addresses);
	tcase_add_test(tcase, test_what_is_used);
	tcase_add_test(tcase, test_service_excludes_beside_all_wishes);
	tcase_add_test(tcase, test_least_metric_is_the_devices);
	tcase_add_test(tcase, test_address_of_two_devices_is_left_to_the_one_with_a_carrier);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
