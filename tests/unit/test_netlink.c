/* SPDX-License-Identifier: BSD-3-Clause */
/* test_netlink.c - questions to the kernel whose answers change meanwhile; in a network namespace of the test's own */
#include "config.h"

#include "common/netlink.h"
#include "run.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <unistd.h>

/* So many addresses don't fit into what the kernel gives out at once, which is 32 KiB at most. */
#define ADDRESSES 2000

static struct netlink asked, changed;
static unsigned int heard, added;

static void add_address(void)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(changed.buf);
	struct ifaddrmsg *header = mnl_nlmsg_put_extra_header(request, sizeof(*header));
	const struct in_addr address = { .s_addr = htonl(0x0a000001 + added++) };

	request->nlmsg_type = RTM_NEWADDR;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK;
	header->ifa_family = AF_INET;
	header->ifa_prefixlen = 32;
	header->ifa_index = 1; /* the loopback device */
	mnl_attr_put(request, IFA_LOCAL, sizeof(address), &address);
	ck_assert_int_eq(netlink_ask(&changed, NULL, NULL), 0);
}

static int count(const struct nlmsghdr *message, void *arg)
{
	(void)message;
	(void)arg;
	heard++;
	return MNL_CB_OK;
}

static int count_and_add(const struct nlmsghdr *message, void *arg)
{
	if (heard == 0)
		add_address();
	return count(message, arg);
}

/* A dump during which the list has changed fails, and the next question is answered. */
START_TEST(dump_that_is_interrupted)
{
	if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) < 0) {
		test_skip("this user may make no network namespace");
		return;
	}
	ck_assert_int_eq(netlink_open(&asked, NETLINK_ROUTE), 0);
	ck_assert_int_eq(netlink_open(&changed, NETLINK_ROUTE), 0);
	for (int i = 0; i < ADDRESSES; i++)
		add_address();
	ck_assert_int_eq(netlink_dump(&asked, RTM_GETADDR, AF_INET, count_and_add, NULL), -EINTR);
	heard = 0;
	ck_assert_int_eq(netlink_dump(&asked, RTM_GETADDR, AF_INET, count, NULL), 0);
	ck_assert_uint_eq(heard, ADDRESSES + 1);
	netlink_close(&asked);
	netlink_close(&changed);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("netlink");
	TCase *tcase = tcase_create("netlink");

	tcase_add_test(tcase, dump_that_is_interrupted);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
