/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listening.c - the sockets on which clients of one address arrive, and each worker's part of them
 *
 * A listener has MPTCP sockets, which accept plain TCP clients as well, or TCP sockets if its owner or the kernel has no MPTCP. Fast Open
 * without a cookie lets the first SYN carry the request: the daemon's judge proves addresses by its own means (RFC 8803 Section 6, note 1).
 *
 * Each worker has a socket of its own, bound to the same address by SO_REUSEPORT: the kernel spreads clients over them by a hash, and a new
 * client wakes one thread. The kernel finds the connection of an MPTCP join by its token, on any of the sockets. If fewer sockets than
 * workers were inherited, several workers share one; if more, a worker has several. We bind the first socket without SO_REUSEPORT, so that
 * we don't share the address of another convertd unnoticed.
 *
 * When the process is out of descriptors, accept() fails, but the client stays in the queue and the socket stays readable: the loop would
 * spin. So the acceptor pauses, and a timer lets it try again; sessions that end in the meantime free descriptors.
 */
#include "config.h"

#include "serve/listening.h"

#include "common/os.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/warden_message.h"
#include "serve/session.h"
#include "serve/worker.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* One or several workers use it. */
struct listener_socket {
	int fd;            /* -1: closed */
	atomic_uint users; /* acceptors */
};

struct listener {
	struct listen_address where;
	bool mptcp;
	bool fastopen;
	bool congestion_set; /* the sockets don't follow the system's setting any more */
	bool inherited;
	size_t count; /* of sockets */
	size_t workers;
	size_t acceptor_count;       /* as many as workers, or as sockets if these are more */
	struct acceptor **acceptors; /* of the workers in turn; NULL: it has stopped */
	struct listener_socket sockets[];
};

static const int on = 1;

/* Opens the socket that is wanted, or a TCP socket in place of an MPTCP one, with one warning for the whole process. */
static int open_socket(int family, bool *mptcp)
{
	static bool warned;
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, *mptcp ? IPPROTO_MPTCP : IPPROTO_TCP);

	if (fd >= 0 || !*mptcp || (errno != EPROTONOSUPPORT && errno != ENOPROTOOPT && errno != EINVAL))
		return fd;
	*mptcp = false;
	if (!warned)
		log_warning("no MPTCP sockets (%s): listening with TCP, clients use one path only; "
			    "the kernel needs CONFIG_MPTCP and net.mptcp.enabled=1; restart "
			    "convertd then",
			    strerror(errno));
	warned = true;
	return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
}

/* Sets options that accepted sockets inherit, and Fast Open; if the kernel lacks that, logs one warning for the whole process. */
static void set_options(struct listener *listener, int fd)
{
	static const int backlog = LISTENER_BACKLOG, retries = 1;
	static bool warned;

	/* The value that we want for net.ipv4.tcp_synack_retries; MPTCP sockets lack the option. */
	setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof(retries));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!listener->mptcp)
		setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)); /* relay_set_tcp() */
	listener->fastopen =
		setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN, &backlog, sizeof(backlog)) == 0 &&
		setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof(on)) == 0;
	if (listener->fastopen || warned)
		return;
	log_warning("no Fast Open without cookies (%s): each connection takes one more round trip; it needs Linux 4.15, for MPTCP 6.2",
		    strerror(errno));
	warned = true;
}

static const char *bind_remedy(int error)
{
	switch (error) {
	case EADDRINUSE:
		return "another process listens there (end it first, if it is a convertd to be replaced), or "
		       "another --listen contains it";
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

static void tell_problem(struct problems *problems, const struct listen_address *where, int error)
{
	static const struct place place = { .name = "listen" };
	char text[LISTEN_ADDRESS_STRLEN];

	problems_add(problems, &place, "%s: %s: %s", listen_address_format(where, text), strerror(error),
		     bind_remedy(error));
}

/* Returns 0 or -errno. */
static int socket_bind(struct listener *listener, int fd)
{
	union sockaddr_ip address = listener->where.address;
	const char *device = listener->where.device;
	socklen_t device_len = (socklen_t)strlen(device);
	int v6only = !IN6_IS_ADDR_UNSPECIFIED(&address.in6.sin6_addr);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (address.sa.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof(v6only));
	if (device_len && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, device_len) < 0)
		return -errno;
	if (device_len && address.sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&address.in6.sin6_addr))
		address.in6.sin6_scope_id = if_nametoindex(device);
	return rights_bind(fd, &address);
}

