/* SPDX-License-Identifier: BSD-3-Clause */
/* test_managed_choice.c - which paths are left alone: by the user's choice, or as they are somebody else's; and what is remembered */
#include "config.h"

#include "paths_world.h"

#include "common/quote.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

START_TEST(test_choice)
{
	two_networks();
	add_network("eth0", "veth", "10.9.9", 50);
	choice.policy.device = "eth*,wwan0";
	choice.policy.never = "wwan?";
	look();
	ck_assert_int_eq(verdict_of("wlan0", "192.0.2.2"), HOST_NOT_NAMED);
	ck_assert_int_eq(verdict_of("wwan0", "198.51.100.2"), HOST_NEVER);
	ck_assert_int_eq(verdict_of("eth0", "10.9.9.2"), HOST_USED);
	choice.policy.device = choice.policy.never = NULL;
	choice.policy.backup = "wwan0";
	settle();
	ck_assert_uint_eq(host_endpoint_of(&host, &lists.addresses[1].address)->flags,
			  MPTCP_PM_ADDR_FLAG_SUBFLOW | MPTCP_PM_ADDR_FLAG_BACKUP);
	choice.policy.backup = NULL;
	look();
	expect("ip mptcp endpoint change id 101 nobackup", "ip rule del oif wwan0 nop priority 8805 protocol 88");
	settle();
	choice.policy.backup = "wlan0";
	look();
	expect("ip mptcp endpoint change id 100 backup", "ip rule add oif wlan0 nop priority 8805 protocol 88");
}
END_TEST

/* Programs learn which devices this choice excludes, unless somebody else makes endpoints, or the manager ends. */
START_TEST(test_policy)
{
	two_networks();
	settle();
	choice.policy.never = "tun0, wl[0-9]*,a-pattern-that-is-too-long-for-a-rule*,tun0";
	ck_assert_ptr_null(path_preferences_add(&choice.paths, "wwan9=backup"));
	ck_assert_ptr_null(path_preferences_add(&choice.paths, "198.51.100.9=never"));
	ck_assert_ptr_null(path_preferences_add(&choice.paths, "wwan8"));
	choice.policy.paths = &choice.paths;
	look();
	expect("ip rule add oif wwan9 nop priority 8805 protocol 88", "ip rule add oif tun0 nop priority 8804 protocol 88",
	       "ip rule add oif 'wl[0-9]*' nop priority 8804 protocol 88");
	settle();
	host.managers.nm_count = 1;
	host.managers.nm[0].endpoints = true;
	look();
	ck_assert_uint_eq(operations.count, 3);
	for (size_t i = 0; i < operations.count; i++)
		ck_assert_int_eq(operations.list[i].kind, PATHS_RULE_DELETE);
	choice.policy.paths = NULL;
}
END_TEST

/* A device of which two settings say different things. */
START_TEST(test_contradictions)
{
	static const struct {
		const char *never, *backup, *paths, *problem;
	} cases[] = {
		{ "wwan*", NULL, "wlan0 wwan0=never", NULL },
		{ NULL, "wwan0", "wwan0=backup,wlan0", NULL },
		{ "wwan0", NULL, "198.51.100.2=backup", NULL },
		{ "wwan*", NULL, "wwan0=backup", "never-device: it names wwan0, and paths has wwan0=backup; keep one: paths also governs programs" },
		{ NULL, "wwan0", "wwan0", "backup-device: it names wwan0, and paths has wwan0; keep one: paths also governs programs" },
		{ NULL, NULL, "wwan0=metered", "paths: \"wwan0=metered\" has neither backup nor never after the =; "
					       "write the network first: wwan0=backup" },
	};
	char problem[PATHS_PROBLEM_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct paths_texts texts = { .never = cases[i].never, .backup = cases[i].backup, .paths = cases[i].paths };

		problem[0] = '\0';
		ck_assert_int_eq(paths_choice_read(&choice, &texts, problem), !cases[i].problem);
		ck_assert_str_eq(problem, cases[i].problem ? cases[i].problem : "");
	}
}
END_TEST

