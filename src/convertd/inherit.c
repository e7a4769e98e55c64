/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inherit.c - listening sockets that the service manager has passed on: sd_listen_fds(3)
 *
 * A service manager that keeps the sockets open loses no client while convertd restarts: they wait
 * in the sockets' queues. The protocol is three variables: LISTEN_FDS descriptors from 3 on are
 * meant for the process LISTEN_PID, and LISTEN_FDNAMES has a name for each. See notify.c for why
 * this isn't libsystemd's.
 *
 * What was passed on is the operator's word on where to listen, as --listen is. convertd
 * can't make such a socket another: whatever would make it useless is an error, with what to write
 * into the socket unit.
 */
#include "config.h"

#include "convertd/inherit.h"

#include "common/sysctl.h"
#include "convertd/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* SD_LISTEN_FDS_START */
#define FIRST 3

#define NAME_MAX_LEN 64

#define UNIT_REMEDY "a socket unit for convertd has ListenStream=[::]:1234, SocketProtocol=mptcp"

static const struct place nowhere;

static bool get_option(int fd, int option, int *value)
{
	socklen_t len = sizeof(*value);

	return getsockopt(fd, SOL_SOCKET, option, value, &len) == 0;
}

/* Why it is nothing to accept clients on; NULL if it is. */
static const char *find_fault(int fd, int *protocol)
{
	int type, listens;

	if (fcntl(fd, F_GETFD) < 0)
		return "it is not open; LISTEN_FDS is too high";
	if (!get_option(fd, SO_TYPE, &type) || !get_option(fd, SO_PROTOCOL, protocol))
		return "it is no socket; " UNIT_REMEDY;
	if (type != SOCK_STREAM || (*protocol != IPPROTO_TCP && *protocol != IPPROTO_MPTCP))
		return "it is neither MPTCP nor TCP; " UNIT_REMEDY;
	if (!get_option(fd, SO_ACCEPTCONN, &listens) || !listens)
		return "it doesn't listen; convertd takes sockets that do, not connections "
		       "(Accept=no)";
	return NULL;
}

static bool find_place(int fd, struct listen_address *where)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address), device_len = sizeof(where->device);

	memset(where, 0, sizeof(*where));
	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0 ||
	    !sockaddr_ip_from(&where->address, (const struct sockaddr *)&address, len))
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, where->device, &device_len) < 0)
		where->device[0] = '\0';
	where->inherited = fd;
	return true;
}

static const struct listen_address *find(const struct inherited *inherited,
					 const struct listen_address *where)
{
	for (size_t i = 0; i < inherited->count; i++)
		if (listen_address_equal(&inherited->where[i], where))
			return &inherited->where[i];
	return NULL;
}

/* @name: what LISTEN_FDNAMES calls it */
static bool inherit_one(struct inherited *inherited, int fd, const char *name,
			struct problems *problems)
{
	struct listen_address *where = &inherited->where[inherited->count];
	char quote[PROBLEM_QUOTE_MAX], text[SOCKADDR_STRLEN];
	int protocol = 0;
	const char *fault = find_fault(fd, &protocol);

	problems_quote(name, quote);
	if (!fault && !find_place(fd, where))
		fault = "it has no IPv4 or IPv6 address; " UNIT_REMEDY;
	if (!fault && find(inherited, where))
		/* Its queue would never be looked at. */
		fault = "another one has the same address; remove one of them";
	if (fault) {
		problems_add(problems, &nowhere, "inherited socket %d, %s: %s", fd, quote, fault);
		return false;
	}
	if (protocol == IPPROTO_TCP && sysctl_read("net.mptcp.enabled") > 0)
		log_warning("inherited socket %d, %s, %s is plain TCP: clients use one path only; set "
			    "SocketProtocol=mptcp in its unit (systemd 257)",
			    fd, quote, sockaddr_ip_format(&where->address, text));
	/* accept() must never block, and no child may have it. */
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
		problems_add(problems, &nowhere, "inherited socket %d, %s: %s", fd, quote,
			     strerror(errno));
		return false;
	}
	inherited->count++;
	return true;
}

/* Takes the next of "name:name:name", and leaves the rest at @names. */
static const char *next_name(const char **names, char buf[static NAME_MAX_LEN])
{
	size_t len = strcspn(*names, ":");
	size_t fits = len < NAME_MAX_LEN - 1 ? len : NAME_MAX_LEN - 1;

	memcpy(buf, *names, fits);
	buf[fits] = '\0';
	*names += len + ((*names)[len] == ':');
	return buf;
}

static bool inherit_all(struct inherited *inherited, const char *count_text, const char *names,
			struct problems *problems)
{
	char name[NAME_MAX_LEN], quote[PROBLEM_QUOTE_MAX], *end;
	unsigned long count = strtoul(count_text, &end, 10);

	if (*end || count > SETTINGS_LISTEN_MAX) {
		problems_add(problems, &nowhere, "LISTEN_FDS is %s, not a number of sockets up to %d",
			     problems_quote(count_text, quote), SETTINGS_LISTEN_MAX);
		return false;
	}
	for (unsigned long i = 0; i < count; i++)
		if (!inherit_one(inherited, FIRST + (int)i, next_name(&names, name), problems))
			return false;
	return true;
}

bool inherit_sockets(struct inherited *inherited, struct problems *problems)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	const char *names = getenv("LISTEN_FDNAMES");
	bool right = true;

	inherited->count = 0;
	if (pid && count && strtol(pid, NULL, 10) == (long)getpid())
		right = inherit_all(inherited, count, names ? names : "", problems);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return right;
}

bool inherit_join(const struct inherited *inherited, struct settings *settings,
		  struct problems *problems)
{
	struct listen_address told[SETTINGS_LISTEN_MAX];
	size_t told_count = settings->listen_is_default ? 0 : settings->listen_count;

	if (!inherited->count)
		return true;
	memcpy(told, settings->listen, sizeof(told));
	memset(settings->listen, 0, sizeof(settings->listen));
	memcpy(settings->listen, inherited->where, inherited->count * sizeof(told[0]));
	settings->listen_count = inherited->count;
	for (size_t i = 0; i < told_count; i++) {
		if (find(inherited, &told[i]))
			continue;
		if (settings->listen_count == SETTINGS_LISTEN_MAX) {
			problems_add(problems, &nowhere,
				     "%zu inherited sockets and %zu --listen are too many, the limit is "
				     "%d; [::]:PORT listens on all addresses of the host",
				     inherited->count, told_count, SETTINGS_LISTEN_MAX);
			return false;
		}
		settings->listen[settings->listen_count++] = told[i];
	}
	return true;
}
