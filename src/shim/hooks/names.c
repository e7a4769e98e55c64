/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * names.c - who the application is told that it and its peer are
 *
 * The peer is the server, and both have the family of the application's socket, whichever the converter
 * is reached by.
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

/* The kernel's answer, or -1: the state of the socket comes first, and then what the application points to. */
static int name_ask(name_function *ask, int fd, union sockaddr_ip *name)
{
	socklen_t full = sizeof(*name);

	name->sa.sa_family = AF_UNSPEC;
	return ask(fd, &name->sa, &full);
}

/* This host's address on the way to @server, as a direct connection would have it. */
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
 * @name, of a socket that is an IPv6 one instead of the application's IPv4 one, as an IPv4 one's. An
 * address that IPv4 hasn't is shown as the dummy address of RFC 7600, which is nobody's.
 */
static void name_as_ipv4(union sockaddr_ip *name)
{
	static const struct in6_addr dummy = { .s6_addr = { [10] = 0xff, 0xff, 192, 0, 0, 8 } };
	struct in6_addr address = sockaddr_ip_in6(name);
	uint16_t port = sockaddr_ip_port(name);

	if (!sockaddr_ip_set(name, AF_INET, &address, port))
		sockaddr_ip_set(name, AF_INET, &dummy, port);
}

/* Is the connection to the server of the other family than the one to the converter, whose @name this is? */
static bool is_of_other_family(const struct conn *conn, const union sockaddr_ip *name)
{
	return conn_peer(conn)->sa.sa_family != AF_UNSPEC && sockaddr_ip_port(name) &&
	       sockaddr_ip_is_v4(name) != sockaddr_ip_is_v4(conn_peer(conn));
}

/* Of an IPv6 socket that isn't connected over IPv4, and of others that are what they seem: the kernel's. */
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
	} while (conn_phase(conn) != phase || phase == CONN_HELD || conn_is_pending(conn));
	if (ret < 0) /* of one that was converted, too: it has been reset */
		return -1;
	if (phase_in(phase, PHASE(DONE) | PHASES_CONFIRMED))
		connected = *conn_peer(conn);
	else if (conn->socket.shown_ipv4)
		name_as_ipv4(&connected);
	return name_answer(&connected, addr, len);
}