START_TEST(test_vpn)
{
	two_networks();
	settle();
	add_link("wg0", "wireguard");
	add_address("wg0", "10.8.0.2");
	look();
	expect_nothing();
	/* one for some destinations is none for all */
	add_route("wg0", AF_INET, "10.0.0.0/8", NULL, 0);
	look();
	expect_nothing();
	/* in a table of its own, as wg-quick has it */
	add_route("wg0", AF_INET, NULL, NULL, 0)->table = 51820;
	look();
	ck_assert_int_eq(verdict_of("wlan0", "192.0.2.2"), HOST_VPN);
	ck_assert_uint_eq(operations.count, 12);
	ck_assert_int_eq(operations.list[0].kind, PATHS_ENDPOINT_DELETE);
	choice.policy.beside_vpn = true;
	look();
	expect_nothing();
	ck_assert_int_eq(verdict_of("wg0", "10.8.0.2"), HOST_KIND);
	/* by halves, as OpenVPN has it */
	choice.policy.beside_vpn = false;
	host.route_count--;
	add_route("wg0", AF_INET, "128.0.0.0/1", NULL, 0);
	look();
	ck_assert_int_eq(verdict_of("wlan0", "192.0.2.2"), HOST_VPN);
	link_called("wg0")->up = false;
	look();
	expect_nothing();
}
END_TEST

/* Routes of other devices than tunnels, and the service's own routes, divert no traffic into a VPN. */
START_TEST(test_what_is_no_vpn)
{
	struct host_route *route;

	two_networks();
	add_route("wlan0", AF_INET, NULL, "192.0.2.1", 0)->table = 100;
	add_link("wg0", "wireguard");
	route = add_route("wg0", AF_INET, NULL, NULL, 0);
	route->table = 8805;
	route->protocol = HOST_PROTOCOL_OURS;
	route = add_route("wg0", AF_INET, "64.0.0.0/2", NULL, 0);
	route->table = 100;
	route = add_route("wg0", AF_INET, NULL, NULL, 0);
	route->table = 100;
	route->index = 77; /* a device that was removed meanwhile */
	look();
	ck_assert_int_eq(verdict_of("wlan0", "192.0.2.2"), HOST_USED);
	ck_assert_int_eq(verdict_of("wwan0", "198.51.100.2"), HOST_USED);
	/* a tunnel that the user names is one network among others */
	route->index = link_called("wg0")->index;
	look();
	ck_assert_int_eq(verdict_of("wlan0", "192.0.2.2"), HOST_VPN);
	choice.policy.device = "wlan0, wg0";
	look();
	ck_assert_int_eq(verdict_of("wlan0", "192.0.2.2"), HOST_USED);
}
END_TEST

/* A device of another kind is no network, unless it is named; nor is one that is gone, or this host itself. */
START_TEST(test_kinds)
{
	static const char *const kinds[] = { "", "wwan", "rmnet", "ppp", "vlan", "bond", "team", "bridge", "veth", "dummy", "ipvlan" };
	const size_t count = sizeof(kinds) / sizeof(kinds[0]);
	char name[16], number[16], address[24];

	for (size_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "net%zu", i);
		snprintf(number, sizeof(number), "10.0.%zu", i);
		add_network(name, kinds[i], number, 100);
	}
	add_address("net0", "10.0.0.99")->index = 77;
	look();
	ck_assert_uint_eq(wanted.count, count);
	for (size_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "net%zu", i);
		snprintf(address, sizeof(address), "10.0.%zu.2", i);
		ck_assert_int_eq(verdict_of(name, address), i < count - 3 ? HOST_USED : HOST_KIND);
	}
	link_called("net3")->up = false;
	add_network("lo", "", "10.0.77", 100);
	link_called("lo")->loopback = true;
	look();
	ck_assert_int_eq(verdict_of("net3", "10.0.3.2"), HOST_DOWN);
	ck_assert_uint_eq(wanted.count, count);
}
END_TEST

