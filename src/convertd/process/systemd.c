/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * systemd.c - tells the service manager about convertd's progress, and gives it descriptors for the next process: sd_notify(3)
 *
 * A message is one datagram to the Unix socket that NOTIFY_SOCKET names. systemd promises that this stays so, for
 * programs that do it without libsystemd (sd_notify(3), Standalone Implementations). libsystemd would bring five
 * compression and cryptography libraries into a daemon on the Internet's edge, and musl has none.
 */
#include "config.h"

#include "convertd/process/systemd.h"

#include "common/clock.h"
#include "common/os.h"
#include "convertd/config/convertd_settings.h"
#include "daemon/log.h"
#include "daemon/warden_message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Written by notify_init(), notify_relay() and notify_stop(), before there are threads or by the main thread alone. */
static struct service_manager manager;
static uint64_t watchdog_us; /* 0: not wanted */
static bool keeps;           /* the manager keeps descriptors for the next process */
static bool relays;          /* the manager listens to the main process, not to this one */

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

void notify_relay(void)
{
	relays = true;
}

void notify_stop(void)
{
	manager.len = 0;
}

void notify_forward(const char *text, int passed)
{
	int fd = relays ? -1 : service_manager_connect(&manager);

	if (relays)
		rights_notify(text, passed);
	if (fd < 0)
		return;
	fdpass_send(fd, text, strlen(text), passed);
	close(fd);
}

void notify_send(const char *format, ...)
{
	char text[NOTIFY_MAX];
	int saved = errno;
	va_list args;

	if (!manager.len)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	notify_forward(text, -1);
	errno = saved;
}

void notify_keep(int fd, const char *name)
{
	char text[NOTIFY_MAX];

	/* FDPOLL=0: keep it also while it is readable, as a listening socket with clients in its queue is. */
	snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	if (manager.len)
		notify_forward(text, fd);
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

/* The beginnings of the lines of a message, and whether a line has nothing behind it. */
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

bool notify_message_is_right(const char *text)
{
	bool right = *text != '\0';

	while (*text && right) {
		size_t len = strcspn(text, "\n");

		right = line_is_right(text, len);
		text += len + (text[len] == '\n');
	}
	return right;
}

/*
 * ----- sockets that this process is started with: sd_listen_fds(3) -----
 *
 * The problem. If the service manager keeps the sockets open while convertd restarts, no client is lost: clients wait
 * in the sockets' queues. The protocol has three variables: LISTEN_FDS is the number of descriptors from 3 on,
 * LISTEN_PID the process for which they are meant, and LISTEN_FDNAMES has a name for each. The top of this file says
 * why we don't use libsystemd.
 *
 * There are two kinds. A socket of a socket unit says where to listen, as --listen does, and convertd can't change
 * it: if it is unusable, this is an error, whose message says what to write into the unit. A kept socket was handed
 * to the manager by the process before (notify_keep()): it is used if --listen still names its address. With the kept
 * sockets comes the one that owns the rules for SYNs (withholding_rules_fd()). convertd.c describes the process before.
 */

/* The first descriptor that is passed: SD_LISTEN_FDS_START of sd_listen_fds(3). */
#define FIRST 3

/* The most descriptors that are taken: more than one for each worker and --listen, unless there are very many of both. */
#define SOCKETS_MAX 4096

#define NAME_MAX_LEN 64

#define UNIT_REMEDY "a socket unit for convertd has ListenStream=[::]:1234, SocketProtocol=mptcp"

#define PROTOCOL_REMEDY "set SocketProtocol=mptcp in its unit (systemd 257)"

/* For a socket that an earlier convertd made when the kernel had no MPTCP. */
#define KEPT_REMEDY "stop convertd, then start it; a restart keeps these sockets"

static const struct place nowhere;

static bool get_option(int fd, int option, int *value)
{
	socklen_t len = sizeof(*value);

	return getsockopt(fd, SOL_SOCKET, option, value, &len) == 0;
}

/* Returns why this descriptor can't accept clients; NULL if it can. */
static const char *find_fault(int fd, int *protocol)
{
	int type, listens;

	if (fcntl(fd, F_GETFD) < 0)
		return "it is not open; LISTEN_FDS is too high";
	if (!get_option(fd, SO_TYPE, &type) || !get_option(fd, SO_PROTOCOL, protocol))
		return "it isn't a socket; " UNIT_REMEDY;
	if (type != SOCK_STREAM || (*protocol != IPPROTO_TCP && *protocol != IPPROTO_MPTCP))
		return "it is neither MPTCP nor TCP; " UNIT_REMEDY;
	if (!get_option(fd, SO_ACCEPTCONN, &listens) || !listens)
		return "it doesn't listen; convertd takes sockets that do, not connections "
		       "(Accept=no)";
	return NULL;
}

static bool find_place(int fd, struct inherited_socket *socket)
{
	struct listen_address *where = &socket->where;
	struct sockaddr_storage address;
	socklen_t len = sizeof(address), device_len = sizeof(where->device);

	memset(socket, 0, sizeof(*socket));
	socket->fd = fd;
	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0 ||
	    !sockaddr_ip_from(&where->address, (const struct sockaddr *)&address, len))
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, where->device, &device_len) < 0)
		where->device[0] = '\0';
	return true;
}

