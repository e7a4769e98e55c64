/* SPDX-License-Identifier: BSD-3-Clause */
/* test_anycast.c - what convertd says of a node that shares its address */
#include "run.h"

#include "convertd/config/settings.h"
#include "convertd/config/anycast.h"

#include <check.h>
#include <linux/mptcp.h>
#include <stdio.h>
#include <string.h>

#define SIGNAL MPTCP_PM_ADDR_FLAG_SIGNAL
#define SUBFLOW MPTCP_PM_ADDR_FLAG_SUBFLOW

static const struct place here = { .name = "shared-address" };

/* A node with one shared address, up to two endpoints, and one listener. "" for none. */
static const struct {
	const char *shared;
	int allow_join_initial;
	struct {
		const char *address;
		uint32_t flags;
	} endpoint[2];
	const char *listen;
	const char *told; /* NULL: nothing; else a part of the only warning */
} nodes[] = {
	{ "192.0.2.1", 0, { { "198.51.100.1", SIGNAL } }, "[::]:1234", NULL },
	{ "192.0.2.1", 0, { { "198.51.100.1", SIGNAL } }, "0.0.0.0:1234", NULL },
	{ "192.0.2.1", 0, { { "198.51.100.1", SIGNAL } }, "198.51.100.1:1234", NULL },
	/* the kernel listens on its port */
	{ "192.0.2.1", 0, { { "198.51.100.1:4321", SIGNAL } }, "192.0.2.1:1234", NULL },
	{ "2001:db8::1", 0, { { "2001:db8:1::1", SIGNAL } }, "[::]:1234", NULL },
	{ "192.0.2.1", 0, { { "2001:db8:1::1", SIGNAL }, { "198.51.100.1", SIGNAL } }, "[::]:1234",
	  NULL },
	/* this kernel has no such sysctl: then the flag can't be told */
	{ "192.0.2.1", -2, { { "198.51.100.1", SIGNAL } }, "[::]:1234", NULL },

	{ "192.0.2.1", 1, { { "198.51.100.1", SIGNAL } }, "[::]:1234",
	  "sysctl -w net.mptcp.allow_join_initial_addr_port=0" },
	{ "192.0.2.1", 0, { { NULL, 0 } }, "[::]:1234", "no IPv4 address" },
	{ "192.0.2.1", 0, { { "198.51.100.1", SUBFLOW } }, "[::]:1234", "no IPv4 address" },
	{ "192.0.2.1", 0, { { "192.0.2.1", SIGNAL } }, "[::]:1234", "no IPv4 address" },
	{ "192.0.2.1", 0, { { "2001:db8:1::1", SIGNAL } }, "[::]:1234", "no IPv4 address" },
	{ "2001:db8::1", 0, { { "198.51.100.1", SIGNAL } }, "[::]:1234", "no IPv6 address" },
	{ "192.0.2.1", 0, { { "198.51.100.1", SIGNAL } }, "192.0.2.1:1234",
	  "add --listen 198.51.100.1:1234" },
	{ "2001:db8::1", 0, { { "2001:db8:1::1", SIGNAL } }, "0.0.0.0:1234",
	  "add --listen [2001:db8:1::1]:1234" },
};

START_TEST(node_is_judged)
{
	struct anycast anycast = { 0 };
	struct problems problems = { 0 };
	struct listen_address listen = { 0 };
	struct endpoints endpoints = { .subflow_limit = 2 };
	struct anycast_facts facts = {
		.allow_join_initial = nodes[_i].allow_join_initial,
		.endpoints = &endpoints,
		.listen = &listen,
		.listen_count = 1,
	};

	ck_assert(anycast_add(&anycast, nodes[_i].shared, &here, &problems));
	ck_assert_int_eq(sockaddr_ip_parse(&listen.address, nodes[_i].listen, 0), 0);
	for (size_t i = 0; i < 2 && nodes[_i].endpoint[i].address; i++) {
		struct mptcp_endpoint *endpoint = &endpoints.endpoint[endpoints.count++];

		sockaddr_ip_parse(&endpoint->address, nodes[_i].endpoint[i].address, 0);
		endpoint->flags = nodes[_i].endpoint[i].flags;
	}
	anycast_check(&anycast, &facts, &problems);
	ck_assert_msg(problems.count == (nodes[_i].told ? 1 : 0), "%d: %s", _i, problems.first);
	if (nodes[_i].told)
		ck_assert_msg(strstr(problems.first, nodes[_i].told), "%d: %s", _i, problems.first);
}
END_TEST

/* All faults at once, each once for a family; and nothing where no address is shared. */
START_TEST(faults_add_up)
{
	static const char *const addresses[] = { "192.0.2.1", "192.0.2.2", "2001:db8::1" };
	struct anycast anycast = { 0 };
	struct problems problems = { 0 };
	struct listen_address listen = { 0 };
	struct endpoints endpoints = { .subflow_limit = 2 };
	struct anycast_facts facts = { .allow_join_initial = 1, .endpoints = &endpoints,
				      .listen = &listen, .listen_count = 1 };

	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 0);
	for (size_t i = 0; i < 3; i++)
		ck_assert(anycast_add(&anycast, addresses[i], &here, &problems));
	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 3);
	/* What the kernel doesn't tell isn't warned of. */
	facts.endpoints = NULL;
	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 4);
}
END_TEST

