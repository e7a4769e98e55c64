/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fastopen.c - asks the kernel for the Fast Open cookies that servers have given this host (RFC 8803 7.6)
 *
 * A client that asks for TCP option 34 is to see the server's cookie, and may send it with a later
 * request. Linux manages such cookies by itself: it asks for one in the first MSG_FASTOPEN SYN to a
 * server, takes it off the SYN+ACK, and puts it into the following SYNs. A program can't give it a cookie, but
 * can read those that it has, since they are among the metrics of each destination (tcp_metrics, by
 * generic netlink, without privileges). That is enough, as a cookie is bound to the converter's
 * address: the one that a client sends either is the kernel's own, or isn't valid any longer.
 */
#include "config.h"

#include "convertd/net/fastopen.h"

#include "common/netlink.h"

#include <linux/tcp_metrics.h>
#include <stdlib.h>
#include <string.h>

struct fastopen {
	struct netlink netlink;
	uint16_t family; /* the number of tcp_metrics in generic netlink */
};

struct fastopen *fastopen_create(void)
{
	struct fastopen *fastopen = calloc(1, sizeof(*fastopen));
	int family;

	if (!fastopen)
		return NULL;
	if (netlink_open(&fastopen->netlink, NETLINK_GENERIC) == 0) {
		family = netlink_find_family(&fastopen->netlink, TCP_METRICS_GENL_NAME);
		if (family >= 0) {
			fastopen->family = (uint16_t)family;
			return fastopen;
		}
	}
	fastopen_destroy(fastopen);
	return NULL;
}

void fastopen_destroy(struct fastopen *fastopen)
{
	if (!fastopen)
		return;
	netlink_close(&fastopen->netlink);
	free(fastopen);
}

bool fastopen_is_known(void)
{
	struct fastopen *fastopen = fastopen_create();

	fastopen_destroy(fastopen);
	return fastopen != NULL;
}

/* Adds @address to a request. @v4, @v6: the attribute's type for each family */
static void put_address(struct nlmsghdr *request, const union sockaddr_ip *address, uint16_t v4,
			uint16_t v6)
{
	struct in6_addr in6 = sockaddr_ip_in6(address);

	if (sockaddr_ip_is_v4(address))
		mnl_attr_put(request, v4, sizeof(struct in_addr), &in6.s6_addr[12]);
	else
		mnl_attr_put(request, v6, sizeof(in6), &in6);
}

/* Takes the cookie from the kernel's answer; called by netlink_ask(). */
static int on_metrics(const struct nlmsghdr *message, void *arg)
{
	struct fastopen_cookie *cookie = arg;
	const struct nlattr *attr;

	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr)) {
		uint16_t len = mnl_attr_get_payload_len(attr);

		if (mnl_attr_get_type(attr) != TCP_METRICS_ATTR_FOPEN_COOKIE ||
		    len > sizeof(cookie->bytes))
			continue;
		cookie->len = (uint8_t)len;
		memcpy(cookie->bytes, mnl_attr_get_payload(attr), len);
	}
	return MNL_CB_OK;
}

void fastopen_find(struct fastopen *fastopen, const union sockaddr_ip *source,
		   const union sockaddr_ip *server, struct fastopen_cookie *out)
{
	struct nlmsghdr *request = netlink_put_generic(&fastopen->netlink, fastopen->family,
						       NLM_F_ACK, TCP_METRICS_CMD_GET);

	out->len = 0;
	put_address(request, server, TCP_METRICS_ATTR_ADDR_IPV4, TCP_METRICS_ATTR_ADDR_IPV6);
	if (source && source->sa.sa_family != AF_UNSPEC)
		put_address(request, source, TCP_METRICS_ATTR_SADDR_IPV4,
			    TCP_METRICS_ATTR_SADDR_IPV6);
	/* The result is ignored: it is -ESRCH for a server that the kernel doesn't know, and there is no cookie then. */
	netlink_ask(&fastopen->netlink, on_metrics, out);
}

bool fastopen_equal(const struct fastopen_cookie *cookie, const void *bytes, size_t len)
{
	return cookie->len == len && memcmp(cookie->bytes, bytes, len) == 0;
}