/* The default route of the other family, or the service's copy of one that is gone, leads nowhere. */
START_TEST(test_default_route_is_of_the_family_and_the_kernels)
{
	add_link("eth0", "");
	add_address("eth0", "2001:db8::2");
	add_address("eth0", "10.0.0.2");
	add_route("eth0", AF_INET6, NULL, "fe80::1", 100)->onlink = true;
	settle();
	ck_assert_int_eq(verdict_of("eth0", "2001:db8::2"), HOST_USED);
	ck_assert_int_eq(verdict_of("eth0", "10.0.0.2"), HOST_NO_ROUTE);
	ck_assert(wanted.networks[0].onlink);
	lists.routes[0] = lists.routes[--host.route_count];
	ck_assert_uint_gt(host.route_count, 0);
	look();
	ck_assert_int_eq(verdict_of("eth0", "2001:db8::2"), HOST_NO_ROUTE);
}
END_TEST

/* An endpoint is another manager's, though somebody else has a rule for its address. */
START_TEST(test_rule_of_somebody_elses)
{
	add_link("eth0", "");
	add_address("eth0", "2001:db8::1")->flags = IFA_F_TEMPORARY;
	add_address("eth0", "2001:db8::2");
	add_route("eth0", AF_INET6, NULL, "fe80::1", 100);
	add_endpoint("2001:db8::2", 1, "eth0");
	lists.rules[host.rule_count++] = (struct host_rule){ .from = address_of("2001:db8::2"), .table = 100, .protocol = RTPROT_BOOT };
	look();
	ck_assert_int_eq(verdict_of("eth0", "2001:db8::1"), HOST_SECOND);
	ck_assert_int_eq(verdict_of("eth0", "2001:db8::2"), HOST_USED);
}
END_TEST

/* The first address of a device, and the first device of an address. */
START_TEST(test_first_of_equals)
{
	add_network("eth0", "", "10.0.0", 100);
	add_address("eth0", "10.0.0.3");
	add_network("eth1", "", "10.0.0", 100);
	look();
	ck_assert_int_eq(verdict_of("eth0", "10.0.0.2"), HOST_USED);
	ck_assert_int_eq(verdict_of("eth0", "10.0.0.3"), HOST_SECOND);
	ck_assert_int_eq(verdict_of("eth1", "10.0.0.2"), HOST_TWICE);
}
END_TEST

/* A better device that the user excludes, or an address of another state, doesn't take the place of the one that is used. */
START_TEST(test_what_is_not_used_excludes_nothing)
{
	add_network("eth0", "", "10.0.0", 100);
	add_network("eth1", "", "10.0.0", 10);
	add_address("eth0", "2001:db8::1");
	add_address("eth0", "2001:db8::2")->flags = IFA_F_TEMPORARY | IFA_F_DADFAILED;
	add_route("eth0", AF_INET6, NULL, "fe80::1", 100);
	choice.policy.never = "eth1";
	look();
	ck_assert_int_eq(verdict_of("eth0", "10.0.0.2"), HOST_USED);
	ck_assert_int_eq(verdict_of("eth1", "10.0.0.2"), HOST_NEVER);
	ck_assert_int_eq(verdict_of("eth0", "2001:db8::1"), HOST_USED);
	ck_assert_int_eq(verdict_of("eth0", "2001:db8::2"), HOST_NOT_READY);
}
END_TEST

/* Endpoints that others keep take room, once; of networks of the same metric the last has none. */
START_TEST(test_room_for_eight)
{
	char name[16], number[16];

	for (int i = 0; i < HOST_ENDPOINTS_USED_MAX; i++) {
		snprintf(name, sizeof(name), "eth%d", i);
		snprintf(number, sizeof(number), "10.0.%d", i);
		add_network(name, "", number, 100);
	}
	add_endpoint("10.0.0.2", 1, "eth0");
	look();
	for (size_t i = 0; i < wanted.count; i++)
		ck_assert_int_eq(wanted.networks[i].verdict, HOST_USED);
	add_endpoint("203.0.113.1", 2, NULL);
	look();
	for (size_t i = 0; i < wanted.count; i++)
		ck_assert_int_eq(wanted.networks[i].verdict, i + 1 < wanted.count ? HOST_USED : HOST_FULL);
}
END_TEST

