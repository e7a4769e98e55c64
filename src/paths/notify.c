/* SPDX-License-Identifier: BSD-3-Clause */
/* notify.c - tells the service manager how far the path manager is: one datagram for each message, without libsystemd */
#include "config.h"

#include "paths/notify.h"

#include "common/service_manager.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool paths_notify(const char *text)
{
	struct service_manager manager;
	bool taken;
	int fd;

	service_manager_read(&manager, getenv("NOTIFY_SOCKET"));
	fd = service_manager_connect(&manager);
	if (fd < 0)
		return false;
	taken = send(fd, text, strlen(text), MSG_NOSIGNAL) >= 0;
	close(fd);
	return taken;
}

int paths_notify_watchdog_ms(void)
{
	const char *interval = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	unsigned long long us = interval ? strtoull(interval, NULL, 10) : 0;

	if (!us || !getenv("NOTIFY_SOCKET") || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return -1;
	return us / 2000 < 1000000 ? (int)(us / 2000) : 1000000;
}
