/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * apply.c - does an operation, by rtnetlink(7) or the netlink interface of MPTCP's path manager; receives news; reads subflows
 *
 * A message tells us only that something has changed: we then read the whole host anew. So lost messages (ENOBUFS, netlink(7)) do no harm.
 * The kernel loses some at a resume, or when a hundred containers start.
 */
#include "config.h"

#include "paths/mend.h"

#include "common/kernel_socket.h"
#include "common/tcp.h"

#include <assert.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/inet_diag.h>
#include <linux/mptcp.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int paths_kernel_open(struct paths_kernel *kernel)
{
	int ret;

	memset(kernel, 0, sizeof(*kernel));
	ret = netlink_open(&kernel->route, NETLINK_ROUTE);
	if (ret == 0)
		ret = netlink_open(&kernel->generic, NETLINK_GENERIC);
	if (ret == 0)
		kernel->mptcp_family = endpoints_family(mnl_socket_get_fd(kernel->generic.socket));
	else
		paths_kernel_close(kernel);
	return ret;
}

void paths_kernel_close(struct paths_kernel *kernel)
{
	netlink_close(&kernel->route);
	netlink_close(&kernel->generic);
}

static int apply_route(struct paths_kernel *kernel, const struct host_route *route, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(kernel->route.buf);
	struct rtmsg *header = mnl_nlmsg_put_extra_header(request, sizeof(*header));
	bool has_gateway = route->gateway.sa.sa_family != AF_UNSPEC;
	const struct {
		__kernel_sa_family_t family;
		struct in6_addr address;
	} __attribute__((packed)) via = { AF_INET6, route->gateway.in6.sin6_addr }; /* struct rtvia */
	union sockaddr_ip to;

	request->nlmsg_type = type;
	request->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	header->rtm_family = (unsigned char)route->family;
	header->rtm_dst_len = (unsigned char)(route->to.length - (route->family == AF_INET ? HOST_V4_BITS : 0));
	header->rtm_protocol = HOST_PROTOCOL_OURS;
	header->rtm_scope = has_gateway || route->family == AF_INET6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
	header->rtm_type = RTN_UNICAST;
	header->rtm_flags = route->onlink ? RTNH_F_ONLINK : 0;
	if (header->rtm_dst_len) {
		sockaddr_ip_set(&to, route->family, &route->to.address, 0);
		netlink_put_address(request, RTA_DST, &to);
	}
	if (has_gateway && route->gateway.sa.sa_family == route->family)
		netlink_put_address(request, RTA_GATEWAY, &route->gateway);
	else if (has_gateway)
		mnl_attr_put(request, RTA_VIA, sizeof(via), &via);
	mnl_attr_put_u32(request, RTA_OIF, route->index);
	mnl_attr_put_u32(request, RTA_TABLE, route->table);
	return netlink_ask(&kernel->route, NULL, NULL);
}

static int apply_rule(struct paths_kernel *kernel, const struct host_rule *rule, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(kernel->route.buf);
	struct fib_rule_hdr *header = mnl_nlmsg_put_extra_header(request, sizeof(*header));

	request->nlmsg_type = type;
	request->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	if (rule->device[0]) {
		header->family = AF_INET;
		header->action = FR_ACT_NOP;
		mnl_attr_put_strz(request, FRA_OIFNAME, rule->device);
	} else {
		header->family = (uint8_t)rule->from.sa.sa_family;
		header->src_len = header->family == AF_INET ? 32 : 128;
		header->action = FR_ACT_TO_TBL;
		netlink_put_address(request, FRA_SRC, &rule->from);
		mnl_attr_put_u32(request, FRA_TABLE, rule->table);
		if (rule->shortest)
			mnl_attr_put_u32(request, FRA_SUPPRESS_PREFIXLEN, rule->shortest - 1u);
	}
	mnl_attr_put_u32(request, FRA_PRIORITY, rule->priority);
	mnl_attr_put_u8(request, FRA_PROTOCOL, HOST_PROTOCOL_OURS);
	return netlink_ask(&kernel->route, NULL, NULL);
}