/* The smaller questions about a host: an address's device, a free table, a route for half of all addresses. */
START_TEST(test_lookups)
{
	union sockaddr_ip address = address_of("192.0.2.2"), gone = address_of("192.0.2.9");
	struct host_route route;

	two_networks();
	sockaddr_ip_set_port(&address, 443);
	ck_assert_ptr_eq(host_home_of(&host, &address), link_called("wlan0"));
	ck_assert_uint_eq(sockaddr_ip_port(&address), 443);
	ck_assert_ptr_null(host_home_of(&host, &gone));
	lists.tables[host.table_count++] = 8805;
	route = *add_route("wwan0", AF_INET, "128.0.0.0/1", NULL, 0);
	lists.routes[host.route_count - 1].table = 8806;
	ck_assert(host_table_is_taken(&host, 8805, link_called("wwan0")->index));
	ck_assert(host_table_is_taken(&host, 8806, link_called("wlan0")->index));
	ck_assert(!host_table_is_taken(&host, 8806, link_called("wwan0")->index));
	ck_assert(!host_table_is_taken(&host, 8807, 0));
	ck_assert(host_route_is_wide(&route) && !host_route_is_default(&route));
	route.to.length++;
	ck_assert(!host_route_is_wide(&route));
	route = *add_route("wwan0", AF_INET6, "8000::/1", NULL, 0);
	ck_assert(host_route_is_wide(&route) && !host_route_is_default(&route));
}
END_TEST

/* If a program manages paths in place of the kernel, the service keeps no endpoints. */
START_TEST(test_userspace_path_manager)
{
	two_networks();
	settle();
	host.managers.userspace = true;
	look();
	expect("ip mptcp endpoint delete id 100", "ip mptcp endpoint delete id 101");
}
END_TEST

START_TEST(test_what_is_somebody_elses)
{
	two_networks();
	add_endpoint("192.0.2.2", 1, "wlan0");
	lists.rules[host.rule_count++] = (struct host_rule){ address_of("198.51.100.2"), 102, 32765, RTPROT_BOOT, 0, "" };
	look();
	/* of each only what is missing */
	expect("ip route replace 192.0.2.0/24 dev wlan0 table 8805 proto 88",
	       "ip route replace default via 192.0.2.1 dev wlan0 table 8805 proto 88",
	       RULES("ip ", "add", "192.0.2.2", "8805"),
	       "ip mptcp endpoint add 198.51.100.2 id 100 dev wwan0 subflow");
	settle();
	/* a rule with our number in somebody's table isn't ours, and neither is an endpoint with the ID of one that we had */
	lists.rules[host.rule_count++] = (struct host_rule){ address_of("10.1.1.1"), 77, 5, HOST_PROTOCOL_OURS, 0, "" };
	host.endpoints.endpoint[1].address = address_of("198.51.100.99");
	paths_memory_mark(&memory, &host.endpoints);
	paths_difference_find(&operations, NULL, &host, &choice, &memory);
	expect(RULES("ip ", "del", "192.0.2.2", "8805"),
	       "ip route del 192.0.2.0/24 dev wlan0 table 8805 proto 88",
	       "ip route del default via 192.0.2.1 dev wlan0 table 8805 proto 88");
}
END_TEST

