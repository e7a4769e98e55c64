/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listener.c - accept clients on one address
 *
 * A listener is an MPTCP socket, which takes plain TCP clients as well, or a TCP socket where the
 * kernel has no MPTCP. Fast Open without a cookie lets the first SYN carry the request: the
 * Convert Protocol replaces TFO's cookie by its own TLV (RFC 8803 Section 6, note 1).
 *
 * Out of descriptors, accept() fails while the client stays in the queue and the socket stays
 * readable: the loop would spin. So the listener pauses, and a timer lets it try again; sessions
 * that end in the meantime free descriptors.
 */
#include "config.h"

#include "convertd/listener.h"

#include "common/sysctl.h"
#include "convertd/log.h"
#include "convertd/metrics.h"
#include "convertd/session.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Connections that wait for accept(), and those of them that have data in the SYN. */
#define BACKLOG 4096

/* Clients accepted in one round, so that sessions get their turn. */
#define ACCEPTS_PER_ROUND 64

/* The sysctl's bit that lets servers use Fast Open (ip-sysctl.rst). */
#define SYSCTL_FASTOPEN_SERVER 0x2

struct listener {
	struct listen_address where;
	unsigned device_index; /* 0: no interface */
	int fd;
	bool mptcp;
	bool fastopen;
	struct event *readable;
	struct event *resume; /* pending: accepting is paused */
	struct session_pool *pool;
	struct log_limit limit;
};

static const int on = 1;

void listener_check_sysctls(void)
{
	int fastopen = sysctl_read("net.ipv4.tcp_fastopen");

	if (fastopen >= 0 && !(fastopen & SYSCTL_FASTOPEN_SERVER))
		log_warning("net.ipv4.tcp_fastopen is %d: the kernel drops data in SYNs, each "
			    "connection takes a round trip more and MPTCP clients fall back to TCP; "
			    "set it with: sysctl -w net.ipv4.tcp_fastopen=%d",
			    fastopen, fastopen | SYSCTL_FASTOPEN_SERVER);
	if (sysctl_read("net.mptcp.enabled") == 0)
		log_warning("net.mptcp.enabled is 0: clients use one path only; "
			    "set it with: sysctl -w net.mptcp.enabled=1");
}

/* An MPTCP socket, or else a TCP one with one warning for the whole process. */
static int open_socket(int family, bool *mptcp)
{
	static bool warned;
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_MPTCP);

	*mptcp = fd >= 0;
	if (fd >= 0 || (errno != EPROTONOSUPPORT && errno != ENOPROTOOPT && errno != EINVAL))
		return fd;
	if (!warned)
		log_warning("no MPTCP sockets (%s): listening with TCP, clients use one path only; "
			    "the kernel needs CONFIG_MPTCP and net.mptcp.enabled=1",
			    strerror(errno));
	warned = true;
	return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
}

/* Options that accepted sockets inherit, and Fast Open. */
static void set_options(struct listener *listener)
{
	static const int backlog = BACKLOG;
	int fd = listener->fd;
	const union sockaddr_ip *address = &listener->where.address;
	int v6only = !IN6_IS_ADDR_UNSPECIFIED(&address->in6.sin6_addr);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (address->sa.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof(v6only));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	listener->fastopen =
		setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN, &backlog, sizeof(backlog)) == 0 &&
		setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof(on)) == 0;
	if (!listener->fastopen)
		log_warning("no Fast Open without cookies (%s): each connection takes a round trip "
			    "more; it needs Linux 4.15, for MPTCP 6.2",
			    strerror(errno));
}

static const char *bind_remedy(int error)
{
	switch (error) {
	case EADDRINUSE:
		return "another process listens there, or another --listen contains it";
	case EADDRNOTAVAIL:
		return "this host has no such address (see: ip address)";
	case EACCES:
		return "ports below 1024 need CAP_NET_BIND_SERVICE";
	case ENODEV:
		return "this host has no such interface (see: ip link)";
	default:
		return "choose another address with --listen";
	}
}

/* "[::]:1234", "192.0.2.1%eth0:1234"; returns @buf. */
static const char *where_format(const struct listen_address *where,
				char buf[static SOCKADDR_STRLEN + IFNAMSIZ])
{
	char text[SOCKADDR_STRLEN], *colon;

	sockaddr_ip_format(&where->address, text);
	colon = strrchr(text, ':');
	snprintf(buf, SOCKADDR_STRLEN + IFNAMSIZ, "%.*s%s%s%s", (int)(colon - text), text,
		 where->device[0] ? "%" : "", where->device, colon);
	return buf;
}

static void tell_problem(struct problems *problems, const struct listen_address *where, int error)
{
	static const struct place place = { .name = "listen" };
	char text[SOCKADDR_STRLEN + IFNAMSIZ];

	problems_add(problems, &place, "%s: %s: %s", where_format(where, text), strerror(error),
		     bind_remedy(error));
}

