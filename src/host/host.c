/* SPDX-License-Identifier: BSD-3-Clause */
/* host.c - the model of this host: searches its lists */
#include "config.h"

#include "host/host.h"

#include <stdlib.h>
#include <string.h>

const struct host_link *host_link_of(const struct host *host, unsigned int index)
{
	for (size_t i = 0; i < host->link_count; i++)
		if (host->links[i].index == index)
			return &host->links[i];
	return NULL;
}

const struct host_link *host_home_of(const struct host *host, const union sockaddr_ip *address)
{
	union sockaddr_ip portless = *address;

	sockaddr_ip_set_port(&portless, 0);
	for (size_t i = 0; i < host->address_count; i++)
		if (sockaddr_ip_equal(&host->addresses[i].address, &portless))
			return host_link_of(host, host->addresses[i].index);
	return NULL;
}

const struct host_nm_device *host_nm_of(const struct host_managers *managers, const char *name)
{
	for (size_t i = 0; i < managers->nm_count; i++)
		if (strcmp(managers->nm[i].name, name) == 0)
			return &managers->nm[i];
	return NULL;
}

static int length_of(const struct host_route *route)
{
	return route->to.length - (route->family == AF_INET ? HOST_V4_BITS : 0);
}

bool host_route_is_default(const struct host_route *route)
{
	return length_of(route) == 0;
}

bool host_route_is_wide(const struct host_route *route)
{
	return length_of(route) <= 1;
}

const struct mptcp_endpoint *host_endpoint_of(const struct host *host, const union sockaddr_ip *address)
{
	for (size_t i = 0; i < host->endpoints.count; i++)
		if (sockaddr_ip_equal(&host->endpoints.endpoint[i].address, address))
			return &host->endpoints.endpoint[i];
	return NULL;
}

const char *host_format_address(const union sockaddr_ip *address, char buf[static PREFIX_STRLEN])
{
	struct in6_addr in6 = sockaddr_ip_in6(address);
	struct prefix whole = prefix_of(&in6, 128);

	return prefix_format(&whole, buf);
}

void host_fini(struct host *host)
{
	free(host->links);
	free(host->addresses);
	free(host->routes);
	free(host->rules);
	free(host->tables);
	memset(host, 0, sizeof(*host));
}