START_TEST(test_network_manager_and_mptcpd)
{
	two_networks();
	settle();
	host.managers.nm_count = 2;
	host.managers.nm[0] = (struct host_nm_device){ .name = "wlan0", .endpoints = true };
	host.managers.nm[1] = (struct host_nm_device){ .name = "wwan0", .metered = HOST_METERED_YES };
	look();
	/* of wlan0's the endpoint is left to it; wwan0 is metered, says its user */
	expect("ip mptcp endpoint change id 101 backup", "ip mptcp endpoint delete id 100",
	       "ip rule add oif wwan0 nop priority 8805 protocol 88", "ip rule add oif wwan0 nop priority 8807 protocol 88");
	settle();
	host.managers.nm[1] = (struct host_nm_device){ .name = "wwan0", .disabled = true };
	look();
	ck_assert_int_eq(verdict_of("wwan0", "198.51.100.2"), HOST_DISABLED);
	/* a connection may still begin there */
	ck_assert_uint_eq(wanted.exclusion_count, 0);
	ck_assert_int_eq(operations.list[0].kind, PATHS_ENDPOINT_DELETE);
	/* programs learn nothing about a metered device where others make endpoints, which are no backups */
	host.managers.nm[1] = (struct host_nm_device){ .name = "wwan0", .metered = HOST_METERED_YES, .endpoints = true };
	look();
	ck_assert_uint_eq(wanted.exclusion_count, 0);
	host.managers.nm[1].endpoints = false;
	look();
	ck_assert_uint_eq(wanted.exclusion_count, 2);
	host.managers.mptcpd = true;
	look();
	host.managers.mptcpd = false;
	ck_assert_uint_eq(wanted.exclusion_count, 0);
	host.managers.nm_count = 0;
	settle();
	host.managers.mptcpd = true;
	look();
	expect("ip mptcp endpoint delete id 101", "ip mptcp endpoint delete id 100");
}
END_TEST

START_TEST(test_nmcli)
{
	const char *uuids[HOST_NM_DEVICES_MAX];
	char text[] = "GENERAL.DEVICE:wlan0\nGENERAL.CON-UUID:6b1-a\nGENERAL.METERED:no (guessed)\n\n"
		      "GENERAL.DEVICE:lo\nGENERAL.CON-UUID:\nGENERAL.METERED:unknown\n\n"
		      "GENERAL.DEVICE:ttyUSB0\nGENERAL.CON-UUID:6b1-b\nGENERAL.METERED:yes\n";

	host_nm_parse_devices(&host.managers, text, uuids);
	ck_assert_uint_eq(host.managers.nm_count, 2);
	ck_assert_str_eq(host.managers.nm[0].name, "wlan0");
	ck_assert_str_eq(uuids[0], "6b1-a");
	ck_assert_int_eq(host.managers.nm[0].metered, HOST_METERED_GUESSED_NO);
	ck_assert_str_eq(uuids[1], "6b1-b");
	ck_assert_int_eq(host.managers.nm[1].metered, HOST_METERED_YES);
	host_nm_parse_flags(&host.managers.nm[0], "0x0 (default)\n");
	ck_assert(host.managers.nm[0].endpoints && !host.managers.nm[0].disabled);
	host_nm_parse_flags(&host.managers.nm[0], "0x2 (disabled)\n");
	ck_assert(!host.managers.nm[0].endpoints && host.managers.nm[0].disabled);
	host_nm_parse_flags(&host.managers.nm[0], "\n");
	ck_assert(!host.managers.nm[0].endpoints && !host.managers.nm[0].disabled);
}
END_TEST

START_TEST(test_tables)
{
	two_networks();
	/* somebody has taken the first one's place, and the range has two */
	choice.table_first = 8805;
	choice.table_last = 8806;
	lists.tables[host.table_count++] = 8805;
	settle();
	ck_assert_uint_eq(wanted.networks[0].table + wanted.networks[1].table, 8806);
	/* with another range, what was made in the old one is taken away */
	begin();
	two_networks();
	settle();
	memory.table_first = 8803;
	memory.table_last = 8866;
	choice.table_first = 100;
	choice.table_last = 199;
	look();
	ck_assert_uint_eq(operations.count, 16);
	settle();
	/* a device keeps its table */
	lists.routes[host.route_count - 1].table = lists.routes[host.route_count - 2].table;
	look();
	expect_nothing();
}
END_TEST

