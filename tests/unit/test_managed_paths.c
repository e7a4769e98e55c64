/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_managed_paths.c - which paths are wanted of a world, and what is to be done for them
 *
 * A world is put together by the functions below, and the operations are read as the commands that they stand for. settle() does them
 * to the world, as the kernel would: what is found then is nothing.
 */
#include "config.h"

#include "paths/difference.h"
#include "run.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define ROOM 64

static struct {
	struct paths_link links[ROOM];
	struct paths_address addresses[ROOM];
	struct paths_route routes[ROOM];
	struct paths_rule rules[ROOM];
	uint32_t tables[ROOM];
} lists;
static struct paths_world world;
static struct paths_choice choice;
static struct paths_others others;
static struct paths_memory memory;
static struct paths_wanted wanted;
static struct paths_operations operations;

static void begin(void)
{
	memset(&lists, 0, sizeof(lists));
	memset(&memory, 0, sizeof(memory));
	memset(&others, 0, sizeof(others));
	world = (struct paths_world){ .links = lists.links,
				      .addresses = lists.addresses,
				      .routes = lists.routes,
				      .rules = lists.rules,
				      .tables = lists.tables,
				      .endpoints.subflow_limit = 2 };
	choice = (struct paths_choice){ .table_first = 8803, .table_last = 8866 };
}

/* --- a world ---------------------------------------------------------------------------- */

static union sockaddr_ip address_of(const char *text)
{
	union sockaddr_ip address;

	ck_assert_int_eq(sockaddr_ip_parse(&address, text, 0), 0);
	return address;
}

static struct paths_link *link_called(const char *name)
{
	for (size_t i = 0; i < world.link_count; i++)
		if (strcmp(lists.links[i].name, name) == 0)
			return &lists.links[i];
	ck_abort_msg("no link %s", name);
}

static struct paths_link *add_link(const char *name, const char *kind)
{
	struct paths_link *link = &lists.links[world.link_count++];

	link->index = (unsigned int)world.link_count + 1;
	strcpy(link->name, name);
	strcpy(link->kind, kind);
	link->up = link->carrier = true;
	return link;
}

static struct paths_address *add_address(const char *device, const char *address)
{
	struct paths_address *added = &lists.addresses[world.address_count++];

	*added = (struct paths_address){ .index = link_called(device)->index, .address = address_of(address) };
	return added;
}

static void remove_address(const char *address)
{
	union sockaddr_ip gone = address_of(address);

	for (size_t i = world.address_count; i-- > 0;)
		if (sockaddr_ip_equal(&lists.addresses[i].address, &gone))
			lists.addresses[i] = lists.addresses[--world.address_count];
}

/* @to: a prefix; NULL: the default route. @gateway: NULL: none */
static struct paths_route *add_route(const char *device, int family, const char *to, const char *gateway, uint32_t metric)
{
	struct paths_route *route = &lists.routes[world.route_count++];

	*route = (struct paths_route){ .family = family,
				       .table = RT_TABLE_MAIN,
				       .protocol = RTPROT_BOOT,
				       .index = link_called(device)->index,
				       .metric = metric };
	ck_assert_int_eq(prefix_parse(&route->to, to ? to : family == AF_INET ? "0.0.0.0/0" : "::/0",
				      strlen(to ? to : family == AF_INET ? "0.0.0.0/0" : "::/0")),
			 0);
	if (gateway)
		route->gateway = address_of(gateway);
	return route;
}

static void remove_routes_of(const char *device)
{
	for (size_t i = world.route_count; i-- > 0;)
		if (lists.routes[i].index == link_called(device)->index)
			lists.routes[i] = lists.routes[--world.route_count];
}

/* A device with an address of 24 bits, and a router that ends in .1. */
static void add_network(const char *device, const char *kind, const char *number, uint32_t metric)
{
	char text[64];

	add_link(device, kind);
	snprintf(text, sizeof(text), "%s.2", number);
	add_address(device, text);
	snprintf(text, sizeof(text), "%s.0/24", number);
	add_route(device, AF_INET, text, NULL, 0);
	snprintf(text, sizeof(text), "%s.1", number);
	add_route(device, AF_INET, NULL, text, metric);
}

