/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * names.c - who the application is told that it and its peer are
 *
 * getpeername(2) names the server, though the kernel's peer is the converter. Both names have the address family of the socket
 * that the application has made, whichever family the converter is reached by.
 */
#include "config.h"

#include "shim/socket/conn.h"
#include "shim/connect/conversion.h"
#include "shim/hooks/hook.h"
#include "shim/system/next.h"
#include "shim/system/usermem.h"

static int name_answer(const union sockaddr_ip *name, struct sockaddr *addr, socklen_t *len)
{
	return hook_result(usermem_answer_name(addr, len, name, sockaddr_ip_len(name)));
}

typedef int name_function(int fd, struct sockaddr *addr, socklen_t *len);

/*
 * Asks the kernel for a name, into memory of ours: it looks at the state of the socket before it looks at what the application
 * points to, and so do the hooks. Returns 0, or -1 with errno.
 */
static int name_ask(name_function *ask, int fd, union sockaddr_ip *name)
{
	socklen_t full = sizeof(*name);

	name->sa.sa_family = AF_UNSPEC;
	return ask(fd, &name->sa, &full);
}

/* Finds out which of this host's addresses a direct connection to @server would have. Returns false if there is no route. */
static bool route_source(const union sockaddr_ip *server, struct in6_addr *out)
{
	union sockaddr_ip found;
	socklen_t len = sizeof(found);
	int saved_errno = errno, fd;
	struct quiet quiet;
	bool is_known;

	quiet_all(&quiet);
	fd = next_socket_now(server->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	is_known = fd >= 0 && next.connect(fd, &server->sa, sockaddr_ip_len(server)) == 0 &&
		   next.getsockname(fd, &found.sa, &len) == 0;
	if (fd >= 0)
		next_close_now(fd);
	errno = saved_errno;
	quiet_end(&quiet);
	if (is_known)
		*out = sockaddr_ip_in6(&found);
	return is_known;
}

/*
 * Makes an IPv4 name of @name, which is of an IPv6 socket that stands in the place of the application's IPv4 socket. An IPv6
 * address that isn't v4-mapped becomes the dummy address of RFC 7600, which belongs to nobody.
 */
static void name_as_ipv4(union sockaddr_ip *name)
{
	static const struct in6_addr dummy = { .s6_addr = { [10] = 0xff, 0xff, 192, 0, 0, 8 } };
	struct in6_addr address = sockaddr_ip_in6(name);
	uint16_t port = sockaddr_ip_port(name);

	if (!sockaddr_ip_set(name, AF_INET, &address, port))
		sockaddr_ip_set(name, AF_INET, &dummy, port);
}

/* Is the server of another address family than the converter? @name: this host's, of the connection to the converter */
static bool is_of_other_family(const struct conn *conn, const union sockaddr_ip *name)
{
	return conn_peer(conn)->sa.sa_family != AF_UNSPEC && sockaddr_ip_port(name) &&
	       sockaddr_ip_is_v4(name) != sockaddr_ip_is_v4(conn_peer(conn));
}

/* The kernel's answer is right unless the socket has another family than the application's, or was connected to a v4-mapped address. */
HOOK(int, getsockname, (int fd, struct sockaddr *addr, socklen_t *len))
{
	const struct conn *conn = conn_unverified(fd);
	union sockaddr_ip name;
	struct in6_addr source;

	if (!conn || !(conn->socket.shown_ipv4 || conn->socket.was_mapped) || conn_of(fd) != conn)
		return next.getsockname(fd, addr, len);
	if (name_ask(next.getsockname, fd, &name) < 0)
		return -1;
	if (is_of_other_family(conn, &name) && route_source(conn_peer(conn), &source))
		sockaddr_ip_set(&name, AF_INET6, &source, sockaddr_ip_port(&name));
	if (conn->socket.shown_ipv4)
		name_as_ipv4(&name);
	return name_answer(&name, addr, len);
}

/*
 * What the kernel says is only good if no other thread has begun a connection in between, or ended one: it may be the
 * converter's name.
 */
HOOK(int, getpeername, (int fd, struct sockaddr *addr, socklen_t *len))
{
	struct conn *conn = conn_maybe(fd) ? conn_of(fd) : NULL;
	union sockaddr_ip connected;
	enum conn_phase phase;
	int ret;

	if (!conn)
		return next.getpeername(fd, addr, len);
	do {
		if (conn_phase(conn) == CONN_HELD)
			return name_answer(conn_peer(conn), addr, len);
		if (conn_is_pending(conn) && phase_in(conversion_progress(conn, fd), PHASES_PENDING))
			return conn_has(conn, CONN_TOLD_CONNECTED) ? name_answer(conn_peer(conn), addr, len) : hook_result(-ENOTCONN);
		phase = conn_phase(conn);
		ret = name_ask(next.getpeername, fd, &connected);
	} while (conn_phase(conn) != phase || phase == CONN_HELD || phase_in(phase, PHASES_PENDING));
	if (ret < 0) /* of one that was converted, too: it has been reset */
		return -1;
	if (phase_in(phase, PHASE(DONE) | PHASES_CONFIRMED))
		connected = *conn_peer(conn);
	else if (conn->socket.shown_ipv4)
		name_as_ipv4(&connected);
	return name_answer(&connected, addr, len);
}
