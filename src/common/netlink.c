/* SPDX-License-Identifier: BSD-3-Clause */
/* netlink.c - questions to the kernel by netlink, one at a time (libmnl) */
#include "config.h"

#include "common/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/socket.h>

int netlink_open(struct netlink *netlink, int bus)
{
	netlink->sequence = 1;
	netlink->socket = mnl_socket_open2(bus, SOCK_CLOEXEC);
	if (!netlink->socket)
		return -errno;
	if (mnl_socket_bind(netlink->socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		int error = errno;

		netlink_close(netlink);
		return -error;
	}
	netlink->port = mnl_socket_get_portid(netlink->socket);
	return 0;
}

void netlink_close(struct netlink *netlink)
{
	if (netlink->socket)
		mnl_socket_close(netlink->socket);
	netlink->socket = NULL;
}

/*
 * Clears the flag by which messages say that the list has changed since its beginning; returns whether one had it. mnl_cb_run() would stop
 * at it with the rest of the list unread, and until that is read the kernel answers no other question (EBUSY).
 */
static bool take_interruption(struct nlmsghdr *message, int left)
{
	bool interrupted = false;

	for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
		interrupted = interrupted || message->nlmsg_flags & NLM_F_DUMP_INTR;
		message->nlmsg_flags &= (uint16_t)~NLM_F_DUMP_INTR;
	}
	return interrupted;
}

int netlink_ask(struct netlink *netlink, mnl_cb_t on_message, void *arg)
{
	struct nlmsghdr *message = (struct nlmsghdr *)netlink->buf;
	unsigned int sequence = netlink->sequence++;
	bool interrupted = false;
	int ret = MNL_CB_OK;

	message->nlmsg_seq = sequence;
	if (mnl_socket_sendto(netlink->socket, message, message->nlmsg_len) < 0)
		return -errno;
	while (ret > MNL_CB_STOP) {
		ssize_t got = mnl_socket_recvfrom(netlink->socket, netlink->buf,
						  sizeof(netlink->buf));

		if (got < 0)
			return -errno;
		/* A late answer to an earlier question must not count for this one. */
		if (got >= (ssize_t)sizeof(*message) && message->nlmsg_seq != sequence)
			continue;
		interrupted = take_interruption(message, (int)got) || interrupted;
		ret = mnl_cb_run(netlink->buf, (size_t)got, sequence, netlink->port, on_message,
				 arg);
	}
	if (ret < 0)
		return -errno;
	return interrupted ? -EINTR : 0;
}

int netlink_dump(struct netlink *netlink, uint16_t type, int family, mnl_cb_t on_message, void *arg)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(netlink->buf);
	/* every header begins with the family; the kernel would take the bytes behind a header of the wrong length for attributes */
	size_t size = type == RTM_GETLINK ? sizeof(struct ifinfomsg) : type < RTM_MAX ? sizeof(struct rtmsg) : sizeof(struct rtgenmsg);
	struct rtgenmsg *header = mnl_nlmsg_put_extra_header(request, size);

	request->nlmsg_type = type;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	header->rtgen_family = (unsigned char)family;
	return netlink_ask(netlink, on_message, arg);
}

bool netlink_read_socket_info(const struct nlmsghdr *message, void *out, size_t size)
{
	const struct nlattr *attr;
	bool found = false;

	memset(out, 0, size);
	mnl_attr_for_each(attr, message, sizeof(struct inet_diag_msg))
		if (mnl_attr_get_type(attr) == INET_DIAG_INFO) {
			memcpy(out, mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr) < size ? mnl_attr_get_payload_len(attr) : size);
			found = true;
		}
	return found;
}

static struct inet_diag_req_v2 *put_socket_request(struct netlink *netlink, uint16_t flags, int family, uint8_t protocol, uint32_t states)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(netlink->buf);
	struct inet_diag_req_v2 *request = mnl_nlmsg_put_extra_header(message, sizeof(*request));

	message->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	message->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	request->sdiag_family = (uint8_t)family;
	request->sdiag_protocol = protocol;
	request->idiag_ext = 1 << (INET_DIAG_INFO - 1);
	request->idiag_states = states;
	return request;
}

