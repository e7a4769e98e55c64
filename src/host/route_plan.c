/* SPDX-License-Identifier: BSD-3-Clause */
/* route_plan.c - finds the route and rule that are missing for packets from an address to leave by its own device */
#include "config.h"

#include "host/host_model.h"

#include "common/netlink.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#define TABLE_FIRST 100 /* the first table to propose; the kernel's own are 0 and 253 to 255 */

/* --- neighbours --- */

struct neighbours {
	unsigned int index;
	int family;
	const union sockaddr_ip *asked; /* determine whether this neighbour is silent; NULL: find a router */
	bool silent;
	union sockaddr_ip found;
	size_t count, routers;
};

static int on_neighbour(const struct nlmsghdr *message, void *arg)
{
	const struct ndmsg *header = mnl_nlmsg_get_payload(message);
	struct neighbours *neighbours = arg;
	const bool router = header->ndm_flags & NTF_ROUTER, failed = header->ndm_state & (NUD_FAILED | NUD_INCOMPLETE);
	union sockaddr_ip address = { .sa.sa_family = AF_UNSPEC };
	const struct nlattr *attr;

	if (message->nlmsg_type != RTM_NEWNEIGH || header->ndm_family != neighbours->family ||
	    header->ndm_ifindex != (int)neighbours->index)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, message, sizeof(*header))
		if (mnl_attr_get_type(attr) == NDA_DST)
			netlink_read_address(&address, attr, header->ndm_family);
	if (neighbours->asked && address.sa.sa_family != AF_UNSPEC && sockaddr_ip_equal(&address, neighbours->asked))
		neighbours->silent = failed;
	if (header->ndm_type != RTN_UNICAST || failed || header->ndm_state & NUD_NOARP)
		return MNL_CB_OK;
	neighbours->count++;
	neighbours->routers += router;
	if (neighbours->count == 1 || router)
		neighbours->found = address;
	return MNL_CB_OK;
}

static struct neighbours neighbours_read(unsigned int index, int family, const union sockaddr_ip *asked)
{
	struct neighbours neighbours = { .index = index, .family = family, .asked = asked };
	struct netlink netlink;

	if (netlink_open(&netlink, NETLINK_ROUTE) < 0)
		return neighbours;
	netlink_dump(&netlink, RTM_GETNEIGH, family, on_neighbour, &neighbours);
	netlink_close(&netlink);
	return neighbours;
}

bool host_neighbour_is_silent(const union sockaddr_ip *address, unsigned int index)
{
	return address->sa.sa_family != AF_UNSPEC && neighbours_read(index, address->sa.sa_family, address).silent;
}

/* Finds the only neighbour on a device with which this host has communicated, or the only one that announces itself as a router. */
static bool find_neighbour(unsigned int index, int family, union sockaddr_ip *out)
{
	const struct neighbours neighbours = neighbours_read(index, family, NULL);

	if (neighbours.found.sa.sa_family != family || (neighbours.count != 1 && neighbours.routers != 1))
		return false;
	*out = neighbours.found;
	return true;
}

/* --- routes --- */

bool host_other_router(const struct host *host, const union sockaddr_ip *router, unsigned int index, union sockaddr_ip *out)
{
	for (size_t i = 0; i < host->route_count; i++) {
		const struct host_route *route = &host->routes[i];

		if (route->index == index && route->gateway.sa.sa_family == router->sa.sa_family &&
		    !sockaddr_ip_equal(&route->gateway, router)) {
			*out = route->gateway;
			return true;
		}
	}
	return false;
}

/* Finds the default route over a device in @table; 0: in any table but the main one. */
static const struct host_route *find_default(const struct host *host, int family, unsigned int index, uint32_t table)
{
	for (size_t i = 0; i < host->route_count; i++) {
		const struct host_route *route = &host->routes[i];

		if (host_route_is_default(route) && route->family == family && route->index == index &&
		    (table ? route->table == table : route->table != RT_TABLE_MAIN))
			return route;
	}
	return NULL;
}

static bool find_gateway(const struct host *host, int family, unsigned int index, union sockaddr_ip *out)
{
	const struct host_route *found = NULL;

	for (size_t i = 0; i < host->route_count; i++) {
		const struct host_route *route = &host->routes[i];

		if (route->family == family && route->index == index && route->gateway.sa.sa_family != AF_UNSPEC &&
		    (!found || host_route_is_default(route)))
			found = route;
	}
	if (!found)
		return find_neighbour(index, family, out);
	*out = found->gateway;
	return true;
}

void host_route_plan(const struct host *host, const union sockaddr_ip *from, const struct host_link *link, struct host_route_plan *out)
{
	const int family = from->sa.sa_family;
	const struct host_route *own = find_default(host, family, link->index, 0);

	*out = (struct host_route_plan){ .add_rule = true, .table = own ? own->table : TABLE_FIRST + link->index % 100 };
	while (!own && host_table_is_taken(host, out->table, 0))
		out->table++;
	for (size_t i = 0; i < host->rule_count && out->add_rule; i++)
		if (sockaddr_ip_equal(&host->rules[i].from, from) && !host->rules[i].shortest) {
			out->add_rule = false;
			out->table = host->rules[i].table;
		}
	out->add_route = !find_default(host, family, link->index, out->table);
	out->has_gateway = find_gateway(host, family, link->index, &out->gateway);
}