START_TEST(test_no_more_than_eight)
{
	for (int i = 0; i < 12; i++) {
		char name[16], number[16];

		snprintf(name, sizeof(name), "eth%d", i);
		snprintf(number, sizeof(number), "10.0.%d", i);
		add_network(name, "", number, (uint32_t)(100 - i));
	}
	add_endpoint("203.0.113.1", 1, NULL);
	settle();
	ck_assert_uint_eq(host.endpoints.count, HOST_ENDPOINTS_USED_MAX);
	ck_assert_uint_eq(host.endpoints.subflow_limit, 7);
	/* those with the least metrics */
	ck_assert_int_eq(verdict_of("eth11", "10.0.11.2"), HOST_USED);
	ck_assert_int_eq(verdict_of("eth4", "10.0.4.2"), HOST_FULL);
}
END_TEST

START_TEST(test_memory)
{
	struct paths_memory read;
	char text[4096];
	ssize_t len;

	two_networks();
	add_link("eth0", "");
	add_route("eth0", AF_INET6, NULL, "fe80::9", 1024);
	add_address("eth0", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff");
	host.endpoints.subflow_limit = 1;
	settle();
	memory.table_first = 8803;
	memory.table_last = 8866;
	len = paths_memory_format(&memory, text, sizeof(text));
	ck_assert_int_gt(len, 0);
	for (ssize_t size = 0; size <= len; size++)
		ck_assert_int_eq(paths_memory_format(&memory, (char[4096]){ 0 }, (size_t)size), -ENOSPC);
	paths_memory_parse(&read, text);
	ck_assert_uint_eq(read.count, 3);
	ck_assert_uint_eq(read.limit_before, 1);
	ck_assert_uint_eq(read.limit_set, 2);
	ck_assert_uint_eq(read.table_last, 8866);
	for (size_t i = 0; i < host.endpoints.count; i++)
		ck_assert_ptr_nonnull(paths_memory_find(&read, &host.endpoints.endpoint[i]));
	strcpy(text, "endpoint 0 10.0.0.1 1 1\nendpoint 3 nowhere 1 1\nendpoint\nfoo\nendpoint 9 10.0.0.1:5 1 1\ntables 1\n");
	paths_memory_parse(&read, text);
	ck_assert_uint_eq(read.count, 0);
	ck_assert_uint_eq(read.table_first, 0);
}
END_TEST

/* However many addresses a host has, the endpoints of those behind them stay. */
START_TEST(test_many_addresses)
{
	char text[32];

	add_link("eth0", "");
	for (int i = 0; i < 90; i++) {
		snprintf(text, sizeof(text), "10.1.1.%d", i + 1);
		add_address("eth0", text);
	}
	two_networks();
	settle();
	ck_assert_uint_eq(host.endpoints.count, 2);
	look();
	expect_nothing();
	ck_assert_int_eq(verdict_of("wwan0", "198.51.100.2"), HOST_USED);
}
END_TEST

/* The name of a device may have any character but blanks, '/' and ':'. */
START_TEST(test_names_are_quoted)
{
	static const struct {
		const char *name, *quoted;
	} names[] = {
		{ "wlan0", "wlan0" },
		{ "x;id>zz", "'x;id>zz'" },
		{ "a'b$c", "'a'\\''b$c'" },
		{ "e\x1b[7m%'\\\a", "\"$(printf 'e\\033[7m\\045\\047\\134\\007')\"" },
	};
	char command[PATHS_COMMAND_MAX], expected[PATHS_COMMAND_MAX], text[] = "a\x1b]0;b\r\a\nc";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct paths_operation operation = { .kind = PATHS_ENDPOINT_ADD, .endpoint = { .address = address_of("192.0.2.2"), .id = 7 } };

		strcpy(operation.device, names[i].name);
		snprintf(expected, sizeof(expected), "ip mptcp endpoint add 192.0.2.2 id 7 dev %s subflow", names[i].quoted);
		ck_assert_str_eq(paths_operation_format(&operation, command), expected);
		operation.kind = PATHS_ROUTE_ADD;
		operation.route = (struct host_route){ .family = AF_INET, .table = 9, .to.length = HOST_V4_BITS };
		snprintf(expected, sizeof(expected), "ip route replace default dev %s table 9 proto 88", names[i].quoted);
		ck_assert_str_eq(paths_operation_format(&operation, command), expected);
	}
	ck_assert_str_eq(shell_printable(text), "a?]0;b??\nc");
}
END_TEST