static bool is_at(const struct inherited_socket *socket, const struct listen_address *where)
{
	return listen_address_equal(&socket->where, where);
}

bool inherit_is_unit(const struct inherited *inherited, const struct listen_address *where)
{
	for (size_t i = 0; i < inherited->count; i++)
		if (!inherited->sockets[i].kept && is_at(&inherited->sockets[i], where))
			return true;
	return false;
}

size_t inherit_find(const struct inherited *inherited, const struct listen_address *where,
		    int *fds, size_t max)
{
	bool unit = inherit_is_unit(inherited, where);
	size_t n = 0;

	for (size_t i = 0; i < inherited->count && n < max; i++)
		if (inherited->sockets[i].kept != unit && is_at(&inherited->sockets[i], where))
			fds[n++] = inherited->sockets[i].fd;
	return n;
}

/* Sets O_NONBLOCK, since accept() must never block, and FD_CLOEXEC. */
static bool prepare(int fd)
{
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0 &&
	       fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

/* Adds a listening socket, or an error to @problems if it is useless. @name: its name in LISTEN_FDNAMES */
static bool inherit_one(struct inherited *inherited, int fd, const char *name,
			struct problems *problems)
{
	struct inherited_socket *socket = &inherited->sockets[inherited->count];
	char quote[PROBLEM_QUOTE_MAX], text[SOCKADDR_STRLEN];
	bool kept = strcmp(name, NOTIFY_KEPT_NAME) == 0;
	int protocol = 0;
	const char *fault = find_fault(fd, &protocol);

	problems_quote(name, quote);
	if (!fault && !find_place(fd, socket))
		fault = "it has no IPv4 or IPv6 address; " UNIT_REMEDY;
	if (!fault && !kept && inherit_is_unit(inherited, &socket->where))
		/* Clients in this one's queue would never be accepted. */
		fault = "another one has the same address; remove one of them";
	if (!fault && !prepare(fd))
		fault = strerror(errno);
	if (fault) {
		problems_add(problems, &nowhere, "inherited socket %d, %s: %s", fd, quote, fault);
		return false;
	}
	if (protocol == IPPROTO_TCP && sysctl_read("net.mptcp.enabled") > 0)
		log_warning("inherited socket %d, %s, %s is plain TCP: clients use one path only; %s", fd,
			    quote, sockaddr_ip_format(&socket->where.address, text),
			    kept ? KEPT_REMEDY : PROTOCOL_REMEDY);
	socket->kept = kept;
	inherited->count++;
	return true;
}

/* Returns the next name of "name:name:name", and sets @names to the rest. */
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

	if (*end || count > SOCKETS_MAX) {
		problems_add(problems, &nowhere, "LISTEN_FDS is %s, not a number of sockets up to %d",
			     problems_quote(count_text, quote), SOCKETS_MAX);
		return false;
	}
	inherited->sockets = calloc(count + 1, sizeof(*inherited->sockets));
	if (!inherited->sockets) {
		problems_add(problems, &nowhere, "out of memory");
		return false;
	}
	for (unsigned long i = 0; i < count; i++) {
		int fd = FIRST + (int)i;

		next_name(&names, name);
		if (strcmp(name, NOTIFY_RULES_NAME) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
			inherited->rules = fd;
		else if (!inherit_one(inherited, fd, name, problems))
			return false;
	}
	return true;
}

/* Tells whether the descriptors of LISTEN_FDS are for this process. */
static bool is_addressed(void)
{
	const char *pid = getenv("LISTEN_PID");

	return pid && strtol(pid, NULL, 10) == (long)getpid();
}

static void reset(struct inherited *inherited)
{
	memset(inherited, 0, sizeof(*inherited));
	inherited->rules = -1;
}

bool inherit_sockets(struct inherited *inherited, struct problems *problems)
{
	const char *count = getenv("LISTEN_FDS"), *names = getenv("LISTEN_FDNAMES");
	bool right = true;

	reset(inherited);
	if (count && is_addressed())
		right = inherit_all(inherited, count, names ? names : "", problems);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return right;
}

int inherit_end(const struct inherited *inherited)
{
	int last = inherited->rules > STDERR_FILENO ? inherited->rules : STDERR_FILENO;

	for (size_t i = 0; i < inherited->count; i++)
		if (inherited->sockets[i].fd > last)
			last = inherited->sockets[i].fd;
	return last + 1;
}

static bool add_place(struct convertd_settings *settings, const struct listen_address *where,
		      struct problems *problems)
{
	if (settings->listen_count < LISTEN_ADDRESSES_MAX) {
		settings->listen[settings->listen_count++] = *where;
		return true;
	}
	problems_add(problems, &nowhere,
		     "inherited sockets and --listen together are more than %d; [::]:PORT listens on "
		     "all addresses of the host",
		     LISTEN_ADDRESSES_MAX);
	return false;
}

bool inherit_join(const struct inherited *inherited, struct convertd_settings *settings,
		  struct problems *problems)
{
	struct listen_address own[LISTEN_ADDRESSES_MAX];
	size_t own_count = settings->listen_count;

	memcpy(own, settings->listen, sizeof(own));
	memset(settings->listen, 0, sizeof(settings->listen));
	settings->listen_count = 0;
	for (size_t i = 0; i < inherited->count; i++)
		if (!inherited->sockets[i].kept &&
		    !add_place(settings, &inherited->sockets[i].where, problems))
			return false;
	if (settings->listen_count && settings->listen_is_default)
		return true;
	for (size_t i = 0; i < own_count; i++)
		if (!inherit_is_unit(inherited, &own[i]) && !add_place(settings, &own[i], problems))
			return false;
	return true;
}

/* ----- the end ----- */

void inherit_close_kept(struct inherited *inherited)
{
	size_t left = 0;

	if (inherited->rules >= 0)
		close(inherited->rules);
	inherited->rules = -1;
	for (size_t i = 0; i < inherited->count; i++)
		if (inherited->sockets[i].kept)
			close(inherited->sockets[i].fd);
		else
			inherited->sockets[left++] = inherited->sockets[i];
	inherited->count = left;
}

void inherit_fini(struct inherited *inherited)
{
	inherit_close_kept(inherited);
	for (size_t i = 0; i < inherited->count; i++)
		close(inherited->sockets[i].fd);
	free(inherited->sockets);
	reset(inherited);
}
