/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_subflows.c - reads the subflows of all Multipath TCP connections, by sock_diag(7) */
#include "config.h"

#include "paths/mend.h"

#include <arpa/inet.h>
#include <assert.h>
#include <linux/inet_diag.h>
#include <linux/mptcp.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <string.h>

/* struct mptcp_info of Linux 6.5, since the headers may be older. Members that the kernel doesn't fill are zero. */
struct connection_info {
	uint8_t counts[6];
	uint32_t flags;
	uint32_t token;
	uint64_t write_seq, snd_una, rcv_nxt;
	uint8_t more_counts[3];
	uint32_t retransmits;
	uint64_t bytes_retrans, bytes_sent, bytes_received, bytes_acked;
};
static_assert(offsetof(struct connection_info, token) == offsetof(struct mptcp_info, mptcpi_token) &&
		      offsetof(struct connection_info, rcv_nxt) == offsetof(struct mptcp_info, mptcpi_rcv_nxt) &&
		      offsetof(struct connection_info, bytes_sent) == 56,
	      "the kernel's layout");

/* enum of include/net/tcp_states.h */
#define ESTABLISHED 1
#define SYN_SENT 2

static void read_info(struct paths_subflow *out, const struct nlattr *attr)
{
	struct tcp_info info = { 0 };
	size_t len = mnl_attr_get_payload_len(attr);

	/* newer kernels append members to struct tcp_info */
	memcpy(&info, mnl_attr_get_payload(attr), len < sizeof(info) ? len : sizeof(info));
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

static void read_address(union sockaddr_ip *out, uint8_t family, const __be32 address[4], __be16 port)
{
	out->sa.sa_family = family;
	if (family == AF_INET)
		memcpy(&out->in.sin_addr, address, sizeof(out->in.sin_addr));
	else
		memcpy(&out->in6.sin6_addr, address, sizeof(out->in6.sin6_addr));
	sockaddr_ip_set_port(out, ntohs(port));
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
	mnl_attr_for_each(attr, message, sizeof(*found)) {
		if (mnl_attr_get_type(attr) == INET_DIAG_INFO)
			read_info(&subflow, attr);
		if (mnl_attr_get_type(attr) == INET_DIAG_ULP_INFO)
			is_subflow = read_protocol(&subflow, attr);
	}
	if (!is_subflow)
		return MNL_CB_OK;
	if (out->count == PATHS_SUBFLOWS_MAX) {
		out->more = true;
		return MNL_CB_OK;
	}
	subflow.cookie = (uint64_t)found->id.idiag_cookie[1] << 32 | found->id.idiag_cookie[0];
	subflow.established = found->idiag_state == ESTABLISHED;
	read_address(&subflow.local, found->idiag_family, found->id.idiag_src, 0);
	read_address(&subflow.peer, found->idiag_family, found->id.idiag_dst, found->id.idiag_dport);
	out->list[out->count++] = subflow;
	return MNL_CB_OK;
}

/* Reads a whole connection, which has a socket besides its subflows': the bytes of both directions that arrived in order. */
static int on_connection(const struct nlmsghdr *message, void *arg)
{
	struct paths_subflows *subflows = arg;
	struct connection_info info = { 0 };
	const struct nlattr *attr;

	mnl_attr_for_each(attr, message, sizeof(struct inet_diag_msg)) {
		size_t len = mnl_attr_get_payload_len(attr);

		if (mnl_attr_get_type(attr) == INET_DIAG_INFO)
			memcpy(&info, mnl_attr_get_payload(attr), len < sizeof(info) ? len : sizeof(info));
	}
	for (size_t i = 0; i < subflows->count && info.rcv_nxt; i++) {
		struct paths_subflow *subflow = &subflows->list[i];

		if (subflow->token != info.token)
			continue;
		subflow->incomplete = subflow->mapped && (int64_t)(subflow->mapped - info.rcv_nxt) > 0;
		subflow->owed = info.bytes_sent > info.bytes_acked ? info.bytes_sent - info.bytes_acked : 0;
	}
	return MNL_CB_OK;
}

static int dump(struct netlink *netlink, int family, uint32_t protocol, mnl_cb_t on_message, struct paths_subflows *out)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(netlink->buf);
	struct inet_diag_req_v2 *request = mnl_nlmsg_put_extra_header(message, sizeof(*request));

	message->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	request->sdiag_family = (uint8_t)family;
	request->sdiag_protocol = (uint8_t)(protocol <= UINT8_MAX ? protocol : UINT8_MAX);
	request->idiag_ext = 1 << (INET_DIAG_INFO - 1);
	request->idiag_states = 1u << ESTABLISHED | 1u << SYN_SENT;
	if (protocol > UINT8_MAX)
		mnl_attr_put_u32(message, INET_DIAG_REQ_PROTOCOL, protocol);
	return netlink_ask(netlink, on_message, out);
}

int paths_kernel_subflows(struct paths_subflows *out)
{
	struct netlink netlink;
	int ret = netlink_open(&netlink, NETLINK_SOCK_DIAG);

	out->count = 0;
	out->more = false;
	if (ret < 0)
		return ret;
	ret = dump(&netlink, AF_INET, IPPROTO_TCP, on_socket, out);
	if (ret == 0)
		ret = dump(&netlink, AF_INET6, IPPROTO_TCP, on_socket, out);
	/* if the kernel doesn't show connections (CONFIG_INET_MPTCP_DIAG), the facts of the subflows remain */
	if (ret == 0 && out->count) {
		dump(&netlink, AF_INET, IPPROTO_MPTCP, on_connection, out);
		dump(&netlink, AF_INET6, IPPROTO_MPTCP, on_connection, out);
	}
	netlink_close(&netlink);
	return ret;
}
