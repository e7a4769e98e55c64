/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_beneath.c - what the shim asks of the system past the table `next`
 *
 * In the place of paths.c (netlink), unseen.c (/proc), resolve.c (name servers), shared.c (a cache in a file) and log.c.
 */
#include "config.h"

#include "fake_kernel.h"

#include "client/resolve.h"
#include "shim/connect/shared.h"
#include "shim/socket/paths.h"
#include "shim/system/log.h"
#include "shim/wait/unseen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool fake_several_paths;
const char *fake_resolved;

bool paths_may_be_several(int fd, const union sockaddr_ip *to)
{
	(void)fd, (void)to;
	return fake_several_paths;
}

void unseen_adopt(int epfd)
{
	(void)epfd; /* nothing is registered past the hooks here */
}

bool unseen_is_masked(int epfd, int fd)
{
	(void)epfd, (void)fd;
	fake_die("a registration that was made past the hooks isn't modelled");
}

size_t resolve_converter(const char *name, uint16_t port, int timeout_ms, union sockaddr_ip *out, size_t max, const char **reason)
{
	(void)name, (void)timeout_ms;
	if (!fake_resolved || !max) {
		*reason = "the name is unknown";
		return 0;
	}
	if (sockaddr_ip_parse(out, fake_resolved, port) != 0)
		fake_die("%s is no address", fake_resolved);
	return 1;
}

bool resolve_is_running(void)
{
	return false;
}

void shared_init(const struct settings *settings)
{
	(void)settings;
}

void shared_open(void)
{
}

void shared_repair_in_child(void)
{
}

/* One that is off. */
const struct cache *shared_cache(void)
{
	static const struct cache off;

	return &off;
}

static char last[512];

static void line(const char *format, va_list args)
{
	vsnprintf(last, sizeof(last), format, args);
	if (getenv("FAKE_LOG"))
		fprintf(stderr, "%lld ms: %s\n", (long long)fake_now_ms(), last);
}

void log_line(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line(format, args);
	va_end(args);
}

void log_warning(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line(format, args);
	va_end(args);
}

const char *fake_log_last(void)
{
	return last;
}
