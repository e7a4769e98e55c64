/* SPDX-License-Identifier: BSD-3-Clause */
/* registrations.h - reads an epoll instance's registrations from /proc */
#ifndef SHIM_REGISTRATIONS_H
#define SHIM_REGISTRATIONS_H

#include <stdbool.h>
#include <sys/epoll.h>

/* A registration: its descriptor, which may have been closed since, and its events and data. */
struct registration {
	int fd;
	struct epoll_event event;
};

/* Takes a registration; returns whether registrations_visit() shall continue. */
typedef bool (*registration_visitor)(int epfd, const struct registration *found, void *arg);

/*
 * registrations_visit() - call @visit for each registration in the instance @epfd until it returns false
 * Reads /proc/thread-self/fdinfo/<epfd> (proc(5)), without memory of its own. Visits nothing if /proc isn't mounted. Changes errno.
 */
void registrations_visit(int epfd, registration_visitor visit, void *arg);

#endif
