/* SPDX-License-Identifier: BSD-3-Clause */
/* sock_diag.c - the connections that are open to a converter from one of this host's addresses, by sock_diag(7) */
#include "config.h"

#include "convertize/paths/sock_diag.h"

#include "common/netlink.h"

#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <string.h>

#define ESTABLISHED (1u << 1) /* enum of include/net/tcp_states.h, as a bit */

struct search {
	const union sockaddr_ip *local, *converter;
	struct subflows *out;
};

static bool is_address(const union sockaddr_ip *wanted, int family, const __be32 address[4])
{
	union sockaddr_ip found = { .sa.sa_family = (sa_family_t)family };

	if (family == AF_INET)
		memcpy(&found.in.sin_addr, address, sizeof(found.in.sin_addr));
	else
		memcpy(&found.in6.sin6_addr, address, sizeof(found.in6.sin6_addr));
	sockaddr_ip_set_port(&found, sockaddr_ip_port(wanted));
	/* an IPv6 socket with IPv4 addresses has them v4-mapped */
	return sockaddr_ip_equal(&found, wanted);
}

static void add(struct subflows *out, const struct nlattr *attr)
{
	struct tcp_info info = { 0 };
	size_t len = mnl_attr_get_payload_len(attr);

	/* it grows with the kernel */
	memcpy(&info, mnl_attr_get_payload(attr), len < sizeof(info) ? len : sizeof(info));
	out->received += info.tcpi_bytes_received;
	out->sent += info.tcpi_bytes_acked;
	if (out->count++ == 0 || info.tcpi_last_ack_recv < out->heard_ms)
		out->heard_ms = info.tcpi_last_ack_recv;
}

static int on_socket(const struct nlmsghdr *message, void *arg)
{
	const struct inet_diag_msg *found = mnl_nlmsg_get_payload(message);
	struct search *search = arg;
	const struct nlattr *attr;

	if (mnl_nlmsg_get_payload_len(message) < sizeof(*found) ||
	    found->id.idiag_dport != htons(sockaddr_ip_port(search->converter)) ||
	    !is_address(search->local, found->idiag_family, found->id.idiag_src) ||
	    !is_address(search->converter, found->idiag_family, found->id.idiag_dst))
		return MNL_CB_OK;
	mnl_attr_for_each(attr, message, sizeof(*found))
		if (mnl_attr_get_type(attr) == INET_DIAG_INFO)
			add(search->out, attr);
	return MNL_CB_OK;
}

static int read_family(struct netlink *netlink, int family, struct search *search)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(netlink->buf);
	struct inet_diag_req_v2 *request = mnl_nlmsg_put_extra_header(message, sizeof(*request));

	message->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	request->sdiag_family = (uint8_t)family;
	request->sdiag_protocol = IPPROTO_TCP;
	request->idiag_ext = 1 << (INET_DIAG_INFO - 1);
	request->idiag_states = ESTABLISHED;
	request->id.idiag_dport = htons(sockaddr_ip_port(search->converter));
	return netlink_ask(netlink, on_socket, search);
}

int subflows_read(const union sockaddr_ip *local, const union sockaddr_ip *converter, struct subflows *out)
{
	struct search search = { local, converter, out };
	struct netlink netlink;
	int ret = netlink_open(&netlink, NETLINK_SOCK_DIAG);

	if (ret < 0)
		return ret;
	ret = read_family(&netlink, AF_INET, &search);
	if (ret == 0)
		ret = read_family(&netlink, AF_INET6, &search);
	netlink_close(&netlink);
	return ret;
}
