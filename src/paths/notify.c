/* SPDX-License-Identifier: BSD-3-Clause */
/* notify.c - tells the service manager how far the path manager is: one datagram for each message, without libsystemd */
#include "config.h"

#include "paths/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void paths_notify(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un manager = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (!len || (path[0] != '/' && path[0] != '@') || len >= sizeof(manager.sun_path))
		return;
	memcpy(manager.sun_path, path, len);
	if (path[0] == '@')
		manager.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&manager,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

int paths_notify_watchdog_ms(void)
{
	const char *interval = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	unsigned long long us = interval ? strtoull(interval, NULL, 10) : 0;

	if (!us || !getenv("NOTIFY_SOCKET") || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return -1;
	return us / 2000 < 1000000 ? (int)(us / 2000) : 1000000;
}