static int apply_endpoint(struct paths_kernel *kernel, const struct mptcp_endpoint *endpoint, uint8_t command)
{
	struct nlmsghdr *request;
	struct nlattr *nest;
	bool is_v4 = endpoint->address.sa.sa_family == AF_INET;

	if (kernel->mptcp_family < 0)
		return kernel->mptcp_family;
	request = netlink_put_generic(&kernel->generic, (uint16_t)kernel->mptcp_family, command);
	nest = mnl_attr_nest_start(request, MPTCP_PM_ATTR_ADDR);
	mnl_attr_put_u16(request, MPTCP_PM_ADDR_ATTR_FAMILY, endpoint->address.sa.sa_family);
	mnl_attr_put_u8(request, MPTCP_PM_ADDR_ATTR_ID, endpoint->id);
	netlink_put_address(request, is_v4 ? MPTCP_PM_ADDR_ATTR_ADDR4 : MPTCP_PM_ADDR_ATTR_ADDR6, &endpoint->address);
	if (command != MPTCP_PM_CMD_DEL_ADDR)
		mnl_attr_put_u32(request, MPTCP_PM_ADDR_ATTR_FLAGS, endpoint->flags);
	if (command == MPTCP_PM_CMD_ADD_ADDR)
		mnl_attr_put_u32(request, MPTCP_PM_ADDR_ATTR_IF_IDX, endpoint->bound);
	mnl_attr_nest_end(request, nest);
	return netlink_ask(&kernel->generic, NULL, NULL);
}

static int apply_limit(struct paths_kernel *kernel, unsigned int limit)
{
	struct nlmsghdr *request;

	if (kernel->mptcp_family < 0)
		return kernel->mptcp_family;
	request = netlink_put_generic(&kernel->generic, (uint16_t)kernel->mptcp_family, MPTCP_PM_CMD_SET_LIMITS);
	mnl_attr_put_u32(request, MPTCP_PM_ATTR_SUBFLOWS, limit);
	return netlink_ask(&kernel->generic, NULL, NULL);
}

/* Does the error of a deletion mean that the route, the rule, its address, the device or the endpoint is already gone? */
static bool is_gone(int error)
{
	return error == -ESRCH || error == -ENOENT || error == -EADDRNOTAVAIL || error == -ENODEV || error == -EINVAL;
}

