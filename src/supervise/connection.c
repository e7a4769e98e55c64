/* SPDX-License-Identifier: BSD-3-Clause */
/* connection.c - a connection that a supervised program is making: what is known of it until its call is answered */
#include "config.h"

#include "supervise/connection.h"

#include "supervise/tracee.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

struct supervision supervision;

/*
 * A registration ends with the last descriptor for the file, wherever that is, and of the program's socket the program has one:
 * so it is taken away by hand.
 */
static void unwatch(struct connection *connection)
{
	if (connection->watched)
		epoll_ctl(supervision.epoll, EPOLL_CTL_DEL, connection->sock, NULL);
	connection->watched = false;
}

void connection_watch(struct connection *connection)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = connection };

	if (!connection->watched)
		connection->watched = epoll_ctl(supervision.epoll, EPOLL_CTL_ADD, connection->sock, &event) == 0;
}

void connection_drop_stand_in(struct connection *connection)
{
	unwatch(connection);
	if (connection->sock != connection->fd)
		close(connection->sock);
	connection->sock = connection->fd;
	connection->sock_domain = connection->domain;
	connection->dial.mptcp = connection->mptcp;
}

void connection_use(struct connection *connection, int sock, int domain, bool mptcp)
{
	unwatch(connection);
	if (connection->sock != connection->fd)
		close(connection->sock);
	connection->sock = sock;
	connection->sock_domain = domain;
	connection->dial.mptcp = mptcp;
	connection->sock_was_mapped = false;
}

void connection_forget(struct connection *connection)
{
	unwatch(connection);
	if (connection->sock != connection->fd)
		close(connection->sock);
	close(connection->fd);
	dial_stop(&connection->dial);
	HASH_DEL(supervision.connections, connection);
	free(connection->early);
	free(connection);
}

/*
 * The duplicates are closed before the answer: the program may close the socket as soon as it has it, and then the kernel is to
 * send the FIN, and to forget the registrations with epoll instances, at once.
 */
void connection_answer(struct connection *connection, int64_t value, int error)
{
	const struct call call = connection->call;

	connection_forget(connection);
	listener_answer(supervision.listener, &call, value, error);
}

/* sendmmsg() counts messages, and wants the bytes of each behind its msghdr. */
static void answer_messages(struct connection *connection, size_t taken)
{
	uint32_t bytes = (uint32_t)taken;

	tracee_write(connection->call.tid, connection->answer_at, &bytes, sizeof(bytes));
	connection_answer(connection, 1, 0);
}

/*
 * A connect() that didn't want to wait gets the answer that it expects, EINPROGRESS, and finds the socket writable at once.
 * Output calls return how much they have taken.
 */
void connection_succeed(struct connection *connection, size_t taken)
{
	if (connection->answer_at && taken)
		answer_messages(connection, taken);
	else if (connection->early && taken)
		connection_answer(connection, (int64_t)taken, 0);
	else
		connection_answer(connection, 0, connection->nonblocking ? connection->unfinished : 0);
}
