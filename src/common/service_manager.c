/* SPDX-License-Identifier: BSD-3-Clause */
/* service_manager.c - the socket to a service manager, which gets reports of a service's state, without libsystemd */
#include "config.h"

#include "common/service_manager.h"

#include <stddef.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

void service_manager_read(struct service_manager *out, const char *path)
{
	size_t len = path ? strlen(path) : 0;

	memset(out, 0, sizeof(*out));
	if (!len || (path[0] != '/' && path[0] != '@') || len >= sizeof(out->address.sun_path))
		return;
	out->address.sun_family = AF_UNIX;
	memcpy(out->address.sun_path, path, len);
	if (path[0] == '@')
		out->address.sun_path[0] = '\0';
	out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

int service_manager_connect(const struct service_manager *manager)
{
	const struct timeval wait = { .tv_usec = SERVICE_MANAGER_WAIT_MS * 1000 };
	int fd = manager->len ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) == 0 &&
	    connect(fd, (const struct sockaddr *)&manager->address, manager->len) == 0)
		return fd;
	close(fd);
	return -1;
}