int paths_kernel_apply(struct paths_kernel *kernel, const struct paths_operation *operation)
{
	int ret;

	switch (operation->kind) {
	case PATHS_LIMIT_SET:
		return apply_limit(kernel, operation->limit);
	case PATHS_ROUTE_ADD:
		return apply_route(kernel, &operation->route, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
	case PATHS_RULE_ADD:
		return apply_rule(kernel, &operation->rule, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL);
	case PATHS_ENDPOINT_ADD:
		return apply_endpoint(kernel, &operation->endpoint, MPTCP_PM_CMD_ADD_ADDR);
	case PATHS_ENDPOINT_CHANGE:
		return apply_endpoint(kernel, &operation->endpoint, MPTCP_PM_CMD_SET_FLAGS);
	case PATHS_ENDPOINT_DELETE:
		ret = apply_endpoint(kernel, &operation->endpoint, MPTCP_PM_CMD_DEL_ADDR);
		break;
	case PATHS_RULE_DELETE:
		ret = apply_rule(kernel, &operation->rule, RTM_DELRULE, 0);
		break;
	case PATHS_ROUTE_DELETE:
		ret = apply_route(kernel, &operation->route, RTM_DELROUTE, 0);
		break;
	default:
		return -EINVAL;
	}
	return is_gone(ret) ? 0 : ret;
}

/* --- changes --- */

#define GROUP(number) (1u << ((number) - 1))

int paths_kernel_watch(void)
{
	/* bind() gives it an address: a socket without one would count as the sender of the kernel's messages, and get none */
	const struct sockaddr_nl address = {
		.nl_family = AF_NETLINK,
		.nl_groups = GROUP(RTNLGRP_LINK) | GROUP(RTNLGRP_IPV4_IFADDR) | GROUP(RTNLGRP_IPV6_IFADDR) | GROUP(RTNLGRP_IPV4_ROUTE) |
			     GROUP(RTNLGRP_IPV6_ROUTE) | GROUP(RTNLGRP_IPV4_RULE) | GROUP(RTNLGRP_IPV6_RULE),
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE), error;

	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd < 0 ? -errno : fd;
	error = errno;
	close(fd);
	return -error;
}

/* Does the message concern us? Other programs' routes don't, unless they are wide, and there may be thousands in a second. */
static bool matters(const struct nlmsghdr *message)
{
	const struct rtmsg *route = mnl_nlmsg_get_payload(message);

	if (message->nlmsg_type != RTM_NEWROUTE && message->nlmsg_type != RTM_DELROUTE)
		return true;
	if (mnl_nlmsg_get_payload_len(message) < sizeof(*route) || route->rtm_flags & RTM_F_CLONED)
		return false;
	return route->rtm_dst_len <= 1 || route->rtm_protocol == RTPROT_KERNEL || route->rtm_protocol == HOST_PROTOCOL_OURS;
}

bool paths_kernel_heard(int fd)
{
	_Alignas(struct nlmsghdr) char buf[32768];
	bool heard = false;

	for (;;) {
		ssize_t got = recv(fd, buf, sizeof(buf), 0);
		int left = (int)got;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno != ENOBUFS)
			return heard;
		heard = heard || got < 0;
		for (const struct nlmsghdr *message = (struct nlmsghdr *)buf; got > 0 && mnl_nlmsg_ok(message, left);
		     message = mnl_nlmsg_next(message, &left))
			heard = heard || matters(message);
	}
}

/* --- subflows, by sock_diag(7) --- */

static_assert(offsetof(struct kernel_mptcp_info, token) == offsetof(struct mptcp_info, mptcpi_token) &&
		      offsetof(struct kernel_mptcp_info, rcv_nxt) == offsetof(struct mptcp_info, mptcpi_rcv_nxt) &&
		      offsetof(struct kernel_mptcp_info, bytes_sent) == 56,
	      "the kernel's layout");

static void read_info(struct paths_subflow *out, const struct nlmsghdr *message)
{
	struct tcp_info info;

	netlink_read_socket_info(message, &info, sizeof(info));
	out->unanswered = info.tcpi_backoff > 0 && info.tcpi_unacked > 0;
	out->rtt_ms = info.tcpi_rtt / 1000;
	/* for a packet the kernel notes either the time of data or that of an acknowledgement: use the later one */
	out->heard_ms = info.tcpi_last_data_recv < info.tcpi_last_ack_recv ? info.tcpi_last_data_recv : info.tcpi_last_ack_recv;
	out->received = info.tcpi_bytes_received;
	out->drained = !info.tcpi_unacked && !info.tcpi_notsent_bytes;
}

static void read_mapping(struct paths_subflow *out, const struct nlattr *attr)
{
	size_t len = mnl_attr_get_payload_len(attr);

	switch (mnl_attr_get_type(attr)) {
	case MPTCP_SUBFLOW_ATTR_TOKEN_LOC:
		out->token = netlink_read_u32(attr);
		break;
	case MPTCP_SUBFLOW_ATTR_FLAGS:
		out->joined = netlink_read_u32(attr) & (MPTCP_SUBFLOW_FLAG_JOIN_LOC | MPTCP_SUBFLOW_FLAG_JOIN_REM);
		out->confirmed = netlink_read_u32(attr) & MPTCP_SUBFLOW_FLAG_FULLY_ESTABLISHED;
		break;
	case MPTCP_SUBFLOW_ATTR_MAP_SEQ:
		out->mapped += len >= sizeof(uint64_t) ? mnl_attr_get_u64(attr) : 0;
		break;
	case MPTCP_SUBFLOW_ATTR_MAP_DATALEN:
		out->mapped += len >= sizeof(uint16_t) ? mnl_attr_get_u16(attr) : 0;
		break;
	}
}

