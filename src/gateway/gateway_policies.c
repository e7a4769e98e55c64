/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway_policies.c - policy rules and the route that bring packets with the gateway's mark to this host
 *
 * Two rules lead to the route: one for packets that this host sends to itself, from "lo" with both bits of the mark; and one for packets
 * of converted connections, with the lower bit, from any interface, since a rule can't name a pattern of interfaces. Two more lead lookups
 * from "lo" past this one: reverse lookups of a source address, which the kernel makes with the packet's mark (src_valid_mark, which
 * WireGuard's tools set; firewalld's rpfilter), and the lookup of an answer (tcp_fwmark_accept).
 *
 * They have to precede all others, as one that names the LAN would take the connections' packets elsewhere. "ip rule add" without a number
 * puts a rule before those that are there: then ours move.
 *
 * A killed process leaves its rules and its route. The next one knows them by their protocol number.
 */
#include "config.h"

#include "gateway/gateway_rules.h"

#include "common/netlink.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The protocol number of our policy rules and routes, by which we find those of a killed process. */
#define PROTOCOL_OURS 89
#define PRIORITY_LAST 90 /* of our last policy rule, unless another program has a lower one; behind the table "local", which has 0 */
#define FOUND_MAX 32     /* policy rules that are removed at a time */
#define LISTED_MAX 512   /* bytes of a policy rule as the kernel lists it */

static struct nlmsghdr *begin_request(struct netlink *netlink, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(netlink->buf);

	request->nlmsg_type = type;
	request->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	return request;
}

static int put_route(struct netlink *netlink, uint8_t family, unsigned table, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *request = begin_request(netlink, type, flags);
	struct rtmsg *route = mnl_nlmsg_put_extra_header(request, sizeof(*route));

	route->rtm_family = family;
	route->rtm_protocol = PROTOCOL_OURS;
	route->rtm_scope = RT_SCOPE_HOST;
	route->rtm_type = RTN_LOCAL;
	mnl_attr_put_u32(request, RTA_OIF, if_nametoindex("lo"));
	mnl_attr_put_u32(request, RTA_TABLE, table);
	return netlink_ask(netlink, NULL, NULL);
}

/* ----- policy rules ----- */

struct policy {
	const char *device;     /* "": all */
	uint32_t mark, mask;    /* 0, 0: all */
	uint32_t table, target; /* where the action leads to; the other one is 0 */
	uint32_t priority;
	uint8_t action;         /* FR_ACT_… */
	bool ours;
};

#define POLICIES 4

/* Writes the policy rules that @settings need, in their order. @last: the priority of the last one */
static void plan_policies(const struct gateway_settings *settings, uint32_t last, struct policy out[static POLICIES])
{
	const uint32_t both = settings->mark, mark = gateway_divert_mark(settings);
	const struct policy policies[POLICIES] = {
		{ .action = FR_ACT_TO_TBL, .device = "lo", .mark = both, .mask = both, .table = settings->table },
		{ .action = FR_ACT_GOTO, .device = "lo", .mark = mark, .mask = both, .target = last },
		{ .action = FR_ACT_TO_TBL, .device = "", .mark = mark, .mask = both, .table = settings->table },
		{ .action = FR_ACT_NOP, .device = "" },
	};

	for (uint32_t i = 0, after = POLICIES - 1; i < POLICIES; i++, after--) {
		out[i] = policies[i];
		out[i].priority = last > after ? last - after : 0; /* the kernel puts a rule behind those of the same priority */
	}
}

/* Reads a policy rule. Its device points into the message. */
static struct policy read_policy(const struct nlmsghdr *message)
{
	const struct fib_rule_hdr *header = mnl_nlmsg_get_payload(message);
	struct policy policy = { .device = "", .table = header->table, .action = header->action };
	const struct nlattr *attr;

	mnl_attr_for_each(attr, message, sizeof(*header)) {
		switch (mnl_attr_get_type(attr)) {
		case FRA_PROTOCOL: policy.ours = mnl_attr_get_payload_len(attr) == 1 && mnl_attr_get_u8(attr) == PROTOCOL_OURS; break;
		case FRA_IIFNAME: policy.device = mnl_attr_get_str(attr); break;
		case FRA_FWMARK: policy.mark = netlink_read_u32(attr); break;
		case FRA_FWMASK: policy.mask = netlink_read_u32(attr); break;
		case FRA_TABLE: policy.table = netlink_read_u32(attr); break;
		case FRA_PRIORITY: policy.priority = netlink_read_u32(attr); break;
		case FRA_GOTO: policy.target = netlink_read_u32(attr); break;
		default: break;
		}
	}
	return policy;
}

static int note_priority(const struct nlmsghdr *message, void *arg)
{
	const struct policy policy = read_policy(message);
	uint32_t *ours = arg;

	if (!policy.ours && policy.priority && policy.priority <= *ours)
		*ours = policy.priority > 1 ? policy.priority - 1 : 1;
	return MNL_CB_OK;
}

/* Returns the priority of our last policy rule, which is before all others'. */
static uint32_t find_priority(struct netlink *netlink, int family)
{
	uint32_t priority = PRIORITY_LAST;

	netlink_dump(netlink, RTM_GETRULE, family, note_priority, &priority);
	return priority;
}

/* ----- changing them ----- */

