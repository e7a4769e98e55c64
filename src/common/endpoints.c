/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoints.c - the addresses that the kernel's MPTCP path manager uses, as ip-mptcp(8) shows them */
#include "config.h"

#include "common/endpoints.h"

#include <errno.h>
#include <linux/mptcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Reads an attribute of an endpoint, if it is long enough for its type. */
static void read_address_attr(struct mptcp_endpoint *endpoint, const struct nlattr *attr)
{
	union sockaddr_ip *address = &endpoint->address;
	const void *payload = mnl_attr_get_payload(attr);
	size_t len = mnl_attr_get_payload_len(attr);
	uint16_t port;

	switch (mnl_attr_get_type(attr)) {
	case MPTCP_PM_ADDR_ATTR_ADDR4:
		address->sa.sa_family = AF_INET;
		if (len >= sizeof(address->in.sin_addr))
			memcpy(&address->in.sin_addr, payload, sizeof(address->in.sin_addr));
		break;
	case MPTCP_PM_ADDR_ATTR_ADDR6:
		address->sa.sa_family = AF_INET6;
		if (len >= sizeof(address->in6.sin6_addr))
			memcpy(&address->in6.sin6_addr, payload, sizeof(address->in6.sin6_addr));
		break;
	case MPTCP_PM_ADDR_ATTR_PORT: /* in host byte order, and where it is in both families */
		if (len >= sizeof(port)) {
			port = mnl_attr_get_u16(attr);
			address->in.sin_port = htons(port);
		}
		break;
	case MPTCP_PM_ADDR_ATTR_ID:
		if (len >= sizeof(uint8_t))
			endpoint->id = mnl_attr_get_u8(attr);
		break;
	case MPTCP_PM_ADDR_ATTR_IF_IDX:
		if (len >= sizeof(uint32_t))
			endpoint->bound = mnl_attr_get_u32(attr);
		break;
	case MPTCP_PM_ADDR_ATTR_FLAGS:
		if (len >= sizeof(uint32_t))
			endpoint->flags = mnl_attr_get_u32(attr);
		break;
	}
}

static int on_endpoint(const struct nlmsghdr *message, void *arg)
{
	struct endpoints *endpoints = arg;
	const struct nlattr *outer, *inner;

	mnl_attr_for_each(outer, message, sizeof(struct genlmsghdr)) {
		struct mptcp_endpoint endpoint = { 0 };

		if (mnl_attr_get_type(outer) != MPTCP_PM_ATTR_ADDR)
			continue;
		mnl_attr_for_each_nested(inner, outer)
			read_address_attr(&endpoint, inner);
		if (endpoint.address.sa.sa_family != AF_UNSPEC && endpoints->count < ENDPOINTS_MAX)
			endpoints->endpoint[endpoints->count++] = endpoint;
	}
	return MNL_CB_OK;
}

/* Is the address none of this host's? Where the sysctl ip_nonlocal_bind is on, bind() takes any, and none is found foreign. */
static bool is_foreign(const union sockaddr_ip *address)
{
	union sockaddr_ip portless = *address;
	int fd = socket(address->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	bool foreign;

	if (fd < 0)
		return false;
	sockaddr_ip_set_port(&portless, 0);
	setsockopt(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	foreign = bind(fd, &portless.sa, sockaddr_ip_len(&portless)) < 0 && errno == EADDRNOTAVAIL;
	close(fd);
	return foreign;
}

static int on_limits(const struct nlmsghdr *message, void *arg)
{
	struct endpoints *endpoints = arg;
	const struct nlattr *attr;

	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == MPTCP_PM_ATTR_SUBFLOWS &&
		    mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
			endpoints->subflow_limit = mnl_attr_get_u32(attr);
	return MNL_CB_OK;
}

static int ask(struct endpoints *endpoints, struct netlink *netlink)
{
	int family = netlink_find_family(netlink, MPTCP_PM_NAME), ret;

	if (family < 0)
		return family;
	netlink_put_generic(netlink, (uint16_t)family, NLM_F_DUMP, MPTCP_PM_CMD_GET_ADDR);
	ret = netlink_ask(netlink, on_endpoint, endpoints);
	if (ret < 0)
		return ret;
	netlink_put_generic(netlink, (uint16_t)family, NLM_F_ACK, MPTCP_PM_CMD_GET_LIMITS);
	return netlink_ask(netlink, on_limits, endpoints);
}

int endpoints_read(struct endpoints *endpoints, struct netlink *netlink)
{
	int ret = netlink_open(netlink, NETLINK_GENERIC);

	memset(endpoints, 0, sizeof(*endpoints));
	if (ret < 0)
		return ret;
	ret = ask(endpoints, netlink);
	netlink_close(netlink);
	for (size_t i = 0; i < endpoints->count; i++)
		endpoints->endpoint[i].foreign = is_foreign(&endpoints->endpoint[i].address);
	return ret;
}
