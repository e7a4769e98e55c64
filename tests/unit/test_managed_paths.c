/* SPDX-License-Identifier: BSD-3-Clause */
/* test_managed_paths.c - which paths are wanted of networks that come, change and go, and what is to be done for them */
#include "config.h"

#include "paths_world.h"

#include <linux/if_addr.h>
#include <linux/mptcp.h>
#include <linux/rtnetlink.h>

START_TEST(test_two_networks)
{
	two_networks();
	look();
	expect("ip route replace 192.0.2.0/24 dev wlan0 table 8805 proto 88",
	       "ip route replace default via 192.0.2.1 dev wlan0 table 8805 proto 88",
	       "ip route replace 198.51.100.0/24 dev wwan0 table 8806 proto 88",
	       "ip route replace default via 198.51.100.1 dev wwan0 table 8806 proto 88",
	       RULES("ip ", "add", "192.0.2.2", "8805"),
	       RULES("ip ", "add", "198.51.100.2", "8806"),
	       "ip mptcp endpoint add 192.0.2.2 id 100 dev wlan0 subflow",
	       "ip mptcp endpoint add 198.51.100.2 id 101 dev wwan0 subflow");
	settle();
}
END_TEST

START_TEST(test_all_is_taken_away)
{
	two_networks();
	host.endpoints.subflow_limit = 0;
	add_endpoint("203.0.113.9", 1, NULL);
	look();
	ck_assert_int_eq(operations.list[0].kind, PATHS_LIMIT_SET);
	settle();
	ck_assert_uint_eq(host.endpoints.subflow_limit, 2);
	paths_difference_find(&operations, NULL, &host, &choice, &memory);
	expect("ip mptcp limits set subflows 0", "ip mptcp endpoint delete id 100", "ip mptcp endpoint delete id 101",
	       RULES("ip ", "del", "192.0.2.2", "8805"),
	       RULES("ip ", "del", "198.51.100.2", "8806"),
	       "ip route del 192.0.2.0/24 dev wlan0 table 8805 proto 88",
	       "ip route del default via 192.0.2.1 dev wlan0 table 8805 proto 88",
	       "ip route del 198.51.100.0/24 dev wwan0 table 8806 proto 88",
	       "ip route del default via 198.51.100.1 dev wwan0 table 8806 proto 88");
	/* a limit that somebody has set since is that somebody's */
	host.endpoints.subflow_limit = 5;
	paths_difference_find(&operations, NULL, &host, &choice, &memory);
	ck_assert_int_eq(operations.list[0].kind, PATHS_ENDPOINT_DELETE);
}
END_TEST

START_TEST(test_address_is_replaced)
{
	two_networks();
	settle();
	remove_address("192.0.2.2");
	add_address("wlan0", "192.0.2.77");
	look();
	/* the new subflow before the old one goes */
	expect(RULES("ip ", "add", "192.0.2.77", "8805"),
	       "ip mptcp endpoint add 192.0.2.77 id 102 dev wlan0 subflow", "ip mptcp endpoint delete id 100",
	       RULES("ip ", "del", "192.0.2.2", "8805"));
	settle();
}
END_TEST

START_TEST(test_flapping)
{
	two_networks();
	settle();
	for (int i = 0; i < 5; i++) {
		link_called("wlan0")->carrier = false;
		look();
		expect("ip mptcp endpoint delete id 100");
		settle();
		ck_assert_int_eq(verdict_of("wlan0", "192.0.2.2"), HOST_NO_CARRIER);
		link_called("wlan0")->carrier = true;
		look();
		expect("ip mptcp endpoint add 192.0.2.2 id 100 dev wlan0 subflow");
		settle();
	}
	/* the last network keeps its endpoint, and the other one has its own when it has a carrier again */
	link_called("wlan0")->carrier = false;
	settle();
	link_called("wwan0")->carrier = false;
	look();
	expect_nothing();
	ck_assert_int_eq(verdict_of("wlan0", "192.0.2.2"), HOST_USED);
	link_called("wlan0")->carrier = true;
	look();
	expect("ip mptcp endpoint add 192.0.2.2 id 100 dev wlan0 subflow", "ip mptcp endpoint delete id 101");
}
END_TEST

START_TEST(test_link_goes_down)
{
	two_networks();
	settle();
	/* the kernel takes its routes along, and ours */
	link_called("wlan0")->up = link_called("wlan0")->carrier = false;
	remove_routes_of("wlan0");
	look();
	expect("ip mptcp endpoint delete id 100", RULES("ip ", "del", "192.0.2.2", "8805"));
	settle();
}
END_TEST

