/* SPDX-License-Identifier: BSD-3-Clause */
/* world.c - what the kernel has, as far as paths are concerned */
#include "config.h"

#include "paths/world.h"

#include <stdlib.h>
#include <string.h>

const struct paths_link *paths_world_link(const struct paths_world *world, unsigned int index)
{
	for (size_t i = 0; i < world->link_count; i++)
		if (world->links[i].index == index)
			return &world->links[i];
	return NULL;
}

static int length_of(const struct paths_route *route)
{
	return route->to.length - (route->family == AF_INET ? PATHS_V4_BITS : 0);
}

bool paths_route_is_default(const struct paths_route *route)
{
	return length_of(route) == 0;
}

bool paths_route_is_wide(const struct paths_route *route)
{
	return length_of(route) <= 1;
}

const struct mptcp_endpoint *paths_world_endpoint(const struct paths_world *world,
						  const union sockaddr_ip *address)
{
	for (size_t i = 0; i < world->endpoints.count; i++)
		if (sockaddr_ip_equal(&world->endpoints.endpoint[i].address, address))
			return &world->endpoints.endpoint[i];
	return NULL;
}

const char *paths_format_address(const union sockaddr_ip *address, char buf[static PREFIX_STRLEN])
{
	struct in6_addr in6 = sockaddr_ip_in6(address);
	struct prefix whole = prefix_of(&in6, 128);

	return prefix_format(&whole, buf);
}

void paths_world_fini(struct paths_world *world)
{
	free(world->links);
	free(world->addresses);
	free(world->routes);
	free(world->rules);
	free(world->tables);
	memset(world, 0, sizeof(*world));
}
