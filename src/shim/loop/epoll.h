/* SPDX-License-Identifier: BSD-3-Clause */
/* epoll.h - epoll_wait() with pending connections registered */
#ifndef SHIM_LOOP_EPOLL_H
#define SHIM_LOOP_EPOLL_H

#include "shim/system/deadline.h"
#include "shim/system/quiet.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>

/* One wait of the application's. The three system calls differ only in the form of the time-out. */
struct epoll_call {
	int epfd, max;
	struct epoll_event *events;
	const sigset_t *mask;
	bool precise; /* epoll_pwait2() */
	struct deadline deadline;
	struct quiet quiet;
};

/*
 * epoll_pending() - epoll_wait(2) while connections are on their way, of whose events only the application's are returned
 * @count: how many events a call of the kernel's has put into the application's array already, or -1 if none was made
 * Returns as epoll_wait(2) does, with errno set if it is -1. It is a cancellation point.
 */
int epoll_pending(struct epoll_call call, int count);

#endif