/* Reads Multipath TCP's facts about the socket. Returns false if it isn't a subflow. */
static bool read_protocol(struct paths_subflow *out, const struct nlattr *outer)
{
	const struct nlattr *attr, *inner;
	bool found = false;

	mnl_attr_for_each_nested(attr, outer) {
		if ((mnl_attr_get_type(attr) & NLA_TYPE_MASK) != INET_ULP_INFO_MPTCP)
			continue;
		found = true;
		mnl_attr_for_each_nested(inner, attr)
			read_mapping(out, inner);
	}
	return found;
}

static int on_socket(const struct nlmsghdr *message, void *arg)
{
	const struct inet_diag_msg *found = mnl_nlmsg_get_payload(message);
	struct paths_subflows *out = arg;
	struct paths_subflow subflow = { 0 };
	const struct nlattr *attr;
	bool is_subflow = false;

	if (mnl_nlmsg_get_payload_len(message) < sizeof(*found))
		return MNL_CB_OK;
	read_info(&subflow, message);
	mnl_attr_for_each(attr, message, sizeof(*found))
		if (mnl_attr_get_type(attr) == INET_DIAG_ULP_INFO)
			is_subflow = read_protocol(&subflow, attr);
	if (!is_subflow)
		return MNL_CB_OK;
	if (out->count == PATHS_SUBFLOWS_MAX) {
		out->more = true;
		return MNL_CB_OK;
	}
	subflow.cookie = (uint64_t)found->id.idiag_cookie[1] << 32 | found->id.idiag_cookie[0];
	subflow.established = found->idiag_state == TCPINFO_ESTABLISHED;
	subflow.local = netlink_socket_address(found, false);
	sockaddr_ip_set_port(&subflow.local, 0);
	subflow.peer = netlink_socket_address(found, true);
	out->list[out->count++] = subflow;
	return MNL_CB_OK;
}

/* Compares a connection's bytes that have arrived in order, each way, with its subflows' facts. Its socket isn't one of theirs. */
static int on_connection(const struct nlmsghdr *message, void *arg)
{
	struct paths_subflows *subflows = arg;
	struct kernel_mptcp_info info;

	netlink_read_socket_info(message, &info, sizeof(info));
	for (size_t i = 0; i < subflows->count && info.rcv_nxt; i++) {
		struct paths_subflow *subflow = &subflows->list[i];

		if (subflow->token != info.token)
			continue;
		subflow->incomplete = subflow->mapped && (int64_t)(subflow->mapped - info.rcv_nxt) > 0;
		subflow->owed = info.bytes_sent > info.bytes_acked ? info.bytes_sent - info.bytes_acked : 0;
	}
	return MNL_CB_OK;
}

#define STATES (1u << TCPINFO_ESTABLISHED | 1u << TCPINFO_SYN_SENT)

int paths_kernel_subflows(struct paths_subflows *out)
{
	struct netlink netlink;
	int ret = netlink_open(&netlink, NETLINK_SOCK_DIAG);

	out->count = 0;
	out->more = false;
	if (ret < 0)
		return ret;
	ret = netlink_dump_sockets(&netlink, IPPROTO_TCP, STATES, on_socket, out);
	/* if the kernel doesn't show connections (CONFIG_INET_MPTCP_DIAG), the facts of the subflows remain */
	if (ret == 0 && out->count)
		netlink_dump_sockets(&netlink, IPPROTO_MPTCP, STATES, on_connection, out);
	netlink_close(&netlink);
	return ret;
}
