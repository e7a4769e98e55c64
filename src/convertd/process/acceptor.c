/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * acceptor.c - a worker's part of a listener: takes clients out of a socket's queue
 *
 * Out of descriptors, accept() fails while the client stays in the queue and the socket stays
 * readable: the loop would spin. So the acceptor pauses, and a timer lets it try again; sessions
 * that end in the meantime free descriptors.
 */
#include "config.h"

#include "convertd/process/acceptor.h"

#include "convertd/net/listener.h"
#include "convertd/observe/metrics.h"
#include "convertd/session/session.h"
#include "convertd/observe/shortage.h"
#include "convertd/process/worker.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Clients accepted in one round at most, so that sessions get their turn. */
#define ACCEPTS_PER_ROUND 64

/* Its two events stand behind the struct: their size is known at run time only (event_get_struct_event_size()). */
struct acceptor {
	struct session_pool *pool;
	struct listener_socket *socket;
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
	shortage_of_files(error, "clients have to wait");
}

/* Takes the next client out of the queue; false: there is none, or none can be taken now. */
static bool accept_one(struct acceptor *acceptor)
{
	union sockaddr_ip client = { 0 };
	socklen_t len = sizeof(client);
	int accepted = accept4(acceptor->socket->fd, &client.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (accepted >= 0) {
		session_accept(acceptor->pool, accepted, &client);
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
		/* The client's own errors are reported here as well: accept(2). */
		return true;
	}
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct acceptor *acceptor = arg;

	(void)fd;
	(void)what;
	/* Where clients come one at a time, a second accept() would be in vain: so the number of calls grows with the queue. */
	for (unsigned i = 0; i < acceptor->batch; i++) {
		if (accept_one(acceptor))
			continue;
		acceptor->batch = i ? i : 1;
		return;
	}
	if (acceptor->batch < ACCEPTS_PER_ROUND)
		acceptor->batch *= 2;
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	acceptor_start(arg);
}

struct acceptor *acceptor_create(struct listener *listener, const struct worker_context *worker)
{
	struct acceptor *acceptor =
		calloc(1, sizeof(*acceptor) + 2 * event_get_struct_event_size());

	if (!acceptor)
		return NULL;
	acceptor->pool = worker->pool;
	acceptor->batch = 1;
	acceptor->socket = listener_socket(listener, worker->number);
	atomic_fetch_add(&acceptor->socket->users, 1);
	event_assign(readable_event(acceptor), worker->base, acceptor->socket->fd,
		     EV_READ | EV_PERSIST, on_readable, acceptor);
	event_assign(resume_event(acceptor), worker->base, -1, 0, on_resume, acceptor);
	return acceptor;
}

void acceptor_start(struct acceptor *acceptor)
{
	if (event_add(readable_event(acceptor), NULL) < 0)
		acceptor_pause(acceptor, ENOMEM);
}

static void accept_queue(struct acceptor *acceptor)
{
	for (int i = 0; i < LISTENER_BACKLOG && accept_one(acceptor); i++)
		;
}

void acceptor_stop(struct acceptor *acceptor)
{
	event_del(readable_event(acceptor));
	accept_queue(acceptor);
	/* accept_queue() may have begun a pause. */
	event_del(resume_event(acceptor));
}

/* The last acceptor that uses the socket closes it: until then the others accept its clients. */
static void release_socket(struct acceptor *acceptor, bool drain)
{
	struct listener_socket *socket = acceptor->socket;

	if (atomic_fetch_sub(&socket->users, 1) != 1)
		return;
	if (drain)
		accept_queue(acceptor);
	close(socket->fd);
	socket->fd = -1;
}

void acceptor_destroy(struct acceptor *acceptor, bool drain)
{
	if (!acceptor)
		return;
	event_del(readable_event(acceptor));
	release_socket(acceptor, drain);
	event_del(resume_event(acceptor));
	free(acceptor);
}