static void two_networks(void)
{
	add_network("wlan0", "", "192.0.2", 600);
	add_network("wwan0", "wwan", "198.51.100", 700);
}

static struct mptcp_endpoint *add_endpoint(const char *address, uint8_t id, const char *device)
{
	struct mptcp_endpoint *endpoint = &world.endpoints.endpoint[world.endpoints.count++];

	*endpoint = (struct mptcp_endpoint){ .address = address_of(address),
					     .id = id,
					     .bound = device ? link_called(device)->index : 0,
					     .flags = MPTCP_PM_ADDR_FLAG_SUBFLOW };
	return endpoint;
}

/* --- what is done ----------------------------------------------------------------------- */

static void look(void)
{
	paths_wanted_find(&wanted, &world, &choice, &others, &memory);
	paths_difference_find(&operations, &wanted, &world, &choice, &memory);
}

static enum paths_verdict verdict_of(const char *device, const char *address)
{
	union sockaddr_ip like = address_of(address);

	for (size_t i = 0; i < wanted.count; i++)
		if (strcmp(wanted.networks[i].link.name, device) == 0 && sockaddr_ip_equal(&wanted.networks[i].address, &like))
			return wanted.networks[i].verdict;
	ck_abort_msg("%s %s is not among the networks", device, address);
}

/* Does an operation as the kernel would. */
static void apply(const struct paths_operation *operation)
{
	size_t i;

	switch (operation->kind) {
	case PATHS_LIMIT_SET:
		memory.limit_before = memory.limit_set ? memory.limit_before : world.endpoints.subflow_limit;
		memory.limit_set = world.endpoints.subflow_limit = operation->limit;
		break;
	case PATHS_ROUTE_ADD:
		lists.routes[world.route_count++] = operation->route;
		break;
	case PATHS_ROUTE_DELETE:
		for (i = 0; memcmp(&lists.routes[i], &operation->route, sizeof(operation->route)) != 0; i++)
			ck_assert_uint_lt(i, world.route_count);
		lists.routes[i] = lists.routes[--world.route_count];
		break;
	case PATHS_RULE_ADD:
		lists.rules[world.rule_count++] = operation->rule;
		break;
	case PATHS_RULE_DELETE:
		for (i = 0; memcmp(&lists.rules[i], &operation->rule, sizeof(operation->rule)) != 0; i++)
			ck_assert_uint_lt(i, world.rule_count);
		lists.rules[i] = lists.rules[--world.rule_count];
		break;
	case PATHS_ENDPOINT_ADD:
		ck_assert_ptr_null(paths_world_endpoint(&world, &operation->endpoint.address));
		world.endpoints.endpoint[world.endpoints.count++] = operation->endpoint;
		paths_memory_add(&memory, &(struct paths_memory_endpoint){ operation->endpoint.id, operation->endpoint.bound,
									 operation->endpoint.address, 1 });
		break;
	case PATHS_ENDPOINT_CHANGE:
		for (i = 0; i < world.endpoints.count; i++)
			if (world.endpoints.endpoint[i].id == operation->endpoint.id)
				world.endpoints.endpoint[i].flags = operation->endpoint.flags;
		break;
	case PATHS_ENDPOINT_DELETE:
		for (i = 0; world.endpoints.endpoint[i].id != operation->endpoint.id; i++)
			ck_assert_uint_lt(i, world.endpoints.count);
		world.endpoints.endpoint[i] = world.endpoints.endpoint[--world.endpoints.count];
		paths_memory_remove(&memory, operation->endpoint.id);
		break;
	default:
		ck_abort();
	}
}

/* Does what is to be done; afterwards there is nothing left to do. */
static void settle(void)
{
	look();
	for (size_t i = 0; i < operations.count; i++)
		apply(&operations.list[i]);
	look();
	ck_assert_uint_eq(operations.count, 0);
}

/* Checks that the operations are these commands and no others, in this order. The list ends with NULL. */
#define expect(...) expect_commands((const char *const[]){ __VA_ARGS__, NULL })
#define expect_nothing() expect_commands((const char *const[]){ NULL })