/* Without a shared address, the C flag alone has clients use one path. */
START_TEST(nothing_is_shared)
{
	struct anycast anycast = { 0 };
	struct problems problems = { 0 };
	struct endpoints endpoints = { .count = 1, .subflow_limit = 2 };
	struct anycast_facts facts = { .allow_join_initial = 1, .endpoints = &endpoints };

	sockaddr_ip_parse(&endpoints.endpoint[0].address, "198.51.100.1", 0);
	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 0);
	facts.allow_join_initial = 0;
	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 1);
	ck_assert_ptr_nonnull(strstr(problems.first, "no address is announced"));
	endpoints.endpoint[0].flags = SIGNAL;
	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 1);
	/* Nothing has to be shared for that to be wrong. */
	endpoints.endpoint[0].foreign = true;
	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 2);
	facts.allow_join_initial = 1;
	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 3);
}
END_TEST

static bool is_local(void *arg, const struct in6_addr *address)
{
	return IN6_ARE_ADDR_EQUAL((const struct in6_addr *)arg, address);
}

/* A shared address has to be the node's own, unless a NAT translates it. */
START_TEST(address_is_not_local)
{
	struct anycast anycast = { 0 };
	struct problems problems = { 0 };
	struct listen_address listen = { 0 };
	union sockaddr_ip own;
	struct in6_addr in6;
	struct own_told told = { 0 };
	struct anycast_facts facts = { .listen = &listen, .listen_count = 1,
				      .is_local = is_local, .is_local_arg = &in6 };

	sockaddr_ip_parse(&own, "192.0.2.1", 0);
	in6 = sockaddr_ip_in6(&own);
	ck_assert(anycast_add(&anycast, "192.0.2.1", &here, &problems));
	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 0);
	ck_assert(anycast_add(&anycast, "2001:db8::1", &here, &problems));
	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 1);
	ck_assert_ptr_nonnull(strstr(problems.first, "2001:db8::1 is no address of this node's"));
	ck_assert_ptr_nonnull(strstr(problems.first, "ip address add 2001:db8::1 dev lo"));
	facts.own = &told;
	ck_assert(own_add(&told, "2001:db8::/64", &here, &problems));
	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 1);
}
END_TEST

/* The kernel announces any address, and by default permits two more subflows. */
START_TEST(endpoints_of_another_node)
{
	struct anycast anycast = { 0 };
	struct problems problems = { 0 };
	struct listen_address listen = { 0 };
	struct endpoints endpoints = { .count = 2, .subflow_limit = 2 };
	struct mptcp_endpoint *other = &endpoints.endpoint[0], *own = &endpoints.endpoint[1];
	struct anycast_facts facts = { .endpoints = &endpoints, .listen = &listen, .listen_count = 1 };

	ck_assert(anycast_add(&anycast, "192.0.2.1", &here, &problems));
	sockaddr_ip_parse(&listen.address, "[::]:1234", 0);
	sockaddr_ip_parse(&other->address, "198.51.100.1", 0);
	sockaddr_ip_parse(&own->address, "198.51.100.2", 0);
	*other = (struct mptcp_endpoint){ .address = other->address, .id = 7, .foreign = true };
	own->flags = SIGNAL;
	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 0);

	other->flags = SIGNAL;
	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 1);
	ck_assert_ptr_nonnull(strstr(problems.first, "198.51.100.1 is announced"));
	ck_assert_ptr_nonnull(strstr(problems.first, "delete id 7"));

	/* It is none of the node's own. */
	endpoints.count = 1;
	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 3);

	endpoints.count = 0;
	own->flags = 0;
	endpoints.subflow_limit = 1;
	anycast_check(&anycast, &facts, &problems);
	ck_assert_uint_eq(problems.count, 5);
}
END_TEST

START_TEST(wrong_address_is_told)
{
	static const char *const wrong[] = { "", "192.0.2.1:1234", "192.0.2.0/24", "[2001:db8::1]:1",
					     "converter.example" };
	struct anycast anycast = { 0 };
	char text[32];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct problems problems = { 0 };

		ck_assert(!anycast_add(&anycast, wrong[i], &here, &problems));
		ck_assert_ptr_nonnull(strstr(problems.first, "write 192.0.2.1"));
	}
	for (unsigned i = 0; i <= ANYCAST_MAX; i++) {
		struct problems problems = { 0 };

		snprintf(text, sizeof(text), "192.0.2.%u", i);
		ck_assert(anycast_add(&anycast, text, &here, &problems) == (i < ANYCAST_MAX));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("anycast");
	TCase *tcase = tcase_create("anycast");

	tcase_add_loop_test(tcase, node_is_judged, 0, (int)(sizeof(nodes) / sizeof(nodes[0])));
	tcase_add_test(tcase, faults_add_up);
	tcase_add_test(tcase, nothing_is_shared);
	tcase_add_test(tcase, address_is_not_local);
	tcase_add_test(tcase, endpoints_of_another_node);
	tcase_add_test(tcase, wrong_address_is_told);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
