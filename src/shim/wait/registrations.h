/* SPDX-License-Identifier: BSD-3-Clause */
/* registrations.h - what is registered in an epoll instance, as /proc tells of it */
#ifndef SHIM_REGISTRATIONS_H
#define SHIM_REGISTRATIONS_H

#include <stdbool.h>
#include <sys/epoll.h>

/* A registration: the descriptor that it was made with, which may have been closed since, and the events and data that were asked for. */
struct registration {
	int fd;
	struct epoll_event event;
};

/* Called for each registration; returns whether registrations_visit() is to go on. */
typedef bool (*registration_visitor)(int epfd, const struct registration *found, void *arg);

/*
 * registrations_visit() - call @visit for each registration in the instance @epfd until it returns false
 * Reads /proc/thread-self/fdinfo/<epfd> (proc(5)), without memory of its own. Nothing is visited where /proc isn't mounted.
 * Changes errno.
 */
void registrations_visit(int epfd, registration_visitor visit, void *arg);

#endif
