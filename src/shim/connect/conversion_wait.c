/* SPDX-License-Identifier: BSD-3-Clause */
/* conversion_wait.c - blocking calls on a pending connection, with the kernel's interruptions and time-outs */
#include "config.h"

#include "shim/connect/conversion.h"

#include "common/clock.h"
#include "convert/convert.h"
#include "shim/system/next.h"
#include "shim/system/waiting.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>

/* --- a wait with a time-out, which signal handlers interrupt as they interrupt connect(2) --- */

/*
 * connect(2) continues after a handler with SA_RESTART, and ends after any other. But after an EINTR of poll() we don't know which signal
 * it was. If all handlers of the process are of one kind, that doesn't matter. Otherwise we block signals during the wait. A signalfd,
 * which we never read, becomes readable when a signal is pending, and then we look up the kind of its handler. The handler runs as soon as
 * we restore the thread's own mask, before the wait continues or ends.
 *
 * If the thread is cancelled in the wait, a cleanup handler restores the mask and closes the signalfd.
 */

struct handlers {
	bool restarting, interrupting; /* is there a handler with SA_RESTART; one without it? */
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

struct signal_watch {
	int fd;
	sigset_t mask; /* the thread's own */
	bool interrupted; /* by a handler without SA_RESTART */
};

static void signal_watch_end(void *arg)
{
	struct signal_watch *watch = arg;

	next.close(watch->fd);
	pthread_sigmask(SIG_SETMASK, &watch->mask, NULL);
}

/* Returns the pending signals that the thread's own mask doesn't block. */
static sigset_t deliverable(const struct signal_watch *watch)
{
	sigset_t pending;

	sigpending(&pending);
	for (int sig = 1; sig < _NSIG; sig++)
		if (sigismember(&watch->mask, sig) == 1)
			sigdelset(&pending, sig);
	return pending;
}

static int poll_watching(struct pollfd *fd, int timeout_ms, struct signal_watch *watch)
{
	struct pollfd fds[2] = { *fd, { .fd = watch->fd, .events = POLLIN } };
	sigset_t pending;
	int ret;

	pthread_cleanup_push(signal_watch_end, watch); /* poll() is a cancellation point */
	ret = next.poll(fds, 2, timeout_ms);
	if (ret > 0 && fds[1].revents) {
		pending = deliverable(watch);
		watch->interrupted = handlers_of(&pending).interrupting;
	}
	pthread_cleanup_pop(1); /* restores the mask, so that the handlers run */
	fd->revents = fds[0].revents;
	if (ret <= 0)
		return ret;
	if (fd->revents || !watch->interrupted)
		return fd->revents != 0;
	errno = EINTR;
	return -1;
}

/*
 * Calls poll(2) on one descriptor, and restarts it after handlers with SA_RESTART, as the kernel does with connect(2) without SO_SNDTIMEO,
 * but never with poll(2). The time begins anew after a restart. Returns as poll(2), with EINTR only after a handler without SA_RESTART.
 */
static int signals_poll(struct pollfd *fd, int timeout_ms)
{
	struct handlers handlers = handlers_of(NULL);
	struct signal_watch watch = { .fd = -1 };
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

/* --- the wait --- */

/*
 * Waits for the response, or for its missing part, or until a time is over: SO_SNDTIMEO, or the attempt's next look at the converter.
 * Only without either do we wait in recv(2), which the kernel restarts after a signal exactly when it would restart connect(2): under
 * SA_RESTART. After part of the response we wait in poll(2), since MSG_PEEK on MPTCP would wait for SO_RCVLOWAT in an endless loop in
 * the kernel (Linux 6.12). Returns 0 (look again) or -errno.
 */
static int wait_once(struct conn *conn, int fd, int64_t end)
{
	struct pollfd ready = { .fd = fd, .events = conversion_poll_events(conn) };
	uint8_t response[CONVERT_MESSAGE_MAX];
	int left = deadline_left_ms(deadline_earlier(end ? end : DEADLINE_NEVER, atomic_load(&conn->deadline))), unknown = 0;
	int ret;

	if (left < 0 && ready.events == POLLIN && !conn->socket.rcvlowat) {
		if (next.recv(fd, response, sizeof(response), MSG_PEEK) >= 0)
			return 0;
		if (errno == EINTR)
			return -EINTR;
		if (errno != EAGAIN && errno != EWOULDBLOCK) {
			atomic_compare_exchange_strong(&conn->error, &unknown, errno);
			return 0;
		}
	}
	/* There is a time limit or a part of the response, or recv(2) didn't wait because of O_NONBLOCK or SO_RCVTIMEO. */
	ret = end ? next.poll(&ready, 1, left) : signals_poll(&ready, left);
	if (ret < 0)
		return -errno;
	return end && clock_ns() >= end ? -ETIME : 0;
}

/* A wait ends when the server is reached, or when its first bytes may be read. */
enum wait_for { FOR_SERVER, FOR_INPUT };

static bool is_over(enum conn_phase phase, enum wait_for what)
{
	return !phase_in(phase, what == FOR_INPUT ? PHASES_PENDING | PHASES_CONFIRMED : PHASES_PENDING);
}

/*
 * Waits until @what has happened, or until @end. If another thread closes the descriptor meanwhile, its number may belong to another
 * socket: we take no step on that, and return -EBADF. We check that before each wait but the first, so that a usual connection doesn't need
 * it.
 */
static int wait_until(struct conn *conn, int fd, int64_t end, enum wait_for what)
{
	bool waited = false;
	int ret = 0;

	while (ret == 0 && !is_over(conversion_progress(conn, fd), what)) {
		ret = waited && conn_of(fd) != conn ? -EBADF : wait_once(conn, fd, end);
		waited = true;
	}
	return is_over(conn_phase_unclaimed(conn), what) ? 0 : ret;
}

int conversion_wait(struct conn *conn, int fd)
{
	int ret = wait_until(conn, fd, kernel_deadline(fd, SO_SNDTIMEO, conn->dial.started), FOR_SERVER);

	return ret == -ETIME ? -EINPROGRESS : ret;
}

int conversion_wait_for(struct conn *conn, int fd, int option)
{
	int ret = wait_until(conn, fd, kernel_deadline(fd, option, clock_ns()), option == SO_RCVTIMEO ? FOR_INPUT : FOR_SERVER);

	return ret == -ETIME ? -EAGAIN : ret;
}

void conversion_finish(struct conn *conn, int fd, int ms)
{
	/* A server that we asked itself sends no response: its first bytes are the application's. */
	const bool bypassed = conn_in(conn, PHASE(BYPASS) | PHASE(BYPASSED));
	int64_t end = clock_ns() + ms * CLOCK_NS_PER_MS;

	if (conn_phase(conn) == CONN_DEFERRED)
		conversion_send_deferred(conn, fd);
	while (wait_until(conn, fd, end, bypassed ? FOR_SERVER : FOR_INPUT) == -EINTR)
		;
	if (bypassed)
		conversion_hand_over(conn, fd);
}

#define TOGETHER 64    /* we wait for so many at once, and look at the others in between */
#define STRETCH_MS 20

struct finishing {
	bool (*concerns)(const struct conn *conn);
	struct pollfd fds[TOGETHER];
	nfds_t count;
	bool any;
};

/* Returns until when to wait for @conn; 0: no longer. Decides under the claim, so that no thread is in the middle of a step. */
static int64_t finish_end(struct conn *conn, int fd, const struct finishing *finishing)
{
	struct conn_claim claim;
	int64_t end = 0;

	if (!conn_claim_of(conn, fd, PHASES_UNFINISHED, &claim))
		return 0;
	if (finishing->concerns(conn) && claim.from != CONN_RESOLVING)
		end = conn->dial.started + dial_host.settings->timeout_ms * CLOCK_NS_PER_MS;
	conn_release(conn, claim.from, &claim);
	return end;
}

/* Takes the steps of @conn that are possible now, and notes whether to wait for it. */
static void finish_one(struct conn *conn, struct finishing *finishing)
{
	int fd = conn->fd;
	int64_t end = finish_end(conn, fd, finishing);

	if (end && conn_phase(conn) == CONN_DEFERRED) /* its time begins now */
		conversion_finish(conn, fd, dial_host.settings->timeout_ms);
	if (clock_ns() >= end)
		return;
	if (conn_phase(conn) != CONN_BYPASSED)
		conversion_progress(conn, fd);
	conversion_hand_over(conn, fd);
	if (clock_ns() >= finish_end(conn, fd, finishing))
		return;
	finishing->any = true;
	if (finishing->count < TOGETHER)
		finishing->fds[finishing->count++] = (struct pollfd){ .fd = fd, .events = conversion_poll_events(conn) };
}

void conversion_finish_all(bool (*concerns)(const struct conn *conn))
{
	ERRNO_KEPT;
	struct finishing finishing = { .concerns = concerns };
	struct quiet quiet;

	quiet_all(&quiet);
	do {
		finishing.count = 0;
		finishing.any = false;
		EACH_CONN (conn, PHASES_UNFINISHED)
			finish_one(conn, &finishing);
		if (finishing.any)
			next.poll(finishing.fds, finishing.count, STRETCH_MS);
	} while (finishing.any);
	quiet_end(&quiet);
}
