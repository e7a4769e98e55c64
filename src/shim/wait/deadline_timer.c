/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deadline_timer.c - wakes threads that already sleep in an epoll instance when a pending socket is registered there
 *
 * The problem: such a thread knows nothing of the connection's deadline, and a silent network sends no event. So the thread would sleep on
 * until the kernel gives the SYN up. In tokio's runtime for several threads, one sleeps in epoll_wait() while others connect and register.
 *
 * So in a process with several threads a pending connection has a timerfd(2), set to its deadline. It is registered beside the socket, with
 * the same data. When the deadline is over, one of the threads gets an event with this data, and takes the connection's step.
 *
 * The application must not get this event. A late thread gets it together with the socket's own event, whose step settles the connection or
 * moves the deadline; afterwards nothing shows whose event it was. So epoll.c asks deadline_timer_reported() before any step.
 *
 * The descriptor exists while the registrations are masked. Timers have numbers in the lower half of those that the process may use: so the
 * application keeps the other half for itself, and further connections do without.
 */
#include "config.h"

#include "shim/wait/watch.h"

#include "shim/system/next.h"
#include "shim/system/waiting.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

/* Since glibc 2.32: true as long as the process has had one thread only. NULL: unknown. */
static const char *single_threaded;

void deadline_timer_init(void)
{
	single_threaded = dlsym(RTLD_DEFAULT, "__libc_single_threaded");
}

/* Returns a new timer, -1 if there is none to spare. */
static int timer_make(void)
{
	const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	struct rlimit files;

	if (fd >= 0 && getrlimit(RLIMIT_NOFILE, &files) == 0 && (rlim_t)fd < files.rlim_cur / 2)
		return fd;
	if (fd >= 0)
		next_close_now(fd);
	return -1;
}

void deadline_timer_add(struct conn *conn, struct conn_watch *watch)
{
	ERRNO_KEPT;
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = watch->data };
	int fd = atomic_load(&conn->timer);

	if (watch->timed || watch->adopted || !atomic_load(&conn->deadline) || (single_threaded && *single_threaded))
		return;
	if (fd == -1) {
		fd = timer_make();
		if (fd < 0)
			return;
		atomic_store(&conn->deadline_over, 0);
		atomic_store(&conn->timer, fd);
		conn_set_deadline(conn, atomic_load(&conn->deadline));
	}
	watch->timed = next.epoll_ctl(watch->epfd, EPOLL_CTL_ADD, fd, &event) == 0 ||
		       (errno == EEXIST && next.epoll_ctl(watch->epfd, EPOLL_CTL_MOD, fd, &event) == 0);
}

void deadline_timer_remove(struct conn *conn, struct conn_watch *watch)
{
	ERRNO_KEPT;
	struct epoll_event unused = { 0 };

	if (atomic_exchange(&watch->timed, false))
		next.epoll_ctl(watch->epfd, EPOLL_CTL_DEL, atomic_load(&conn->timer), &unused);
}

bool deadline_timer_reported(struct conn *conn, struct conn_watch *watch)
{
	const int64_t over = conn_look_is_due(conn) ? atomic_load(&conn->deadline) : atomic_load(&conn->deadline_over);

	if (!watch->timed || watch->reported >= over)
		return false;
	watch->reported = over;
	return true;
}

void deadline_timer_close(struct conn *conn)
{
	ERRNO_KEPT;
	int fd = atomic_exchange(&conn->timer, -1);

	for (size_t i = 0; i < CONN_WATCHES_MAX; i++)
		conn->watches[i].timed = false;
	if (fd != -1)
		next_close_now(fd);
}