/* Opens and binds a socket that can share its address with the others. Returns 0 or -errno. */
static int socket_open(struct listener *listener, struct listener_socket *socket, bool first)
{
	bool alone = listener->count == 1;
	int error;

	socket->fd = open_socket(listener->where.address.sa.sa_family, &listener->mptcp);
	if (socket->fd < 0)
		return -errno;
	set_options(listener, socket->fd);
	if (!first && setsockopt(socket->fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)
		return -errno;
	error = socket_bind(listener, socket->fd);
	if (!error && first && !alone &&
	    setsockopt(socket->fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)
		error = -errno;
	return error;
}

/*
 * Duplicates an inherited socket, so that its maker keeps it when this listener closes the duplicate. Returns 0 or -errno.
 */
static int socket_inherit(struct listener *listener, struct listener_socket *socket, int fd)
{
	int protocol = 0;
	socklen_t len = sizeof(protocol);

	socket->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (socket->fd < 0 ||
	    getsockopt(socket->fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) < 0)
		return -errno;
	listener->mptcp = protocol == IPPROTO_MPTCP;
	set_options(listener, socket->fd);
	return 0;
}

/* ----- acceptors: a worker's part of a listener, which accepts clients ----- */

/* Clients accepted in one round at most, so that sessions get their turn. */
#define ACCEPTS_PER_ROUND 64

/* Its two events stand behind the struct: their size is known at run time only (event_get_struct_event_size()). */
struct acceptor {
	struct session_pool *pool;
	struct listener_socket *socket;
	bool mptcp;     /* clients may use Multipath TCP */
	unsigned batch; /* clients to accept in the next round */
};

static struct event *readable_event(struct acceptor *acceptor)
{
	return (struct event *)(acceptor + 1);
}

/* The timer that ends a pause; it is pending while there is one. */
static struct event *resume_event(struct acceptor *acceptor)
{
	return (struct event *)((char *)(acceptor + 1) + event_get_struct_event_size());
}

static void acceptor_pause(struct acceptor *acceptor, int error)
{
	static const struct timeval pause = { .tv_usec = 100 * 1000 };

	event_del(readable_event(acceptor));
	event_add(resume_event(acceptor), &pause);
	metrics_add(acceptor->pool->context.metrics, METRIC_ACCEPT_PAUSES, 1);
	log_shortage(error, "clients have to wait");
}

/* Accepts the next client. Returns false if there is none, or none can be accepted now. */
static bool accept_one(struct acceptor *acceptor)
{
	union sockaddr_ip client = { 0 };
	socklen_t len = sizeof(client);
	const int accepted = accept4(acceptor->socket->fd, &client.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (accepted >= 0) {
		session_accept(acceptor->pool, accepted, acceptor->mptcp, &client);
		return true;
	}
	switch (errno) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		acceptor_pause(acceptor, errno);
		return false;
	case EAGAIN:
		return false;
	default:
		/* accept(2) also reports errors of the client's connection. */
		return true;
	}
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct acceptor *acceptor = arg;

	(void)fd;
	(void)what;
	/* If clients come one at a time, a second accept() would be in vain: so the number of calls grows with the queue. */
	for (unsigned i = 0; i < acceptor->batch; i++) {
		if (accept_one(acceptor))
			continue;
		acceptor->batch = i ? i : 1;
		return;
	}
	if (acceptor->batch < ACCEPTS_PER_ROUND)
		acceptor->batch *= 2;
}

static void acceptor_start(struct acceptor *acceptor)
{
	if (event_add(readable_event(acceptor), NULL) < 0)
		acceptor_pause(acceptor, ENOMEM);
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	acceptor_start(arg);
}

static struct acceptor *acceptor_create(struct listener *listener, size_t number, const struct worker_context *worker)
{
	struct acceptor *acceptor =
		calloc(1, sizeof(*acceptor) + 2 * event_get_struct_event_size());

	if (!acceptor)
		return NULL;
	acceptor->pool = worker->pool;
	acceptor->batch = 1;
	acceptor->mptcp = listener->mptcp;
	acceptor->socket = &listener->sockets[number % listener->count];
	atomic_fetch_add(&acceptor->socket->users, 1);
	event_assign(readable_event(acceptor), worker->base, acceptor->socket->fd,
		     EV_READ | EV_PERSIST, on_readable, acceptor);
	event_assign(resume_event(acceptor), worker->base, -1, 0, on_resume, acceptor);
	return acceptor;
}

/* Closes the socket if this is the last acceptor that uses it: until then the others accept its clients. */
static void release_socket(struct acceptor *acceptor, bool drain)
{
	struct listener_socket *socket = acceptor->socket;

	if (atomic_fetch_sub(&socket->users, 1) != 1)
		return;
	for (int i = 0; drain && i < LISTENER_BACKLOG && accept_one(acceptor); i++)
		;
	close(socket->fd);
	socket->fd = -1;
}

static void acceptor_destroy(struct acceptor *acceptor, bool drain)
{
	if (!acceptor)
		return;
	event_del(readable_event(acceptor));
	release_socket(acceptor, drain);
	event_del(resume_event(acceptor));
	free(acceptor);
}

void listener_accept(struct listener *listener, const struct worker_context *worker)
{
	for (size_t i = worker->number; i < listener->acceptor_count; i += listener->workers)
		acceptor_start(listener->acceptors[i]);
}

void listener_stop(struct listener *listener, const struct worker_context *worker, bool drain)
{
	for (size_t i = worker->number; i < listener->acceptor_count; i += listener->workers) {
		acceptor_destroy(listener->acceptors[i], drain);
		listener->acceptors[i] = NULL;
	}
}

/* ----- all of a listener ----- */

struct listener *listener_create(const struct listen_address *where, bool mptcp, const struct workers *workers, const int *inherited,
				 size_t inherited_count, struct problems *problems)
{
	const size_t workers_number = workers_count(workers), count = inherited_count ? inherited_count : workers_number;
	struct listener *listener = calloc(1, sizeof(*listener) + count * sizeof(struct listener_socket));
	int error;

	if (!listener) {
		tell_problem(problems, where, ENOMEM);
		return NULL;
	}
	listener->where = *where;
	listener->mptcp = mptcp;
	listener->inherited = inherited_count > 0;
	listener->count = count;
	listener->workers = workers_number;
	listener->acceptor_count = count > workers_number ? count : workers_number;
	for (size_t i = 0; i < count; i++)
		listener->sockets[i].fd = -1;
	listener->acceptors = calloc(listener->acceptor_count, sizeof(listener->acceptors[0]));
	error = listener->acceptors ? 0 : -ENOMEM;
	for (size_t i = 0; i < count && !error; i++)
		error = inherited_count ?
				socket_inherit(listener, &listener->sockets[i], inherited[i]) :
				socket_open(listener, &listener->sockets[i], i == 0);
	for (size_t i = 0; i < listener->acceptor_count && !error; i++) {
		listener->acceptors[i] = acceptor_create(listener, i, workers_context(workers, i % workers_number));
		error = listener->acceptors[i] ? 0 : -ENOMEM;
	}
	if (!error)
		return listener;
	tell_problem(problems, where, -error);
	listener_destroy(listener);
	return NULL;
}

void listener_destroy(struct listener *listener)
{
	if (!listener)
		return;
	for (size_t i = 0; listener->acceptors && i < listener->acceptor_count; i++)
		acceptor_destroy(listener->acceptors[i], false);
	for (size_t i = 0; i < listener->count; i++)
		if (listener->sockets[i].fd >= 0)
			close(listener->sockets[i].fd);
	free(listener->acceptors);
	free(listener);
}

size_t listener_sockets(const struct listener *listener)
{
	return listener->count;
}

int listener_socket(const struct listener *listener, size_t index)
{
	return listener->sockets[index].fd;
}

bool listener_listen(struct listener *listener, struct problems *problems)
{
	for (size_t i = 0; i < listener->count; i++) {
		if (listen(listener->sockets[i].fd, LISTENER_BACKLOG) == 0)
			continue;
		tell_problem(problems, &listener->where, errno);
		return false;
	}
	return true;
}

void listener_limit_syn_data(struct listener *listener, unsigned pending)
{
	unsigned half = pending / 2 + pending % 2;
	unsigned share = half / (unsigned)listener->count + (half % listener->count != 0);
	int queue = pending && share < LISTENER_BACKLOG ? (int)share : LISTENER_BACKLOG;

	for (size_t i = 0; i < listener->count; i++)
		setsockopt(listener->sockets[i].fd, IPPROTO_TCP, TCP_FASTOPEN, &queue,
			   sizeof(queue));
}

void listener_set_congestion(struct listener *listener, const char *name)
{
	char text[LISTEN_ADDRESS_STRLEN];

	/* A socket that we have never set follows later changes of the sysctl. */
	if (!*name && !listener->congestion_set)
		return;
	listener->congestion_set = true;
	for (size_t i = 0; i < listener->count; i++) {
		int error = congestion_set(listener->sockets[i].fd, name);

		if (!error)
			continue;
		log_warning("%s: the congestion control stays as it was: %s",
			    listen_address_format(&listener->where, text), strerror(-error));
		return;
	}
}

/* Only a restart can replace a TCP socket by an MPTCP one. Another process makes inherited sockets, so we promise no such thing of them. */
static const char *describe_protocol(const struct listener *listener)
{
	if (listener->mptcp)
		return "MPTCP";
	return !listener->inherited && sysctl_read("net.mptcp.enabled") > 0 ? "TCP until a restart" :
									       "TCP";
}

bool listener_takes_syn_data(const struct listener *listener)
{
	int sysctl = sysctl_read("net.ipv4.tcp_fastopen");

	return listener->fastopen && (sysctl < 0 || sysctl & LISTENER_SYSCTL_FASTOPEN);
}

const char *listener_describe(const struct listener *listener,
			      char buf[static LISTENER_DESCRIPTION_MAX])
{
	char text[LISTEN_ADDRESS_STRLEN];

	snprintf(buf, LISTENER_DESCRIPTION_MAX, "%s (%s%s%s)", listen_address_format(&listener->where, text),
		 describe_protocol(listener), listener_takes_syn_data(listener) ? ", Fast Open" : "",
		 listener->inherited ? ", inherited" : "");
	return buf;
}