static void expect_commands(const char *const commands[])
{
	char command[PATHS_COMMAND_MAX];
	size_t i;

	for (i = 0; i < operations.count; i++) {
		paths_operation_format(&operations.list[i], command);
		ck_assert_msg(commands[i] != NULL, "one more operation: %s", command);
		ck_assert_str_eq(command, commands[i]);
	}
	ck_assert_msg(commands[i] == NULL, "missing: %s", commands[i]);
}

/* --- tests ------------------------------------------------------------------------------ */

START_TEST(test_two_networks)
{
	two_networks();
	look();
	expect("ip route replace 192.0.2.0/24 dev wlan0 table 8805 proto 88",
	       "ip route replace default via 192.0.2.1 dev wlan0 table 8805 proto 88",
	       "ip route replace 198.51.100.0/24 dev wwan0 table 8806 proto 88",
	       "ip route replace default via 198.51.100.1 dev wwan0 table 8806 proto 88",
	       "ip rule add from 192.0.2.2 table 8805 priority 8803 protocol 88",
	       "ip rule add from 198.51.100.2 table 8806 priority 8803 protocol 88",
	       "ip mptcp endpoint add 192.0.2.2 id 100 dev wlan0 subflow",
	       "ip mptcp endpoint add 198.51.100.2 id 101 dev wwan0 subflow");
	settle();
}
END_TEST

START_TEST(test_all_is_taken_away)
{
	two_networks();
	world.endpoints.subflow_limit = 0;
	add_endpoint("203.0.113.9", 1, NULL);
	look();
	ck_assert_int_eq(operations.list[0].kind, PATHS_LIMIT_SET);
	settle();
	ck_assert_uint_eq(world.endpoints.subflow_limit, 2);
	paths_difference_find(&operations, NULL, &world, &choice, &memory);
	expect("ip mptcp limits set subflows 0", "ip mptcp endpoint delete id 100", "ip mptcp endpoint delete id 101",
	       "ip rule del from 192.0.2.2 table 8805 priority 8803 protocol 88",
	       "ip rule del from 198.51.100.2 table 8806 priority 8803 protocol 88",
	       "ip route del 192.0.2.0/24 dev wlan0 table 8805 proto 88",
	       "ip route del default via 192.0.2.1 dev wlan0 table 8805 proto 88",
	       "ip route del 198.51.100.0/24 dev wwan0 table 8806 proto 88",
	       "ip route del default via 198.51.100.1 dev wwan0 table 8806 proto 88");
	/* a limit that somebody has set since is that somebody's */
	world.endpoints.subflow_limit = 5;
	paths_difference_find(&operations, NULL, &world, &choice, &memory);
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
	expect("ip rule add from 192.0.2.77 table 8805 priority 8803 protocol 88",
	       "ip mptcp endpoint add 192.0.2.77 id 102 dev wlan0 subflow", "ip mptcp endpoint delete id 100",
	       "ip rule del from 192.0.2.2 table 8805 priority 8803 protocol 88");
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
		ck_assert_int_eq(verdict_of("wlan0", "192.0.2.2"), PATHS_NO_CARRIER);
		link_called("wlan0")->carrier = true;
		look();
		expect("ip mptcp endpoint add 192.0.2.2 id 100 dev wlan0 subflow");
		settle();
	}
	/* the last network keeps its endpoint, and so does each if none has a carrier */
	link_called("wlan0")->carrier = false;
	settle();
	link_called("wwan0")->carrier = false;
	look();
	expect("ip mptcp endpoint add 192.0.2.2 id 100 dev wlan0 subflow");
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
	expect("ip mptcp endpoint delete id 100", "ip rule del from 192.0.2.2 table 8805 priority 8803 protocol 88");
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
	expect("ip rule del from 192.0.2.2 table 8805 priority 8803 protocol 88",
	       "ip rule del from 198.51.100.2 table 8806 priority 8803 protocol 88");
	settle();
	/* the address is gone as well, and nobody has chosen that */
	remove_address("192.0.2.2");
	look();
	expect_nothing();
	/* who chooses that a network isn't used doesn't wait for another one */
	choice.never = "wwan0";
	look();
	expect("ip mptcp endpoint delete id 101");
	choice.never = NULL;
	/* with the first that works the others go */
	link_called("wwan0")->up = link_called("wwan0")->carrier = true;
	add_route("wwan0", AF_INET, "198.51.100.0/24", NULL, 0);
	add_route("wwan0", AF_INET, NULL, "198.51.100.1", 700);
	look();
	ck_assert_str_eq(paths_operation_format(&operations.list[operations.count - 1], (char[PATHS_COMMAND_MAX]){ 0 }),
			 "ip mptcp endpoint delete id 100");
}
END_TEST

