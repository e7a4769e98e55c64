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

#include "convertd/process/notify.h"

#include "common/service_manager.h"
#include "convertd/base/clock.h"
#include "convertd/base/fdpass.h"

#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Written by notify_init(), notify_relay() and notify_stop(), before there are threads or by the main thread alone. */
static struct service_manager manager;
static uint64_t watchdog_us; /* 0: not wanted */
static int relay = -1;       /* a socket to the process that the manager listens to; -1: it is this one */

void notify_init(void)
{
	const char *interval = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	service_manager_read(&manager, getenv("NOTIFY_SOCKET"));
	if (interval && (!pid || strtol(pid, NULL, 10) == (long)getpid()))
		watchdog_us = strtoull(interval, NULL, 10);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

void notify_relay(int fd)
{
	relay = fd;
}

void notify_stop(void)
{
	relay = -1;
	manager.len = 0;
}

void notify_forward(const char *text, size_t len, int passed)
{
	int fd;

	if (relay >= 0) {
		fdpass_send(relay, text, len, passed);
		return;
	}
	fd = service_manager_connect(&manager);
	if (fd < 0)
		return;
	fdpass_send(fd, text, len, passed);
	close(fd);
}

void notify_send(const char *format, ...)
{
	char text[NOTIFY_MAX];
	int saved = errno, len;
	va_list args;

	if (!manager.len)
		return;
	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (len > 0)
		notify_forward(text, len < NOTIFY_MAX ? (size_t)len : NOTIFY_MAX - 1, -1);
	errno = saved;
}

/* Asks the manager to keep a descriptor. @poll: "FDPOLL=0\n" has it keep one that is readable or closed by its peer, too */
static void keep(int fd, const char *name, const char *poll)
{
	char text[NAME_MAX + sizeof("FDSTORE=1\nFDPOLL=0\nFDNAME=")];
	int len = snprintf(text, sizeof(text), "FDSTORE=1\n%sFDNAME=%s", poll, name);

	if (manager.len && len < (int)sizeof(text))
		notify_forward(text, (size_t)len, fd);
}

void notify_keep(int fd, const char *name)
{
	keep(fd, name, "FDPOLL=0\n");
}

void notify_keep_lifeline(int fd, const char *name)
{
	keep(fd, name, "");
}

bool notify_is_wanted(void)
{
	return manager.len != 0;
}

void notify_reloading(void)
{
	notify_send("RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)clock_now_us());
}

static bool (*watchdog_well)(void *arg);

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	if (watchdog_well(arg))
		notify_send("WATCHDOG=1");
}

/*
 * sd_watchdog_enabled(3) advises to say it twice in the time. An answer to the question of one look
 * is there by the next one: a second look, so that one that is late isn't the end.
 */
struct event *notify_watchdog(struct event_base *base, bool (*well)(void *arg), void *arg)
{
	uint64_t interval_us = watchdog_us / NOTIFY_WATCHDOG_LOOKS;
	struct timeval interval = { .tv_sec = (time_t)(interval_us / 1000000),
				    .tv_usec = (suseconds_t)(interval_us % 1000000) };
	struct event *event;

	if (!manager.len || !watchdog_us)
		return NULL;
	watchdog_well = well;
	event = event_new(base, -1, EV_PERSIST, on_watchdog, arg);
	if (event)
		event_add(event, &interval);
	return event;
}