/* Where none is left nobody can be told that subflows end: endpoints stay, with what connections have from there. */
START_TEST(test_all_links_go_down)
{
	two_networks();
	settle();
	link_called("wlan0")->up = link_called("wlan0")->carrier = false;
	remove_routes_of("wlan0");
	link_called("wwan0")->up = link_called("wwan0")->carrier = false;
	remove_routes_of("wwan0");
	look();
	expect(RULES("ip ", "del", "192.0.2.2", "8805"),
	       RULES("ip ", "del", "198.51.100.2", "8806"));
	settle();
	/* the address is gone as well, and nobody has chosen that */
	remove_address("192.0.2.2");
	look();
	expect_nothing();
	/* who chooses that a network isn't used doesn't wait for another one */
	choice.policy.never = "wwan0";
	look();
	expect("ip mptcp endpoint delete id 101", "ip rule add oif wwan0 nop priority 8804 protocol 88");
	choice.policy.never = NULL;
	/* with the first that works the others go */
	link_called("wwan0")->up = link_called("wwan0")->carrier = true;
	add_route("wwan0", AF_INET, "198.51.100.0/24", NULL, 0);
	add_route("wwan0", AF_INET, NULL, "198.51.100.1", 700);
	look();
	ck_assert_str_eq(paths_operation_format(&operations.list[operations.count - 1], (char[PATHS_COMMAND_MAX]){ 0 }),
			 "ip mptcp endpoint delete id 100");
}
END_TEST

/* A manager that is killed while it announces an address leaves an endpoint that begins no subflow: it is made anew. */
START_TEST(test_announced)
{
	two_networks();
	settle();
	for (size_t i = 0; i < host.endpoints.count; i++)
		if (host.endpoints.endpoint[i].id == 100)
			host.endpoints.endpoint[i].flags = MPTCP_PM_ADDR_FLAG_SIGNAL;
	look();
	ck_assert_str_eq(paths_operation_format(&operations.list[0], (char[PATHS_COMMAND_MAX]){ 0 }), "ip mptcp endpoint delete id 100");
	ck_assert_uint_eq(operations.count, 2);
	settle();
}
END_TEST

/* A network that has gone keeps its endpoint while a connection needs it, though another one is back; not if a setting excludes it. */
START_TEST(test_needed_by_a_connection)
{
	two_networks();
	settle();
	link_called("wwan0")->carrier = false;
	look();
	expect("ip mptcp endpoint delete id 101");
	wanted.needed[wanted.needed_count++] = address_of("198.51.100.2");
	paths_difference_find(&operations, &wanted, &host, &choice, &memory);
	expect_nothing();
	choice.policy.never = "wwan0";
	look();
	wanted.needed[wanted.needed_count++] = address_of("198.51.100.2");
	paths_difference_find(&operations, &wanted, &host, &choice, &memory);
	ck_assert_int_eq(operations.list[0].kind, PATHS_ENDPOINT_DELETE);
	choice.policy.never = NULL;
	/* one that isn't there is made when there is a carrier: its SYN would fail, and Linux sends no other */
	settle();
	link_called("wlan0")->carrier = false;
	look();
	ck_assert_int_eq(verdict_of("wwan0", "198.51.100.2"), HOST_USED);
	for (size_t i = 0; i < operations.count; i++)
		ck_assert_int_ne(operations.list[i].kind, PATHS_ENDPOINT_ADD);
	link_called("wwan0")->carrier = true;
	look();
	ck_assert_int_eq(operations.list[operations.count - 1].kind, PATHS_ENDPOINT_DELETE);
	ck_assert_int_eq(operations.list[operations.count - 2].kind, PATHS_ENDPOINT_ADD);
}
END_TEST

START_TEST(test_renewal)
{
	two_networks();
	settle();
	/* the same with another lifetime: nothing that is known here has changed */
	remove_address("192.0.2.2");
	add_address("wlan0", "192.0.2.2");
	look();
	expect_nothing();
	/* with the address the kernel has taken the routes that are of it */
	remove_routes_of("wlan0");
	add_route("wlan0", AF_INET, "192.0.2.0/24", NULL, 0);
	add_route("wlan0", AF_INET, NULL, "192.0.2.1", 600);
	look();
	expect("ip route replace 192.0.2.0/24 dev wlan0 table 8805 proto 88",
	       "ip route replace default via 192.0.2.1 dev wlan0 table 8805 proto 88");
}
END_TEST