/* What a manager has left that was killed while it announced an address begins no subflow, and is made anew. */
START_TEST(test_announced)
{
	two_networks();
	settle();
	for (size_t i = 0; i < world.endpoints.count; i++)
		if (world.endpoints.endpoint[i].id == 100)
			world.endpoints.endpoint[i].flags = MPTCP_PM_ADDR_FLAG_SIGNAL;
	look();
	ck_assert_str_eq(paths_operation_format(&operations.list[0], (char[PATHS_COMMAND_MAX]){ 0 }), "ip mptcp endpoint delete id 100");
	ck_assert_uint_eq(operations.count, 2);
	settle();
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
	for (size_t i = 0; i < world.route_count; i++)
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
	ck_assert_int_eq(verdict_of("wlan0", "192.168.1.2"), PATHS_USED);
	ck_assert_int_eq(verdict_of("wwan0", "192.168.1.2"), PATHS_TWICE);
	settle();
	/* the other one is better off now: an address has one endpoint, so that the old one goes first */
	link_called("wlan0")->carrier = false;
	look();
	expect("ip route replace 192.168.1.0/24 dev wwan0 table 8806 proto 88",
	       "ip route replace default via 192.168.1.1 dev wwan0 table 8806 proto 88",
	       "ip rule add from 192.168.1.2 table 8806 priority 8803 protocol 88", "ip mptcp endpoint delete id 100",
	       "ip mptcp endpoint add 192.168.1.2 id 101 dev wwan0 subflow",
	       "ip rule del from 192.168.1.2 table 8805 priority 8803 protocol 88",
	       "ip route del 192.168.1.0/24 dev wlan0 table 8805 proto 88",
	       "ip route del default via 192.168.1.1 dev wlan0 table 8805 proto 88");
	settle();
}
END_TEST

START_TEST(test_ipv6_prefixes)
{
	struct paths_address *old;

	add_link("wlan0", "");
	add_address("wlan0", "fe80::1")->scope = RT_SCOPE_LINK;
	add_route("wlan0", AF_INET6, NULL, "fe80::9", 1024)->protocol = RTPROT_RA;
	add_route("wlan0", AF_INET6, "2001:db8:1::/64", NULL, 256);
	old = add_address("wlan0", "2001:db8:1::2");
	look();
	ck_assert_uint_eq(wanted.count, 1);
	expect("ip -6 route replace 2001:db8:1::/64 dev wlan0 table 8805 proto 88",
	       "ip -6 route replace default via fe80::9 dev wlan0 table 8805 proto 88",
	       "ip -6 rule add from 2001:db8:1::2 table 8805 priority 8803 protocol 88",
	       "ip mptcp endpoint add 2001:db8:1::2 id 100 dev wlan0 subflow");
	settle();
	/* another prefix is announced, and the old address is deprecated: it stays until the new one is ready */
	old->flags = IFA_F_DEPRECATED;
	add_address("wlan0", "2001:db8:2::2")->flags = IFA_F_TENTATIVE;
	add_route("wlan0", AF_INET6, "2001:db8:2::/64", NULL, 256);
	look();
	ck_assert_int_eq(verdict_of("wlan0", "2001:db8:2::2"), PATHS_NOT_READY);
	expect("ip -6 route replace 2001:db8:2::/64 dev wlan0 table 8805 proto 88");
	settle();
	lists.addresses[world.address_count - 1].flags = 0;
	look();
	expect("ip -6 rule add from 2001:db8:2::2 table 8805 priority 8803 protocol 88",
	       "ip mptcp endpoint add 2001:db8:2::2 id 101 dev wlan0 subflow", "ip mptcp endpoint delete id 100",
	       "ip -6 rule del from 2001:db8:1::2 table 8805 priority 8803 protocol 88");
}
END_TEST