/* Returns 0 or -errno. */
static int listener_bind(struct listener *listener)
{
	union sockaddr_ip address = listener->where.address;
	const char *device = listener->where.device;
	socklen_t device_len = (socklen_t)strlen(device);

	if (device_len) {
		listener->device_index = if_nametoindex(device);
		if (!listener->device_index)
			return -ENODEV;
		if (setsockopt(listener->fd, SOL_SOCKET, SO_BINDTODEVICE, device, device_len) < 0)
			return -errno;
		if (address.sa.sa_family == AF_INET6 &&
		    IN6_IS_ADDR_LINKLOCAL(&address.in6.sin6_addr))
			address.in6.sin6_scope_id = listener->device_index;
	}
	return bind(listener->fd, &address.sa, sockaddr_ip_len(&address)) < 0 ? -errno : 0;
}

struct listener *listener_create(const struct listen_address *where, struct problems *problems)
{
	struct listener *listener = calloc(1, sizeof(*listener));
	int error = 0;

	if (!listener) {
		tell_problem(problems, where, ENOMEM);
		return NULL;
	}
	listener->where = *where;
	listener->fd = open_socket(where->address.sa.sa_family, &listener->mptcp);
	if (listener->fd < 0) {
		error = -errno;
	} else {
		set_options(listener);
		error = listener_bind(listener);
	}
	if (!error)
		return listener;
	tell_problem(problems, where, -error);
	listener_destroy(listener);
	return NULL;
}

bool listener_is_at(const struct listener *listener, const struct listen_address *where)
{
	return sockaddr_ip_equal(&listener->where.address, &where->address) &&
	       strcmp(listener->where.device, where->device) == 0 &&
	       (!where->device[0] || if_nametoindex(where->device) == listener->device_index);
}

void listener_destroy(struct listener *listener)
{
	if (!listener)
		return;
	if (listener->readable)
		event_free(listener->readable);
	if (listener->resume)
		event_free(listener->resume);
	if (listener->fd >= 0)
		close(listener->fd);
	free(listener);
}

static void listener_pause(struct listener *listener, int error)
{
	static const struct timeval pause = { .tv_usec = 100 * 1000 };
	unsigned suppressed;
	char text[SOCKADDR_STRLEN + IFNAMSIZ];

	event_del(listener->readable);
	event_add(listener->resume, &pause);
	metrics_add(listener->pool->metrics, METRIC_ACCEPT_PAUSES, 1);
	if (log_limit_pass(&listener->limit, &suppressed))
		log_warning("%s: clients have to wait: %s (%u times more since the last such line); "
			    "raise the limit of open files (LimitNOFILE=, ulimit -Hn)",
			    where_format(&listener->where, text), strerror(error),
			    suppressed);
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct listener *listener = arg;

	(void)fd;
	(void)what;
	event_add(listener->readable, NULL);
}

/* Takes the next client out of the queue; false: there is none, or none can be taken now. */
static bool accept_one(struct listener *listener)
{
	union sockaddr_ip client = { 0 };
	socklen_t len = sizeof(client);
	int accepted = accept4(listener->fd, &client.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (accepted >= 0) {
		session_accept(listener->pool, accepted, &client);
		return true;
	}
	switch (errno) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		listener_pause(listener, errno);
		return false;
	case EAGAIN:
		return false;
	default:
		/* The client's own errors are reported here as well: accept(2). */
		return true;
	}
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct listener *listener = arg;

	(void)fd;
	(void)what;
	for (int i = 0; i < ACCEPTS_PER_ROUND && accept_one(listener); i++)
		;
}

void listener_set_pending(struct listener *listener, unsigned pending)
{
	int queue = pending && pending / 2 < BACKLOG ? (int)(pending + 1) / 2 : BACKLOG;

	setsockopt(listener->fd, IPPROTO_TCP, TCP_FASTOPEN, &queue, sizeof(queue));
}

void listener_drain(struct listener *listener)
{
	for (int i = 0; i < BACKLOG && accept_one(listener); i++)
		;
}

bool listener_start(struct listener *listener, struct event_base *base, struct session_pool *pool,
		    struct problems *problems)
{
	listener->pool = pool;
	listener->readable =
		event_new(base, listener->fd, EV_READ | EV_PERSIST, on_readable, listener);
	listener->resume = event_new(base, -1, 0, on_resume, listener);
	if (!listener->readable || !listener->resume)
		errno = ENOMEM;
	else if (listen(listener->fd, BACKLOG) == 0 && event_add(listener->readable, NULL) == 0)
		return true;
	tell_problem(problems, &listener->where, errno);
	return false;
}

const char *listener_describe(const struct listener *listener,
			      char buf[static LISTENER_DESCRIPTION_MAX])
{
	int sysctl = sysctl_read("net.ipv4.tcp_fastopen");
	bool fastopen = listener->fastopen && (sysctl < 0 || sysctl & SYSCTL_FASTOPEN_SERVER);
	char text[SOCKADDR_STRLEN + IFNAMSIZ];

	snprintf(buf, LISTENER_DESCRIPTION_MAX, "%s (%s%s)", where_format(&listener->where, text),
		 listener->mptcp ? "MPTCP" : "TCP", fastopen ? ", Fast Open" : "");
	return buf;
}
