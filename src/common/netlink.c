/* SPDX-License-Identifier: BSD-3-Clause */
/* netlink.c - questions to the kernel by netlink, one at a time (libmnl) */
#include "config.h"

#include "common/netlink.h"

#include <errno.h>
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

int netlink_ask(struct netlink *netlink, mnl_cb_t on_message, void *arg)
{
	struct nlmsghdr *message = (struct nlmsghdr *)netlink->buf;
	unsigned int sequence = netlink->sequence++;
	int ret = MNL_CB_OK;

	message->nlmsg_seq = sequence;
	if (mnl_socket_sendto(netlink->socket, message, message->nlmsg_len) < 0)
		return -errno;
	while (ret > MNL_CB_STOP) {
		ssize_t got = mnl_socket_recvfrom(netlink->socket, netlink->buf,
						  sizeof(netlink->buf));

		if (got < 0)
			return -errno;
		/* An answer that once couldn't be taken must not be taken for this one. */
		if (got >= (ssize_t)sizeof(*message) && message->nlmsg_seq != sequence)
			continue;
		ret = mnl_cb_run(netlink->buf, (size_t)got, sequence, netlink->port, on_message,
				 arg);
	}
	return ret < 0 ? -errno : 0;
}

struct nlmsghdr *netlink_put_generic(struct netlink *netlink, uint16_t family, uint16_t flags,
				     uint8_t command)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(netlink->buf);
	struct genlmsghdr *generic = mnl_nlmsg_put_extra_header(request, sizeof(*generic));

	request->nlmsg_type = family;
	request->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	generic->cmd = command;
	generic->version = 1;
	return request;
}

static int on_family(const struct nlmsghdr *message, void *arg)
{
	int *family = arg;
	const struct nlattr *attr;

	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID &&
		    mnl_attr_validate(attr, MNL_TYPE_U16) == 0)
			*family = mnl_attr_get_u16(attr);
	return MNL_CB_OK;
}

int netlink_find_family(struct netlink *netlink, const char *name)
{
	struct nlmsghdr *request;
	int family = -ENOENT, ret;

	request = netlink_put_generic(netlink, GENL_ID_CTRL, NLM_F_ACK, CTRL_CMD_GETFAMILY);
	mnl_attr_put_strz(request, CTRL_ATTR_FAMILY_NAME, name);
	ret = netlink_ask(netlink, on_family, &family);
	return ret < 0 ? ret : family;
}