static int put_policy(struct netlink *netlink, uint8_t family, const struct policy *policy)
{
	struct nlmsghdr *request = begin_request(netlink, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL);
	struct fib_rule_hdr *rule = mnl_nlmsg_put_extra_header(request, sizeof(*rule));
	int error;

	rule->family = family;
	rule->action = policy->action;
	if (policy->device[0])
		mnl_attr_put_strz(request, FRA_IIFNAME, policy->device);
	mnl_attr_put_u32(request, FRA_FWMARK, policy->mark);
	mnl_attr_put_u32(request, FRA_FWMASK, policy->mask);
	mnl_attr_put_u32(request, FRA_TABLE, policy->table);
	if (policy->target)
		mnl_attr_put_u32(request, FRA_GOTO, policy->target);
	mnl_attr_put_u32(request, FRA_PRIORITY, policy->priority);
	mnl_attr_put_u8(request, FRA_PROTOCOL, PROTOCOL_OURS);
	error = netlink_ask(netlink, NULL, NULL);
	return error == -EEXIST ? 0 : error;
}

/* Adds the route and the policy rules of a family, unless they are there. */
static int put_policies(struct netlink *netlink, uint8_t family, const struct gateway_settings *settings)
{
	int error = put_route(netlink, family, settings->table, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
	struct policy policies[POLICIES];

	plan_policies(settings, find_priority(netlink, family), policies);
	for (size_t i = 0; i < POLICIES && !error; i++)
		error = put_policy(netlink, family, &policies[i]);
	return error;
}

/* Policy rules of ours that aren't wanted. */
struct leftovers {
	struct policy wanted[POLICIES]; /* in the family that we read; without devices: none is */
	size_t count;
	struct {
		uint32_t table;
		uint32_t len; /* bytes of the rule, as the kernel lists it */
		_Alignas(struct nlmsghdr) char listed[LISTED_MAX];
	} rules[FOUND_MAX];
};

static bool is_wanted(const struct policy *policy, const struct policy wanted[static POLICIES])
{
	for (size_t i = 0; i < POLICIES; i++)
		if (wanted[i].device && strcmp(policy->device, wanted[i].device) == 0 && policy->action == wanted[i].action &&
		    policy->mark == wanted[i].mark && policy->mask == wanted[i].mask && policy->table == wanted[i].table &&
		    policy->target == wanted[i].target && policy->priority == wanted[i].priority)
			return true;
	return false;
}

static int note_leftover(const struct nlmsghdr *message, void *arg)
{
	const struct policy policy = read_policy(message);
	const size_t len = mnl_nlmsg_get_payload_len(message);
	struct leftovers *found = arg;

	if (!policy.ours || is_wanted(&policy, found->wanted) || found->count == FOUND_MAX || len > LISTED_MAX)
		return MNL_CB_OK;
	memcpy(found->rules[found->count].listed, mnl_nlmsg_get_payload(message), len);
	found->rules[found->count].len = (uint32_t)len;
	found->rules[found->count++].table = policy.table;
	return MNL_CB_OK;
}

/* Removes all gateways' policy rules and routes but those of @wanted. Returns false if there may be more. */
static bool remove_policies(struct netlink *netlink, const struct gateway_settings *wanted)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct leftovers *found = calloc(1, sizeof(*found));
	bool full;

	if (!found)
		return true;
	for (size_t i = 0; i < 2; i++) {
		if (wanted)
			plan_policies(wanted, find_priority(netlink, families[i]), found->wanted);
		netlink_dump(netlink, RTM_GETRULE, families[i], note_leftover, found);
	}
	for (size_t i = 0; i < found->count; i++) {
		const uint32_t len = found->rules[i].len;
		const struct fib_rule_hdr *rule = (const struct fib_rule_hdr *)found->rules[i].listed;

		memcpy(mnl_nlmsg_put_extra_header(begin_request(netlink, RTM_DELRULE, 0), len), rule, len);
		netlink_ask(netlink, NULL, NULL);
		if (rule->action == FR_ACT_TO_TBL && (!wanted || found->rules[i].table != wanted->table))
			put_route(netlink, rule->family, found->rules[i].table, RTM_DELROUTE, 0);
	}
	full = found->count == FOUND_MAX;
	free(found);
	return !full;
}

/* The main thread's. */
static struct netlink netlink;

int gateway_policies_add(const struct gateway_settings *settings)
{
	int error = netlink_open(&netlink, NETLINK_ROUTE);

	if (error)
		return error;
	put_policies(&netlink, AF_INET6, settings); /* it may be off */
	error = put_policies(&netlink, AF_INET, settings);
	netlink_close(&netlink);
	return error;
}

void gateway_policies_keep(const struct gateway_settings *settings)
{
	if (netlink_open(&netlink, NETLINK_ROUTE) < 0)
		return;
	for (size_t rounds = 0; rounds < FOUND_MAX && !remove_policies(&netlink, settings); rounds++)
		;
	netlink_close(&netlink);
}

int gateway_policies_watch(void)
{
	/* The addresses of "lo" come back after it was down, or IPv6 was off: then our route was removed. */
	const struct sockaddr_nl groups = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_RULE | 1u << (RTNLGRP_IPV6_RULE - 1) |
										  RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	int error;

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&groups, sizeof(groups)) == 0)
		return fd;
	error = -errno;
	if (fd >= 0)
		close(fd);
	return error;
}

void gateway_policies_restore(int fd, const struct gateway_settings *settings)
{
	char unread[8192];

	/* ENOBUFS: some messages got lost. */
	while (recv(fd, unread, sizeof(unread), 0) > 0 || errno == ENOBUFS)
		;
	gateway_policies_add(settings);
	gateway_policies_keep(settings);
}