static int on_found_socket(const struct nlmsghdr *message, void *arg)
{
	struct tcp_info *out = arg;

	if (mnl_nlmsg_get_payload_len(message) < sizeof(struct inet_diag_msg)) {
		errno = EBADMSG;
		return MNL_CB_ERROR;
	}
	netlink_read_socket_info(message, out, sizeof(*out));
	out->tcpi_state = ((const struct inet_diag_msg *)mnl_nlmsg_get_payload(message))->idiag_state;
	return MNL_CB_STOP; /* the kernel sends nothing behind it */
}

static void copy_address(__be32 out[4], const union sockaddr_ip *address, bool v4)
{
	const struct in6_addr in6 = sockaddr_ip_in6(address);

	memcpy(out, v4 ? &in6.s6_addr[12] : in6.s6_addr, v4 ? 4 : sizeof(in6));
}

int netlink_find_socket(struct netlink *netlink, const union sockaddr_ip *own, const union sockaddr_ip *peer, int device,
			struct tcp_info *out)
{
	const bool v4 = sockaddr_ip_is_v4(peer);
	struct inet_diag_req_v2 *request = put_socket_request(netlink, 0, v4 ? AF_INET : AF_INET6, IPPROTO_TCP, ~0u);

	copy_address(request->id.idiag_src, own, v4);
	copy_address(request->id.idiag_dst, peer, v4);
	request->id.idiag_sport = htons(sockaddr_ip_port(own));
	request->id.idiag_dport = htons(sockaddr_ip_port(peer));
	request->id.idiag_if = (uint32_t)device;
	request->id.idiag_cookie[0] = request->id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	return netlink_ask(netlink, on_found_socket, out);
}

int netlink_dump_sockets(struct netlink *netlink, uint32_t protocol, uint32_t states, mnl_cb_t on_message, void *arg)
{
	static const uint8_t families[] = { AF_INET, AF_INET6 };
	int ret = 0;

	for (size_t i = 0; i < 2 && ret == 0; i++) {
		put_socket_request(netlink, NLM_F_DUMP, families[i], (uint8_t)(protocol <= UINT8_MAX ? protocol : UINT8_MAX), states);
		if (protocol > UINT8_MAX)
			mnl_attr_put_u32((struct nlmsghdr *)netlink->buf, INET_DIAG_REQ_PROTOCOL, protocol);
		ret = netlink_ask(netlink, on_message, arg);
	}
	return ret;
}

union sockaddr_ip netlink_socket_address(const struct inet_diag_msg *socket, bool peer)
{
	union sockaddr_ip address = { .sa.sa_family = socket->idiag_family };
	const void *bytes = peer ? socket->id.idiag_dst : socket->id.idiag_src;

	if (socket->idiag_family == AF_INET)
		memcpy(&address.in.sin_addr, bytes, sizeof(address.in.sin_addr));
	else
		memcpy(&address.in6.sin6_addr, bytes, sizeof(address.in6.sin6_addr));
	sockaddr_ip_set_port(&address, ntohs(peer ? socket->id.idiag_dport : socket->id.idiag_sport));
	return address;
}

bool netlink_read_address(union sockaddr_ip *out, const struct nlattr *attr, int family)
{
	size_t len = family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);

	if (mnl_attr_get_payload_len(attr) != len)
		return false;
	memset(out, 0, sizeof(*out));
	out->sa.sa_family = (sa_family_t)family;
	if (family == AF_INET)
		memcpy(&out->in.sin_addr, mnl_attr_get_payload(attr), len);
	else
		memcpy(&out->in6.sin6_addr, mnl_attr_get_payload(attr), len);
	return true;
}

void netlink_put_address(struct nlmsghdr *request, uint16_t type, const union sockaddr_ip *address)
{
	if (address->sa.sa_family == AF_INET)
		mnl_attr_put(request, type, sizeof(address->in.sin_addr), &address->in.sin_addr);
	else
		mnl_attr_put(request, type, sizeof(address->in6.sin6_addr), &address->in6.sin6_addr);
}

uint32_t netlink_read_u32(const struct nlattr *attr)
{
	return mnl_attr_validate(attr, MNL_TYPE_U32) == 0 ? mnl_attr_get_u32(attr) : 0;
}

struct nlmsghdr *netlink_put_generic(struct netlink *netlink, uint16_t family, uint8_t command)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(netlink->buf);
	struct genlmsghdr *generic = mnl_nlmsg_put_extra_header(request, sizeof(*generic));

	request->nlmsg_type = family;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	generic->cmd = command;
	generic->version = 1;
	return request;
}