START_TEST(test_choice_is_read)
{
	static const struct {
		const char *device, *never, *tables, *vpn, *problem;
	} wrong[] = {
		{ "a-name-that-is-too-long", NULL, NULL, NULL, "device: \"a-name-that-is-too-long\" is longer than a device's name, 15 "
							       "characters; \"ip link\" shows the names" },
		{ NULL, "eth/0", NULL, NULL, "never-device: \"eth/0\" isn't a device's name; \"ip link\" shows the names" },
		{ NULL, NULL, "9", NULL, "tables: \"9\" isn't a range of routing tables; write it as in 8803-8866" },
		{ NULL, NULL, "9-3", NULL, "tables: \"9-3\" isn't a range of routing tables; write it as in 8803-8866" },
		{ NULL, NULL, "1-5x", NULL, "tables: \"1-5x\" isn't a range of routing tables; write it as in 8803-8866" },
		{ NULL, NULL, "200-300", NULL, "tables: \"200-300\" has tables that are the kernel's, 252 to 255; choose a range without them" },
		{ NULL, NULL, NULL, "yes", "beside-vpn: \"yes\" is neither 0 nor 1" },
	};
	char problem[PATHS_PROBLEM_MAX];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert(!paths_choice_read(&choice, &(struct paths_texts){ wrong[i].device, wrong[i].never, NULL, NULL, wrong[i].tables, wrong[i].vpn, NULL }, problem));
		ck_assert_str_eq(problem, wrong[i].problem);
	}
	ck_assert(paths_choice_read(&choice, &(struct paths_texts){ "wl*, eth[0-9],", NULL, NULL, NULL, "1-4294967295", "1", NULL }, problem) == false);
	ck_assert(paths_choice_read(&choice, &(struct paths_texts){ "wl*, eth[0-9],", "", NULL, NULL, "4294967290-4294967295", "1", NULL }, problem));
	ck_assert(name_list_has(choice.policy.device, "wlp2s0") && name_list_has(choice.policy.device, "eth3"));
	ck_assert(!name_list_has(choice.policy.device, "eth33") && !name_list_has(choice.policy.never, "") && choice.policy.beside_vpn);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("managed_choice");
	TCase *tcase = tcase_create("choice");

	tcase_add_checked_fixture(tcase, begin, NULL);
	tcase_add_test(tcase, test_choice);
	tcase_add_test(tcase, test_policy);
	tcase_add_test(tcase, test_contradictions);
	tcase_add_test(tcase, test_vpn);
	tcase_add_test(tcase, test_what_is_no_vpn);
	tcase_add_test(tcase, test_kinds);
	tcase_add_test(tcase, test_default_route_is_of_the_family_and_the_kernels);
	tcase_add_test(tcase, test_rule_of_somebody_elses);
	tcase_add_test(tcase, test_first_of_equals);
	tcase_add_test(tcase, test_what_is_not_used_excludes_nothing);
	tcase_add_test(tcase, test_room_for_eight);
	tcase_add_test(tcase, test_lookups);
	tcase_add_test(tcase, test_userspace_path_manager);
	tcase_add_test(tcase, test_what_is_somebody_elses);
	tcase_add_test(tcase, test_network_manager_and_mptcpd);
	tcase_add_test(tcase, test_nmcli);
	tcase_add_test(tcase, test_tables);
	tcase_add_test(tcase, test_no_more_than_eight);
	tcase_add_test(tcase, test_memory);
	tcase_add_test(tcase, test_choice_is_read);
	tcase_add_test(tcase, test_many_addresses);
	tcase_add_test(tcase, test_names_are_quoted);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
