/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_beneath.c - what the shim asks of the system past the table `next`
 *
 * In the place of host/networks.c (netlink), registrations.c and rings.c (/proc), rights.c, resolve.c (name servers) and log.c.
 */
#include "config.h"

#include "fake_kernel.h"

#include "client/resolve.h"
#include "host/networks.h"
#include "client/client_log.h"
#include "shim/system/next.h"
#include "shim/system/rights.h"
#include "shim/system/rings.h"
#include "shim/wait/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

bool fake_several_paths, fake_rings;
const char *fake_resolved;

bool networks_may_be_several(int fd, const union sockaddr_ip *to)
{
	(void)fd, (void)to;
	return fake_several_paths;
}

const struct path_preferences *host_preferences(const struct settings *with)
{
	return &with->paths;
}

enum policy_breach networks_policy_breach(const struct network_policy *policy, const union sockaddr_ip *to)
{
	(void)policy, (void)to;
	return BREACH_NONE;
}

bool network_usual_source(const union sockaddr_ip *to, int device, struct in6_addr *source)
{
	(void)to, (void)device, (void)source;
	return false;
}

bool network_usual_is_never(const struct path_preferences *wanted, const union sockaddr_ip *to)
{
	(void)wanted, (void)to;
	return false;
}

const char *policy_breach_text(enum policy_breach breach)
{
	(void)breach;
	return NULL;
}

bool rings_in_use(int fd)
{
	(void)fd;
	return fake_rings;
}

bool rings_hold(int fd)
{
	(void)fd;
	return false;
}

int rights_ask(const union sockaddr_ip *to)
{
	(void)to;
	return 0;
}

void *next_map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void next_unmap(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, bytes);
}

bool next_same_owner(int fd, int other)
{
	(void)fd, (void)other;
	return true;
}

void rings_forget(int fd)
{
	(void)fd;
}

bool networks_is_own(const union sockaddr_ip *to)
{
	(void)to;
	return false;
}

size_t networks_to(const union sockaddr_ip *to, const struct network_policy *policy, struct network out[NETWORKS_MAX])
{
	(void)to, (void)policy, (void)out;
	return 0;
}

bool network_bind(int fd, const struct in6_addr *source, int device)
{
	(void)fd, (void)source, (void)device;
	return false;
}

bool network_needs_socket(int fd, int device)
{
	(void)fd, (void)device;
	return false;
}

/* Thus no connection leaves its network and no probe is sent, which tests/lab/test_begin.py tests. */
bool network_is_chosen(int fd)
{
	(void)fd;
	return true;
}

struct in6_addr network_source(int fd)
{
	(void)fd;
	return in6addr_any;
}

/* The registrations of an instance, which /proc would show. */
void registrations_visit(int epfd, registration_visitor visit, void *arg)
{
	struct registration found;

	for (int i = 0; fake_registration_get(epfd, i, &found.fd, &found.event); i++)
		if (!visit(epfd, &found, arg))
			return;
}

size_t resolve_converter(const char *name, uint16_t port, int timeout_ms, union sockaddr_ip *out, size_t max, const char **reason)
{
	(void)name, (void)timeout_ms;
	if (!fake_resolved || !max) {
		*reason = "the name is unknown";
		return 0;
	}
	if (sockaddr_ip_parse(out, fake_resolved, port) != 0)
		fake_die("%s isn't an address", fake_resolved);
	return 1;
}

bool resolve_is_running(void)
{
	return false;
}

static char last[512];

__attribute__((format(printf, 1, 0))) static void line(const char *format, va_list args)
{
	vsnprintf(last, sizeof(last), format, args);
	if (getenv("FAKE_LOG"))
		fprintf(stderr, "%lld ms: %s\n", (long long)fake_now_ms(), last);
}

bool log_is_on(void)
{
	return true;
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
