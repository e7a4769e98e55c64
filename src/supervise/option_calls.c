/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * option_calls.c - answers options, listen() and getpeername() as the program's own TCP socket would
 *
 * The kernel runs all calls for other sockets or options: they do no harm, even if the program has changed them meanwhile.
 */
#include "config.h"

#include "supervise/calls.h"

#include "common/socket_options.h"
#include "supervise/connection.h"
#include "supervise/permission.h"
#include "supervise/sockets.h"
#include "supervise/stand_in.h"
#include "supervise/tracee.h"

#include <errno.h>
#include <unistd.h>

#define VALUE_MAX 16 /* bytes of a value; all these options are an int, and the kernel accepts longer values */

/* Returns a duplicate, to be closed, of the call's socket if it is an MPTCP socket that the supervisor made; else -1. */
static int own_socket(const struct call *call)
{
	int fd = tracee_get_fd(call->tid, (int)call->args[0]);

	if (fd < 0 || socket_is_ours(fd))
		return fd;
	close(fd);
	return -1;
}

/* Finds the socket and the option. Returns a duplicate of the socket, or -1 after it has let the call go. */
static int find(const struct call *call, int *index)
{
	int fd;

	*index = socket_advice_index((int)call->args[1], (int)call->args[2]);
	fd = *index < 0 ? -1 : own_socket(call);
	if (fd < 0)
		call_continue(call, -1);
	return fd;
}

void call_setsockopt(const struct call *call)
{
	const int given = (int)call->args[4];
	const socklen_t len = given > VALUE_MAX ? VALUE_MAX : (socklen_t)given;
	char value[VALUE_MAX];
	int index, fd = find(call, &index);

	if (fd < 0)
		return;
	if (given < 0)
		call_answer(call, fd, EINVAL);
	else if (!tracee_read(call->tid, call->args[3], value, len))
		call_answer(call, fd, EFAULT);
	else if (!listener_is_waiting(supervision.listener, call))
		close(fd);
	else
		call_answer(call, fd, advice_set(fd, index, value, len));
}

void call_getsockopt(const struct call *call)
{
	char value[VALUE_MAX];
	int index, error, fd = find(call, &index);
	socklen_t room = 0, len;

	if (fd < 0)
		return;
	if (!tracee_read(call->tid, call->args[4], &room, sizeof(room)) || (int)room < 0) {
		call_answer(call, fd, (int)room < 0 ? EINVAL : EFAULT);
		return;
	}
	len = room < VALUE_MAX ? room : VALUE_MAX;
	error = advice_get(fd, index, value, &len);
	if (!listener_is_waiting(supervision.listener, call)) {
		close(fd);
		return;
	}
	if (!error && (!tracee_write(call->tid, call->args[3], value, len) ||
		       !tracee_write(call->tid, call->args[4], &len, sizeof(len))))
		error = EFAULT;
	call_answer(call, fd, error);
}

/*
 * Makes a TCP socket listen in the place of @fd. Both have the same address until the program's socket is closed, so both have SO_REUSEADDR
 * for that moment. Returns 0 or -errno.
 */
static int listen_by_tcp(const struct call *call, int fd)
{
	const int reuse = kernel_get(fd, SOL_SOCKET, SO_REUSEADDR, 0);
	int made = stand_in_make(call, fd, kernel_get(fd, SOL_SOCKET, SO_DOMAIN, AF_INET), false, kernel_is_bound(fd), false), ret;

	if (made < 0)
		return made;
	kernel_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	kernel_set(made, SOL_SOCKET, SO_REUSEADDR, 1);
	ret = listen(made, (int)call->args[1]) == 0 ? 0 : -errno;
	kernel_set(fd, SOL_SOCKET, SO_REUSEADDR, reuse);
	kernel_set(made, SOL_SOCKET, SO_REUSEADDR, reuse);
	if (ret == 0)
		ret = stand_in_put(supervision.listener, call, fd, made);
	close(made);
	return ret;
}

/*
 * A program that listens gets the TCP socket that it asked for: we convert only connections that it makes itself. If we can't replace the
 * socket, the program listens on the MPTCP one.
 */
void call_listen(const struct call *call)
{
	int fd = own_socket(call);

	if (fd >= 0 && kernel_tcp_info(fd).tcpi_state == TCPINFO_CLOSE && !permission_denial(call->tid, true) &&
	    listener_is_waiting(supervision.listener, call) && listen_by_tcp(call, fd) == 0) {
		call_answer(call, fd, 0);
		return;
	}
	call_continue(call, fd);
}

/* --- getpeername() --- */

/* Writes the server's address as getpeername(2) does: cut to the room, with its whole length. */
static void answer_peer(const struct call *call, const union sockaddr_ip *server)
{
	const socklen_t whole = sockaddr_ip_len(server);
	socklen_t room;

	if (!tracee_read(call->tid, call->args[2], &room, sizeof(room)) || (int)room < 0)
		call_answer(call, -1, (int)room < 0 ? EINVAL : EFAULT);
	else if (!listener_is_waiting(supervision.listener, call))
		return;
	else if (!tracee_write(call->tid, call->args[1], server, room < whole ? room : whole) ||
		 !tracee_write(call->tid, call->args[2], &whole, sizeof(whole)))
		call_answer(call, -1, EFAULT);
	else
		call_answer(call, -1, 0);
}

void call_getpeername(const struct call *call)
{
	int domain, protocol, fd = tracee_get_fd(call->tid, (int)call->args[0]);
	const union sockaddr_ip *server = NULL;
	union sockaddr_ip now;
	socklen_t len = sizeof(now);

	if (fd >= 0 && socket_is_tcp(fd, &domain, &protocol) && getpeername(fd, &now.sa, &len) == 0)
		server = peers_find(fd);
	if (!server) {
		call_continue(call, fd);
		return;
	}
	close(fd);
	answer_peer(call, server);
}
