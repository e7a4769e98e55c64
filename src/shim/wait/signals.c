/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signals.c - a wait with a time-out that a signal handler interrupts as it would connect(2)
 *
 * connect(2) goes on after a handler with SA_RESTART, and ends after any other. After poll() has said EINTR it can't be told
 * which signal it was. If all handlers of the process are of one kind, that doesn't matter. If they aren't, signals are
 * blocked during the wait, and a signalfd, which is never read, becomes readable when one is pending. What kind its handler is
 * can be looked up then; the handler runs as soon as the thread's own mask is put back, before the wait goes on or ends.
 *
 * The mask and the signalfd are put back also where the thread is cancelled in the wait.
 */
#include "config.h"

#include "shim/wait/signals.h"

#include "shim/system/next.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>

struct handlers {
	bool restarting, interrupting; /* with SA_RESTART, without: is there a handler of this kind? */
};

static struct handlers handlers_of(const sigset_t *which)
{
	struct handlers handlers = { false, false };
	struct sigaction action;

	for (int sig = 1; sig < _NSIG; sig++) {
		if (which && sigismember(which, sig) != 1)
			continue;
		if (sigaction(sig, NULL, &action) != 0 || action.sa_handler == SIG_DFL ||
		    action.sa_handler == SIG_IGN)
			continue;
		if (action.sa_flags & SA_RESTART)
			handlers.restarting = true;
		else
			handlers.interrupting = true;
	}
	return handlers;
}

struct watch {
	int fd;
	sigset_t mask; /* the thread's own */
	bool interrupted; /* by a handler that doesn't restart */
};

static void watch_end(void *arg)
{
	struct watch *watch = arg;

	next.close(watch->fd);
	pthread_sigmask(SIG_SETMASK, &watch->mask, NULL);
}

/* Returns the pending signals that the thread's own mask doesn't block. */
static sigset_t deliverable(const struct watch *watch)
{
	sigset_t pending;

	sigpending(&pending);
	for (int sig = 1; sig < _NSIG; sig++)
		if (sigismember(&watch->mask, sig) == 1)
			sigdelset(&pending, sig);
	return pending;
}

static int poll_watching(struct pollfd *fd, int timeout_ms, struct watch *watch)
{
	struct pollfd fds[2] = { *fd, { .fd = watch->fd, .events = POLLIN } };
	sigset_t pending;
	int ret;

	pthread_cleanup_push(watch_end, watch); /* poll() is a point of cancellation */
	ret = next.poll(fds, 2, timeout_ms);
	if (ret > 0 && fds[1].revents) {
		pending = deliverable(watch);
		watch->interrupted = handlers_of(&pending).interrupting;
	}
	pthread_cleanup_pop(1); /* the mask is put back, so that the handlers run */
	fd->revents = fds[0].revents;
	if (ret <= 0)
		return ret;
	if (fd->revents || !watch->interrupted)
		return fd->revents != 0;
	errno = EINTR;
	return -1;
}

int signals_poll(struct pollfd *fd, int timeout_ms)
{
	struct handlers handlers = handlers_of(NULL);
	struct watch watch = { .fd = -1 };
	sigset_t all, watched;
	int ret;

	if (handlers.restarting && handlers.interrupting) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &watch.mask);
		sigemptyset(&watched);
		for (int sig = 1; sig < _NSIG; sig++)
			if (sigismember(&watch.mask, sig) == 0)
				sigaddset(&watched, sig);
		watch.fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
		if (watch.fd >= 0)
			return poll_watching(fd, timeout_ms, &watch);
		pthread_sigmask(SIG_SETMASK, &watch.mask, NULL);
	}
	ret = next.poll(fd, 1, timeout_ms);
	return ret < 0 && errno == EINTR && !handlers.interrupting ? 0 : ret;
}
