/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * named.c - is there the network that the user names (CONVERT_PATHS)?
 *
 * Devices come and go, and so do their addresses: a name that nothing has is no error, but whoever has misspelt one is to be told. An
 * address is this machine's if a socket can be bound to it.
 */
#include "config.h"

#include "networks/named.h"

#include "networks/io.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

static bool has_device(int fd, const char *name)
{
	struct ifreq request = { .ifr_flags = 0 };

	strcpy(request.ifr_name, name);
	return io_ioctl(fd, SIOCGIFINDEX, &request) == 0 || errno != ENODEV;
}

static bool has_address(int fd, const union sockaddr_ip *address)
{
	return io_bind(fd, &address->sa, sockaddr_ip_len(address)) == 0 || errno != EADDRNOTAVAIL;
}

bool network_is_there(const struct path_wish *wish)
{
	const int family = IN6_IS_ADDR_V4MAPPED(&wish->address) || *wish->device ? AF_INET : AF_INET6;
	int before = errno, fd = io_socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union sockaddr_ip address;
	bool there = true;

	if (fd >= 0) {
		sockaddr_ip_set(&address, family, &wish->address, 0);
		there = *wish->device ? has_device(fd, wish->device) : has_address(fd, &address);
		io_close(fd);
	}
	errno = before;
	return there;
}

void networks_tell_missing(const struct path_preferences *wanted, client_log *say)
{
	char name[SOCKADDR_STRLEN];

	for (size_t i = 0; i < wanted->count; i++)
		if (!network_is_there(&wanted->wishes[i]))
			say("CONVERT_PATHS names %s: there is no such device or address now", path_wish_format(&wanted->wishes[i], name));
}
