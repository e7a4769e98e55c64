/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.c - tells the service manager how far convertd is, and gives it descriptors for the next one: sd_notify(3)
 *
 * A message is one datagram to the Unix socket that NOTIFY_SOCKET names. systemd promises that this
 * stays so, for programs that do it without libsystemd (sd_notify(3), Standalone Implementations).
 * libsystemd would bring five compression and cryptography libraries into a daemon on the Internet's
 * edge, and there is none for musl.
 */
#include "config.h"

#include "convertd/process/notify.h"

#include "common/service_manager.h"
#include "convertd/base/clock.h"
#include "convertd/base/warden_message.h"

#include <errno.h>
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
static bool keeps;           /* it keeps descriptors for the next process */
static int relay = -1;       /* a socket to the process that the manager listens to; -1: it is this one */

void notify_init(void)
{
	const char *interval = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID"), *store = getenv("FDSTORE");

	service_manager_read(&manager, getenv("NOTIFY_SOCKET"));
	keeps = manager.len && store && strtoul(store, NULL, 10) > 0;
	if (interval && (!pid || strtol(pid, NULL, 10) == (long)getpid()))
		watchdog_us = strtoull(interval, NULL, 10);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	unsetenv("FDSTORE");
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

void notify_keep(int fd, const char *name)
{
	char text[NAME_MAX + sizeof("FDSTORE=1\nFDPOLL=0\nFDNAME=")];
	/* FDPOLL=0: kept also while it is readable, as a listening socket with clients in its queue is. */
	int len = snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);

	if (manager.len && len < (int)sizeof(text))
		notify_forward(text, (size_t)len, fd);
}

bool notify_keeps_descriptors(void)
{
	return keeps;
}

bool notify_is_wanted(void)
{
	return manager.len != 0;
}

void notify_reloading(void)
{
	notify_send("RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)clock_now_us());
}

uint64_t notify_watchdog_us(void)
{
	return manager.len ? watchdog_us : 0;
}

/* What a line of a message begins with, and whether that is all of it. */
static const struct {
	const char *text;
	bool whole;
} assignments[] = {
	{ "READY=1", true },
	{ "RELOADING=1", true },
	{ "STOPPING=1", true },
	{ "WATCHDOG=1", true },
	{ "STATUS=", false },
	{ "MONOTONIC_USEC=", false },
	{ "EXTEND_TIMEOUT_USEC=", false },
	{ "FDSTORE=1", true },
	{ "FDSTOREREMOVE=1", true },
	{ "FDPOLL=0", true },
	{ "FDNAME=" NOTIFY_KEPT_NAME, true },
	{ "FDNAME=" NOTIFY_RULES_NAME, true },
};

static bool line_is_right(const char *line, size_t len)
{
	for (size_t i = 0; i < sizeof(assignments) / sizeof(assignments[0]); i++) {
		size_t prefix = strlen(assignments[i].text);

		if (len >= prefix && memcmp(line, assignments[i].text, prefix) == 0 &&
		    (!assignments[i].whole || len == prefix))
			return true;
	}
	return false;
}

bool notify_message_is_right(const char *text, size_t len)
{
	const char *end = text + len;

	if (memchr(text, '\0', len))
		return false;
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;

		if (!line_is_right(text, (size_t)(line_end - text)))
			return false;
		text = newline ? newline + 1 : end;
	}
	return len > 0;
}