START_TEST(test_router_is_replaced)
{
	two_networks();
	settle();
	for (size_t i = 0; i < host.route_count; i++)
		if (lists.routes[i].table == RT_TABLE_MAIN && lists.routes[i].gateway.sa.sa_family == AF_INET &&
		    lists.routes[i].index == link_called("wlan0")->index)
			lists.routes[i].gateway = address_of("192.0.2.254");
	look();
	expect("ip route replace default via 192.0.2.254 dev wlan0 table 8805 proto 88",
	       "ip route del default via 192.0.2.1 dev wlan0 table 8805 proto 88");
}
END_TEST

START_TEST(test_same_address_twice)
{
	add_network("wlan0", "", "192.168.1", 600);
	add_network("wwan0", "", "192.168.1", 700);
	look();
	ck_assert_int_eq(verdict_of("wlan0", "192.168.1.2"), HOST_USED);
	ck_assert_int_eq(verdict_of("wwan0", "192.168.1.2"), HOST_TWICE);
	settle();
	/* the other one is better off now: an address has one endpoint, so that the old one goes first */
	link_called("wlan0")->carrier = false;
	look();
	expect("ip route replace 192.168.1.0/24 dev wwan0 table 8806 proto 88",
	       "ip route replace default via 192.168.1.1 dev wwan0 table 8806 proto 88",
	       "ip rule add from 192.168.1.2 table 8806 suppress_prefixlength 1 priority 8801 protocol 88",
	       "ip rule add from 192.168.1.2 table 8806 priority 8803 protocol 88", "ip mptcp endpoint delete id 100",
	       "ip mptcp endpoint add 192.168.1.2 id 101 dev wwan0 subflow",
	       "ip rule del from 192.168.1.2 table 8805 suppress_prefixlength 1 priority 8801 protocol 88",
	       "ip rule del from 192.168.1.2 table 8805 priority 8803 protocol 88",
	       "ip route del 192.168.1.0/24 dev wlan0 table 8805 proto 88",
	       "ip route del default via 192.168.1.1 dev wlan0 table 8805 proto 88");
	settle();
}
END_TEST

START_TEST(test_ipv6_prefixes)
{
	struct host_address *old;

	add_link("wlan0", "");
	add_address("wlan0", "fe80::1")->scope = RT_SCOPE_LINK;
	add_route("wlan0", AF_INET6, NULL, "fe80::9", 1024)->protocol = RTPROT_RA;
	add_route("wlan0", AF_INET6, "2001:db8:1::/64", NULL, 256);
	old = add_address("wlan0", "2001:db8:1::2");
	look();
	ck_assert_uint_eq(wanted.count, 1);
	expect("ip -6 route replace 2001:db8:1::/64 dev wlan0 table 8805 proto 88",
	       "ip -6 route replace default via fe80::9 dev wlan0 table 8805 proto 88",
	       RULES("ip -6 ", "add", "2001:db8:1::2", "8805"),
	       "ip mptcp endpoint add 2001:db8:1::2 id 100 dev wlan0 subflow");
	settle();
	/* another prefix is announced, and the old address is deprecated: it stays until the new one is ready */
	old->flags = IFA_F_DEPRECATED;
	add_address("wlan0", "2001:db8:2::2")->flags = IFA_F_TENTATIVE;
	add_route("wlan0", AF_INET6, "2001:db8:2::/64", NULL, 256);
	look();
	ck_assert_int_eq(verdict_of("wlan0", "2001:db8:2::2"), HOST_NOT_READY);
	expect("ip -6 route replace 2001:db8:2::/64 dev wlan0 table 8805 proto 88");
	settle();
	lists.addresses[host.address_count - 1].flags = 0;
	look();
	expect(RULES("ip -6 ", "add", "2001:db8:2::2", "8805"),
	       "ip mptcp endpoint add 2001:db8:2::2 id 101 dev wlan0 subflow", "ip mptcp endpoint delete id 100",
	       RULES("ip -6 ", "del", "2001:db8:1::2", "8805"));
	/* unless a connection has no established subflow from another address: then nothing is deleted before it has */
	ck_assert(paths_wanted_is_outage(&wanted, &old->address));
	wanted.needed[wanted.needed_count++] = old->address;
	paths_difference_find(&operations, &wanted, &host, &choice, &memory);
	expect(RULES("ip -6 ", "add", "2001:db8:2::2", "8805"),
	       "ip mptcp endpoint add 2001:db8:2::2 id 101 dev wlan0 subflow");
}
END_TEST