START_TEST(test_which_of_several_addresses)
{
	add_link("wlan0", "");
	add_route("wlan0", AF_INET6, NULL, "fe80::9", 1024);
	add_address("wlan0", "2001:db8::1");
	settle();
	ck_assert_int_eq(verdict_of("wlan0", "2001:db8::1"), PATHS_USED);
	/* a second one that is as good doesn't take its place; one that hides the host does, and only one */
	add_address("wlan0", "2001:db8::2");
	look();
	expect_nothing();
	ck_assert_int_eq(verdict_of("wlan0", "2001:db8::2"), PATHS_SECOND);
	add_address("wlan0", "2001:db8::3")->flags = IFA_F_TEMPORARY;
	settle();
	ck_assert_int_eq(verdict_of("wlan0", "2001:db8::3"), PATHS_USED);
	ck_assert_int_eq(verdict_of("wlan0", "2001:db8::1"), PATHS_SECOND);
	add_address("wlan0", "2001:db8::4")->flags = IFA_F_TEMPORARY;
	look();
	expect_nothing();
	ck_assert_uint_eq(world.endpoints.count, 1);
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
	ck_assert_int_eq(verdict_of("docker0", "172.17.0.1"), PATHS_NO_ROUTE);
	ck_assert_int_eq(verdict_of("eth0", "10.9.9.2"), PATHS_KIND);
	ck_assert_int_eq(verdict_of("gre1", "10.9.8.2"), PATHS_KIND);
	ck_assert_int_eq(verdict_of("port", "10.9.7.2"), PATHS_PART);
	ck_assert_int_eq(verdict_of("usb0", "10.1.1.1"), PATHS_NOT_READY);
	/* neither the loopback nor link-local addresses are even named */
	ck_assert_uint_eq(wanted.count, 6);
	ck_assert_uint_eq(operations.count, 4);
	/* a bridge that is the way to everywhere is this host's network */
	add_route("docker0", AF_INET, NULL, "172.17.0.254", 5);
	look();
	ck_assert_int_eq(verdict_of("docker0", "172.17.0.1"), PATHS_USED);
}
END_TEST

START_TEST(test_choice)
{
	two_networks();
	add_network("eth0", "veth", "10.9.9", 50);
	choice.device = "eth*,wwan0";
	choice.never = "wwan?";
	look();
	ck_assert_int_eq(verdict_of("wlan0", "192.0.2.2"), PATHS_NOT_NAMED);
	ck_assert_int_eq(verdict_of("wwan0", "198.51.100.2"), PATHS_NEVER);
	ck_assert_int_eq(verdict_of("eth0", "10.9.9.2"), PATHS_USED);
	choice.device = choice.never = NULL;
	choice.backup = "wwan0";
	settle();
	ck_assert_uint_eq(paths_world_endpoint(&world, &lists.addresses[1].address)->flags,
			  MPTCP_PM_ADDR_FLAG_SUBFLOW | MPTCP_PM_ADDR_FLAG_BACKUP);
	choice.backup = NULL;
	look();
	expect("ip mptcp endpoint change id 101 nobackup");
	settle();
	choice.backup = "wlan0";
	look();
	expect("ip mptcp endpoint change id 100 backup");
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
	ck_assert_int_eq(verdict_of("wlan0", "192.0.2.2"), PATHS_VPN);
	ck_assert_uint_eq(operations.count, 8);
	ck_assert_int_eq(operations.list[0].kind, PATHS_ENDPOINT_DELETE);
	choice.beside_vpn = true;
	look();
	expect_nothing();
	ck_assert_int_eq(verdict_of("wg0", "10.8.0.2"), PATHS_KIND);
	/* by halves, as OpenVPN has it */
	choice.beside_vpn = false;
	world.route_count--;
	add_route("wg0", AF_INET, "128.0.0.0/1", NULL, 0);
	look();
	ck_assert_int_eq(verdict_of("wlan0", "192.0.2.2"), PATHS_VPN);
	link_called("wg0")->up = false;
	look();
	expect_nothing();
}
END_TEST

