/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway_policies.c - policy rules and the route that bring packets with the gateway's mark to this host
 *
 * The rules name the interface and both bits of the mark: "lo" for what this host sends to itself, with both bits; a LAN's interface for
 * packets of converted connections, with the lower one. So they match no reverse lookup of a source address, which the kernel makes with
 * the packet's mark (src_valid_mark, which WireGuard's tools set; firewalld's rpfilter), nor the lookup of an answer (tcp_fwmark_accept).
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

/* The protocol number of our policy rules and routes, by which we find what a killed process has left. */
#define PROTOCOL_OURS 89
#define RULE_PRIORITY 90 /* unless another program has a lower one; behind the table "local", which has 0 */
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

/* ----- reading policy rules ----- */

/* A policy rule; the name is part of the message. */
struct policy {
	const char *device;
	uint32_t mark, mask, table, priority;
	bool ours;
};

static struct policy read_policy(const struct nlmsghdr *message)
{
	const struct fib_rule_hdr *header = mnl_nlmsg_get_payload(message);
	struct policy policy = { .device = "", .table = header->table };
	const struct nlattr *attr;

	mnl_attr_for_each(attr, message, sizeof(*header)) {
		switch (mnl_attr_get_type(attr)) {
		case FRA_PROTOCOL: policy.ours = mnl_attr_get_payload_len(attr) == 1 && mnl_attr_get_u8(attr) == PROTOCOL_OURS; break;
		case FRA_IIFNAME: policy.device = mnl_attr_get_str(attr); break;
		case FRA_FWMARK: policy.mark = netlink_read_u32(attr); break;
		case FRA_FWMASK: policy.mask = netlink_read_u32(attr); break;
		case FRA_TABLE: policy.table = netlink_read_u32(attr); break;
		case FRA_PRIORITY: policy.priority = netlink_read_u32(attr); break;
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
		*ours = policy.priority - 1;
	return MNL_CB_OK;
}

/* Returns the priority of our policy rules, which is before all others'. */
static uint32_t find_priority(struct netlink *netlink, int family)
{
	uint32_t priority = RULE_PRIORITY;

	netlink_dump(netlink, RTM_GETRULE, family, note_priority, &priority);
	return priority;
}

/* ----- changing them ----- */

/* Routes packets from this interface, with these bits of @settings' mark, to this host. */
static int put_policy(struct netlink *netlink, uint8_t family, uint32_t priority, const char *device, uint32_t mark,
		      const struct gateway_settings *settings)
{
	struct nlmsghdr *request = begin_request(netlink, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL);
	struct fib_rule_hdr *rule = mnl_nlmsg_put_extra_header(request, sizeof(*rule));
	int error;

	rule->family = family;
	rule->action = FR_ACT_TO_TBL;
	mnl_attr_put_u32(request, FRA_TABLE, settings->table);
	mnl_attr_put_u32(request, FRA_PRIORITY, priority);
	mnl_attr_put_strz(request, FRA_IIFNAME, device);
	mnl_attr_put_u32(request, FRA_FWMARK, mark);
	mnl_attr_put_u32(request, FRA_FWMASK, settings->mark);
	mnl_attr_put_u8(request, FRA_PROTOCOL, PROTOCOL_OURS);
	error = netlink_ask(netlink, NULL, NULL);
	return error == -EEXIST ? 0 : error;
}

/* Adds the route and the policy rules of a family, unless they are there. */
static int put_policies(struct netlink *netlink, uint8_t family, const struct gateway_settings *settings)
{
	const uint32_t priority = find_priority(netlink, family);
	int error = put_route(netlink, family, settings->table, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);

	if (!error)
		error = put_policy(netlink, family, priority, "lo", settings->mark, settings);
	for (size_t i = 0; i < settings->lan_count && !error; i++)
		error = put_policy(netlink, family, priority, settings->lan[i], gateway_divert_mark(settings), settings);
	return error;
}

/* Policy rules of ours that aren't wanted. */
struct leftovers {
	const struct gateway_settings *wanted; /* the rules of these settings are; NULL: none are */
	uint32_t priority;                     /* of those in the family that we read */
	size_t count;
	struct {
		uint32_t table;
		uint32_t len; /* bytes of the rule, as the kernel lists it */
		_Alignas(struct nlmsghdr) char listed[LISTED_MAX];
	} rules[FOUND_MAX];
};

static bool is_wanted(const struct policy *policy, const struct gateway_settings *wanted, uint32_t priority)
{
	if (!wanted || policy->table != wanted->table || policy->mask != wanted->mark || policy->priority != priority)
		return false;
	if (strcmp(policy->device, "lo") == 0)
		return policy->mark == policy->mask;
	for (size_t i = 0; i < wanted->lan_count; i++)
		if (strcmp(policy->device, wanted->lan[i]) == 0)
			return policy->mark == gateway_divert_mark(wanted);
	return false;
}

static int note_leftover(const struct nlmsghdr *message, void *arg)
{
	const struct policy policy = read_policy(message);
	const size_t len = mnl_nlmsg_get_payload_len(message);
	struct leftovers *found = arg;

	if (!policy.ours || is_wanted(&policy, found->wanted, found->priority) || found->count == FOUND_MAX || len > LISTED_MAX)
		return MNL_CB_OK;
	memcpy(found->rules[found->count].listed, mnl_nlmsg_get_payload(message), len);
	found->rules[found->count].len = (uint32_t)len;
	found->rules[found->count++].table = policy.table;
	return MNL_CB_OK;
}

/* Removes our policy rules and routes but those of @wanted, whoever has left them. Returns false if there may be more. */
static bool remove_policies(struct netlink *netlink, const struct gateway_settings *wanted)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct leftovers *found = calloc(1, sizeof(*found));
	bool full;

	if (!found)
		return true;
	found->wanted = wanted;
	for (size_t i = 0; i < 2; i++) {
		found->priority = find_priority(netlink, families[i]);
		netlink_dump(netlink, RTM_GETRULE, families[i], note_leftover, found);
	}
	for (size_t i = 0; i < found->count; i++) {
		const uint32_t len = found->rules[i].len;
		const struct fib_rule_hdr *rule = (const struct fib_rule_hdr *)found->rules[i].listed;

		memcpy(mnl_nlmsg_put_extra_header(begin_request(netlink, RTM_DELRULE, 0), len), rule, len);
		netlink_ask(netlink, NULL, NULL);
		if (!wanted || found->rules[i].table != wanted->table)
			put_route(netlink, rule->family, found->rules[i].table, RTM_DELROUTE, 0);
	}
	full = found->count == FOUND_MAX;
	free(found);
	return !full;
}

/* Returns a socket and its buffer, for close_netlink(); NULL after setting @error to -errno. */
static struct netlink *open_netlink(int *error)
{
	struct netlink *netlink = malloc(sizeof(*netlink));

	*error = netlink ? netlink_open(netlink, NETLINK_ROUTE) : -ENOMEM;
	if (!*error)
		return netlink;
	free(netlink);
	return NULL;
}

static void close_netlink(struct netlink *netlink)
{
	netlink_close(netlink);
	free(netlink);
}

int gateway_policies_add(const struct gateway_settings *settings)
{
	int error;
	struct netlink *netlink = open_netlink(&error);

	if (!netlink)
		return error;
	put_policies(netlink, AF_INET6, settings); /* it may be off */
	error = put_policies(netlink, AF_INET, settings);
	close_netlink(netlink);
	return error;
}

void gateway_policies_keep(const struct gateway_settings *settings)
{
	int error;
	struct netlink *netlink = open_netlink(&error);

	for (size_t rounds = 0; netlink && rounds < FOUND_MAX && !remove_policies(netlink, settings); rounds++)
		;
	if (netlink)
		close_netlink(netlink);
}

int gateway_policies_watch(void)
{
	const struct sockaddr_nl groups = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_RULE | 1u << (RTNLGRP_IPV6_RULE - 1) };
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
