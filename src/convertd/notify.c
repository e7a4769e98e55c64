/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.c - tell the service manager how far convertd is: sd_notify(3)
 *
 * A message is one datagram to the Unix socket that NOTIFY_SOCKET names. systemd promises that this
 * stays so, and asks to do it without libsystemd where that is a burden (sd_notify(3), Notes): it
 * would bring five compression and cryptography libraries into a daemon on the Internet's edge,
 * and there is none for musl.
 */
#include "config.h"

#include "convertd/notify.h"

#include <errno.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_MAX 8192

/* Written by notify_init() alone. */
static struct sockaddr_un manager;
static socklen_t manager_len; /* 0: there is none */
static uint64_t watchdog_us;  /* 0: not wanted */

/* "/run/systemd/notify", or "@name" for the abstract namespace. */
static void read_address(const char *path)
{
	size_t len = strlen(path);

	if ((path[0] != '/' && path[0] != '@') || len >= sizeof(manager.sun_path))
		return;
	manager.sun_family = AF_UNIX;
	memcpy(manager.sun_path, path, len);
	if (path[0] == '@')
		manager.sun_path[0] = '\0';
	manager_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

void notify_init(void)
{
	const char *path = getenv("NOTIFY_SOCKET"), *interval = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");

	if (path)
		read_address(path);
	if (interval && (!pid || strtol(pid, NULL, 10) == (long)getpid()))
		watchdog_us = strtoull(interval, NULL, 10);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

void notify_send(const char *format, ...)
{
	char message[MESSAGE_MAX];
	int saved = errno, len, fd;
	va_list args;

	if (!manager_len)
		return;
	va_start(args, format);
	len = vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && len > 0) {
		if (len >= (int)sizeof(message))
			len = (int)sizeof(message) - 1;
		sendto(fd, message, (size_t)len, MSG_NOSIGNAL, (const struct sockaddr *)&manager,
		       manager_len);
	}
	if (fd >= 0)
		close(fd);
	errno = saved;
}

void notify_reloading(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	notify_send("RELOADING=1\nMONOTONIC_USEC=%llu",
		    (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	notify_send("WATCHDOG=1");
}

/* Twice as often as it must be, as sd_watchdog_enabled(3) advises. */
struct event *notify_watchdog(struct event_base *base)
{
	struct timeval interval = { .tv_sec = (time_t)(watchdog_us / 2 / 1000000),
				    .tv_usec = (suseconds_t)(watchdog_us / 2 % 1000000) };
	struct event *event;

	if (!manager_len || !watchdog_us)
		return NULL;
	event = event_new(base, -1, EV_PERSIST, on_watchdog, NULL);
	if (event)
		event_add(event, &interval);
	return event;
}