START_TEST(test_what_is_somebody_elses)
{
	two_networks();
	add_endpoint("192.0.2.2", 1, "wlan0");
	lists.rules[world.rule_count++] = (struct paths_rule){ address_of("198.51.100.2"), 102, 32765, RTPROT_BOOT };
	look();
	/* of each only what is missing */
	expect("ip route replace 192.0.2.0/24 dev wlan0 table 8805 proto 88",
	       "ip route replace default via 192.0.2.1 dev wlan0 table 8805 proto 88",
	       "ip rule add from 192.0.2.2 table 8805 priority 8803 protocol 88",
	       "ip mptcp endpoint add 198.51.100.2 id 100 dev wwan0 subflow");
	settle();
	/* a rule with our number in somebody's table isn't ours, and neither is an endpoint with the ID of one that we had */
	lists.rules[world.rule_count++] = (struct paths_rule){ address_of("10.1.1.1"), 77, 5, PATHS_PROTOCOL };
	world.endpoints.endpoint[1].address = address_of("198.51.100.99");
	paths_difference_find(&operations, NULL, &world, &choice, &memory);
	expect("ip rule del from 192.0.2.2 table 8805 priority 8803 protocol 88",
	       "ip route del 192.0.2.0/24 dev wlan0 table 8805 proto 88",
	       "ip route del default via 192.0.2.1 dev wlan0 table 8805 proto 88");
}
END_TEST

START_TEST(test_network_manager_and_mptcpd)
{
	two_networks();
	settle();
	others.nm_count = 2;
	others.nm[0] = (struct paths_nm_device){ .name = "wlan0", .endpoints = true };
	others.nm[1] = (struct paths_nm_device){ .name = "wwan0", .metered = PATHS_METERED_YES };
	look();
	/* of wlan0's the endpoint is left to it; wwan0 is metered, says its user */
	expect("ip mptcp endpoint change id 101 backup", "ip mptcp endpoint delete id 100");
	settle();
	others.nm[1] = (struct paths_nm_device){ .name = "wwan0", .disabled = true };
	look();
	ck_assert_int_eq(verdict_of("wwan0", "198.51.100.2"), PATHS_DISABLED);
	ck_assert_int_eq(operations.list[0].kind, PATHS_ENDPOINT_DELETE);
	others.nm_count = 0;
	settle();
	others.mptcpd = true;
	look();
	expect("ip mptcp endpoint delete id 101", "ip mptcp endpoint delete id 100");
}
END_TEST

START_TEST(test_nmcli)
{
	const char *uuids[PATHS_OTHERS_DEVICES_MAX];
	char text[] = "GENERAL.DEVICE:wlan0\nGENERAL.CON-UUID:6b1-a\nGENERAL.METERED:no (guessed)\n\n"
		      "GENERAL.DEVICE:lo\nGENERAL.CON-UUID:\nGENERAL.METERED:unknown\n\n"
		      "GENERAL.DEVICE:ttyUSB0\nGENERAL.CON-UUID:6b1-b\nGENERAL.METERED:yes\n";

	paths_others_parse_devices(&others, text, uuids);
	ck_assert_uint_eq(others.nm_count, 2);
	ck_assert_str_eq(others.nm[0].name, "wlan0");
	ck_assert_str_eq(uuids[0], "6b1-a");
	ck_assert_int_eq(others.nm[0].metered, PATHS_METERED_GUESSED_NO);
	ck_assert_str_eq(uuids[1], "6b1-b");
	ck_assert_int_eq(others.nm[1].metered, PATHS_METERED_YES);
	paths_others_parse_flags(&others.nm[0], "0x0 (default)\n");
	ck_assert(others.nm[0].endpoints && !others.nm[0].disabled);
	paths_others_parse_flags(&others.nm[0], "0x2 (disabled)\n");
	ck_assert(!others.nm[0].endpoints && others.nm[0].disabled);
	paths_others_parse_flags(&others.nm[0], "\n");
	ck_assert(!others.nm[0].endpoints && !others.nm[0].disabled);
}
END_TEST

