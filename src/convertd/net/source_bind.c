/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source_bind.c - binds sockets to the source address that was chosen for a connection
 *
 * Ports: bind() without a port would take one that is free towards all servers, so one address could have 28,000
 * connections at most. With IP_BIND_ADDRESS_NO_PORT connect() takes a port that is free towards its server, and
 * connections to other servers share it. With --preserve-client-address, the client's own port is taken if it is free;
 * by SO_REUSEADDR connections of other clients may have it too, each towards another server.
 */
#include "config.h"

#include "convertd/net/source_bind.h"

#include "convertd/rights/rights.h"
#include "convertd/net/route.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of a prefix with more addresses than this, only the first and the last one are checked at the start. */
#define CHECK_MAX 256

static const int on = 1;

/*
 * Tells whether the local route of @source's prefix has gone. With IPV6_FREEBIND neither bind() nor connect() would fail
 * then, and the server's packets would get lost.
 */
static bool is_gone(const union sockaddr_ip *source, struct route *route)
{
	struct in6_addr address = sockaddr_ip_in6(source);

	return route && route_find(route, &address) == ROUTE_ELSEWHERE;
}

int source_bind(int fd, const union sockaddr_ip *source, enum sources_choice choice,
		struct route *route)
{
	union sockaddr_ip portless = *source;
	int error = 0;

	if (choice == SOURCES_ANY)
		return 0;
	if (choice == SOURCES_CLIENT)
		error = rights_set_transparent(fd, sockaddr_ip_is_v4(source));
	/* For IPv6, bind() accepts addresses of interfaces only; for IPv4 a local route is enough. */
	if (choice == SOURCES_ROUTED) {
		setsockopt(fd, SOL_IPV6, IPV6_FREEBIND, &on, sizeof(on));
		error = is_gone(source, route) ? -EADDRNOTAVAIL : 0;
	}
	if (error)
		return error;
	if (sockaddr_ip_port(source)) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(fd, &source->sa, sockaddr_ip_len(source)) == 0)
			return 0;
		/* The port is taken, say by a listener of this host, or is below 1024 and needs a capability: any port will do. */
		if (errno != EADDRINUSE && errno != EACCES)
			return -errno;
	}
	sockaddr_ip_set_port(&portless, 0);
	setsockopt(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	return bind(fd, &portless.sa, sockaddr_ip_len(&portless)) < 0 ? -errno : 0;
}

/* Increments an address. */
static void step(struct in6_addr *address)
{
	for (int i = 15; i >= 0 && ++address->s6_addr[i] == 0; i--)
		;
}

/* Tells whether the addresses of @source are this host's. If not, sets @wrong to one that isn't. */
static bool all_are_own(struct route *route, const struct source *source, struct in6_addr *wrong)
{
	struct in6_addr address, last;
	size_t count = source_range(source, &address, &last);

	*wrong = last;
	if (count > CHECK_MAX) {
		if (route_find(route, &last) != ROUTE_OWN)
			return false;
		count = 1;
	}
	for (; count; count--, step(&address)) {
		*wrong = address;
		if (route_find(route, &address) != ROUTE_OWN)
			return false;
	}
	return true;
}

static bool check_source(const struct source *source, struct route *route,
			 struct problems *problems)
{
	char text[PREFIX_STRLEN], single[PREFIX_STRLEN];
	struct in6_addr wrong;
	struct prefix prefix;

	if (all_are_own(route, source, &wrong))
		return true;
	prefix = prefix_of(&wrong, 128);
	prefix_format(&source->prefix, text);
	problems_add(problems, &source->place,
		     "%s is no address of this host; add it: \"ip address add %s dev lo\", or the "
		     "whole of a prefix: \"ip route add local %s dev lo\"",
		     prefix_format(&prefix, single), single, text);
	return false;
}

static bool check_transparent(const struct sources *sources, struct problems *problems)
{
	static const int families[] = { AF_INET, AF_INET6 };

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		int fd = socket(families[i], SOCK_STREAM | SOCK_CLOEXEC, 0), error;

		/* A host without this family has no clients of it. */
		if (fd < 0)
			continue;
		error = rights_set_transparent(fd, families[i] == AF_INET);
		close(fd);
		if (!error)
			continue;
		problems_add(problems, &sources->preserve_place,
			     "IP_TRANSPARENT: %s; it needs CAP_NET_ADMIN (AmbientCapabilities=, or "
			     "start as root)",
			     strerror(-error));
		return false;
	}
	return true;
}

static bool check_sources(const struct sources *sources, struct problems *problems)
{
	struct route *route = sources->count ? route_create() : NULL;
	bool right = true;

	if (sources->count && !route) {
		problems_add(problems, &sources->source[0].place, "no rtnetlink socket: %s",
			     strerror(errno));
		return false;
	}
	for (size_t i = 0; i < sources->count; i++)
		right &= check_source(&sources->source[i], route, problems);
	route_destroy(route);
	return right;
}

bool source_check(const struct sources *sources, struct problems *problems)
{
	if (sources->preserve && !check_transparent(sources, problems))
		return false;
	return check_sources(sources, problems);
}
