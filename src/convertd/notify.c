/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.c - tell the service manager how far convertd is: sd_notify(3)
 *
 * A message is one datagram to the Unix socket that NOTIFY_SOCKET names. systemd promises that this
 * stays so, for programs that do it without libsystemd (sd_notify(3), Standalone Implementations).
 * That would bring five compression and cryptography libraries into a daemon on the Internet's
 * edge, and there is none for musl.
 */
#include "config.h"

#include "convertd/notify.h"

#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* systemd passes over longer ones (PIPE_BUF). */
#define MESSAGE_MAX 4096

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

/* With the descriptor @passed, unless it is -1. */
static void send_message(const char *text, size_t len, int passed)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(__alignof__(struct cmsghdr)))) = {
		0
	};
	struct iovec bytes = { .iov_base = (char *)text, .iov_len = len };
	struct msghdr message = {
		.msg_name = &manager,
		.msg_namelen = manager_len,
		.msg_iov = &bytes,
		.msg_iovlen = 1,
	};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (passed >= 0) {
		struct cmsghdr *header;

		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(passed));
		memcpy(CMSG_DATA(header), &passed, sizeof(passed));
	}
	sendmsg(fd, &message, MSG_NOSIGNAL);
	close(fd);
}

void notify_send(const char *format, ...)
{
	char text[MESSAGE_MAX];
	int saved = errno, len;
	va_list args;

	if (!manager_len)
		return;
	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (len > 0)
		send_message(text, len < MESSAGE_MAX ? (size_t)len : MESSAGE_MAX - 1, -1);
	errno = saved;
}

void notify_keep(int fd, const char *name)
{
	char text[NAME_MAX + sizeof("FDSTORE=1\nFDPOLL=0\nFDNAME=")];
	int len = snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);

	if (manager_len && len < (int)sizeof(text))
		send_message(text, (size_t)len, fd);
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