START_TEST(test_tables)
{
	two_networks();
	/* somebody has taken the first one's place, and the range has two */
	choice.table_first = 8805;
	choice.table_last = 8806;
	lists.tables[world.table_count++] = 8805;
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
	ck_assert_uint_eq(operations.count, 12);
	settle();
	/* a device keeps its table */
	lists.routes[world.route_count - 1].table = lists.routes[world.route_count - 2].table;
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
	ck_assert_uint_eq(world.endpoints.count, PATHS_ENDPOINTS_MAX);
	ck_assert_uint_eq(world.endpoints.subflow_limit, 7);
	/* those with the least metrics */
	ck_assert_int_eq(verdict_of("eth11", "10.0.11.2"), PATHS_USED);
	ck_assert_int_eq(verdict_of("eth4", "10.0.4.2"), PATHS_FULL);
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
	world.endpoints.subflow_limit = 1;
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
	for (size_t i = 0; i < world.endpoints.count; i++)
		ck_assert_ptr_nonnull(paths_memory_find(&read, &world.endpoints.endpoint[i]));
	strcpy(text, "endpoint 0 10.0.0.1 1 1\nendpoint 3 nowhere 1 1\nendpoint\nfoo\nendpoint 9 10.0.0.1:5 1 1\ntables 1\n");
	paths_memory_parse(&read, text);
	ck_assert_uint_eq(read.count, 0);
	ck_assert_uint_eq(read.table_first, 0);
}
END_TEST

START_TEST(test_choice_is_read)
{
	static const struct {
		const char *device, *never, *tables, *vpn, *problem;
	} wrong[] = {
		{ "a-name-that-is-too-long", NULL, NULL, NULL, "device: \"a-name-that-is-too-long\" is longer than a device's name, 15 "
							       "characters; \"ip link\" shows the names" },
		{ NULL, "eth/0", NULL, NULL, "never-device: \"eth/0\" is no device's name; \"ip link\" shows the names" },
		{ NULL, NULL, "9", NULL, "tables: \"9\" is no range of routing tables; write it as in 8803-8866" },
		{ NULL, NULL, "9-3", NULL, "tables: \"9-3\" is no range of routing tables; write it as in 8803-8866" },
		{ NULL, NULL, "1-5x", NULL, "tables: \"1-5x\" is no range of routing tables; write it as in 8803-8866" },
		{ NULL, NULL, "200-300", NULL, "tables: \"200-300\" has tables that are the kernel's, 252 to 255; choose a range without them" },
		{ NULL, NULL, NULL, "yes", "beside-vpn: \"yes\" is neither 0 nor 1" },
	};
	char problem[PATHS_PROBLEM_MAX];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert(!paths_choice_read(&choice, wrong[i].device, wrong[i].never, NULL, wrong[i].tables, wrong[i].vpn, problem));
		ck_assert_str_eq(problem, wrong[i].problem);
	}
	ck_assert(paths_choice_read(&choice, "wl*, eth[0-9],", NULL, NULL, "1-4294967295", "1", problem) == false);
	ck_assert(paths_choice_read(&choice, "wl*, eth[0-9],", "", NULL, "4294967290-4294967295", "1", problem));
	ck_assert(paths_choice_names(choice.device, "wlp2s0") && paths_choice_names(choice.device, "eth3"));
	ck_assert(!paths_choice_names(choice.device, "eth33") && !paths_choice_names(choice.never, "") && choice.beside_vpn);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("paths");
	TCase *tcase = tcase_create("paths");

	tcase_add_checked_fixture(tcase, begin, NULL);
	tcase_add_test(tcase, test_two_networks);
	tcase_add_test(tcase, test_all_is_taken_away);
	tcase_add_test(tcase, test_address_is_replaced);
	tcase_add_test(tcase, test_flapping);
	tcase_add_test(tcase, test_link_goes_down);
	tcase_add_test(tcase, test_all_links_go_down);
	tcase_add_test(tcase, test_announced);
	tcase_add_test(tcase, test_renewal);
	tcase_add_test(tcase, test_router_is_replaced);
	tcase_add_test(tcase, test_same_address_twice);
	tcase_add_test(tcase, test_ipv6_prefixes);
	tcase_add_test(tcase, test_which_of_several_addresses);
	tcase_add_test(tcase, test_what_is_no_network);
	tcase_add_test(tcase, test_choice);
	tcase_add_test(tcase, test_vpn);
	tcase_add_test(tcase, test_what_is_somebody_elses);
	tcase_add_test(tcase, test_network_manager_and_mptcpd);
	tcase_add_test(tcase, test_nmcli);
	tcase_add_test(tcase, test_tables);
	tcase_add_test(tcase, test_no_more_than_eight);
	tcase_add_test(tcase, test_memory);
	tcase_add_test(tcase, test_choice_is_read);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