START_TEST(test_router_of_the_other_family)
{
	add_link("wlan0", "");
	add_address("wlan0", "192.0.2.2");
	add_route("wlan0", AF_INET, NULL, "fe80::9", 600);
	look();
	expect("ip -4 route replace default via inet6 fe80::9 dev wlan0 table 8805 proto 88", RULES("ip ", "add", "192.0.2.2", "8805"),
	       "ip mptcp endpoint add 192.0.2.2 id 100 dev wlan0 subflow");
	settle();
}
END_TEST

START_TEST(test_which_of_several_addresses)
{
	add_link("wlan0", "");
	add_route("wlan0", AF_INET6, NULL, "fe80::9", 1024);
	add_address("wlan0", "2001:db8::1");
	settle();
	ck_assert_int_eq(verdict_of("wlan0", "2001:db8::1"), HOST_USED);
	/* a second one that is as good doesn't take its place; one that hides the host does, and only one */
	add_address("wlan0", "2001:db8::2");
	look();
	expect_nothing();
	ck_assert_int_eq(verdict_of("wlan0", "2001:db8::2"), HOST_SECOND);
	add_address("wlan0", "2001:db8::3")->flags = IFA_F_TEMPORARY;
	settle();
	ck_assert_int_eq(verdict_of("wlan0", "2001:db8::3"), HOST_USED);
	ck_assert_int_eq(verdict_of("wlan0", "2001:db8::1"), HOST_SECOND);
	add_address("wlan0", "2001:db8::4")->flags = IFA_F_TEMPORARY;
	look();
	expect_nothing();
	ck_assert_uint_eq(host.endpoints.count, 1);
}
END_TEST

START_TEST(test_what_is_no_network)
{
	add_network("wlan0", "", "192.0.2", 600);
	add_link("docker0", "bridge");
	add_address("docker0", "172.17.0.1");
	add_route("docker0", AF_INET, "172.17.0.0/16", NULL, 0);
	add_network("eth0", "veth", "10.9.9", 50);
	add_network("gre1", "gre", "10.9.8", 50);
	add_network("port", "", "10.9.7", 50);
	link_called("port")->master = 99;
	add_link("lo", "")->loopback = true;
	add_address("lo", "192.0.2.200");
	add_link("usb0", "");
	add_address("usb0", "169.254.3.4");
	add_address("usb0", "169.254.3.5")->scope = RT_SCOPE_LINK;
	add_address("usb0", "10.1.1.1")->flags = IFA_F_DADFAILED;
	add_route("usb0", AF_INET, NULL, "169.254.3.1", 5);
	look();
	ck_assert_int_eq(verdict_of("docker0", "172.17.0.1"), HOST_NO_ROUTE);
	ck_assert_int_eq(verdict_of("eth0", "10.9.9.2"), HOST_KIND);
	ck_assert_int_eq(verdict_of("gre1", "10.9.8.2"), HOST_KIND);
	ck_assert_int_eq(verdict_of("port", "10.9.7.2"), HOST_PART);
	ck_assert_int_eq(verdict_of("usb0", "10.1.1.1"), HOST_NOT_READY);
	/* neither the loopback nor link-local addresses are even named */
	ck_assert_uint_eq(wanted.count, 6);
	ck_assert_uint_eq(operations.count, 6);
	/* a bridge that is the way to everywhere is this host's network */
	add_route("docker0", AF_INET, NULL, "172.17.0.254", 5);
	look();
	ck_assert_int_eq(verdict_of("docker0", "172.17.0.1"), HOST_USED);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("managed_paths");
	TCase *tcase = tcase_create("paths");

	tcase_add_checked_fixture(tcase, begin, NULL);
	tcase_add_test(tcase, test_two_networks);
	tcase_add_test(tcase, test_all_is_taken_away);
	tcase_add_test(tcase, test_address_is_replaced);
	tcase_add_test(tcase, test_flapping);
	tcase_add_test(tcase, test_link_goes_down);
	tcase_add_test(tcase, test_all_links_go_down);
	tcase_add_test(tcase, test_announced);
	tcase_add_test(tcase, test_needed_by_a_connection);
	tcase_add_test(tcase, test_renewal);
	tcase_add_test(tcase, test_router_is_replaced);
	tcase_add_test(tcase, test_same_address_twice);
	tcase_add_test(tcase, test_ipv6_prefixes);
	tcase_add_test(tcase, test_which_of_several_addresses);
	tcase_add_test(tcase, test_router_of_the_other_family);
	tcase_add_test(tcase, test_what_is_no_network);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
