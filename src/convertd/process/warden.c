/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warden.c - the main process: has the rights, starts the process that serves, and ends as it does
 *
 * The problem. convertd needs CAP_NET_ADMIN for nftables and netfilter queues, and parses what strangers
 * send. Whoever took over a process that has both could do with the host's network as he likes.
 *
 * So there are two processes, as with OpenSSH's sshd. The one that was started, whose number the service
 * manager knows, keeps the rights and does nothing else: no event loop's library, no HTTP, no byte of a
 * client. The other one serves and has no capability. This file is what they are to each other as
 * processes:
 *
 *     main process                                        serving process (ward.c)
 *       SIGTERM, SIGINT, SIGHUP ────── orders ──────────>   drains, stops, reloads
 *       $NOTIFY_SOCKET          <───── notices ──────────   READY=1, descriptors to keep …
 *       exits likewise          <───── its status ───────   exits, or is killed
 *       is killed               ────── PR_SET_PDEATHSIG ─>  SIGKILL: nothing serves without a main process,
 *                                                           unless it has said so (ward_leave()): then a copy
 *                                                           of the main process stays, and that one exits
 *
 * The service manager listens to the main process only (NotifyAccess=main), so that one passes messages on,
 * those of the kinds that convertd sends.
 */
#include "config.h"

#include "convertd/process/warden.h"

#include "convertd/base/fdpass.h"
#include "convertd/privilege/capabilities.h"
#include "convertd/base/log.h"
#include "convertd/process/notify.h"
#include "convertd/rights/rights.h"
#include "convertd/privilege/survivor.h"
#include "convertd/process/ward.h"
#include "convertd/process/warden_calls.h"
#include "convertd/rights/warden_message.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptors that are polled besides those of the queues: signals, notices, orders, calls. */
#define OWN_SOCKETS 4

struct warden {
	pid_t child;
	int signals; /* a signalfd */
	int orders, notices, calls;
	struct warden_calls *rights;
	sigset_t before; /* the signal mask to go back to */
	bool ended;
	bool left;  /* the serving process goes on without this one (ward_leave()) */
	bool copy;  /* this process is the copy that stays for it */
	int status; /* of waitpid() */
};

bool warden_is_needed(void)
{
	return capabilities_has(CAPABILITIES_OF_WARDEN);
}

/* Ends the serving process: it has sent what convertd never sends, so somebody has taken it over. */
static void end_child(struct warden *warden)
{
	/* It is no child of the copy's, so its number may be another process's by now: the copy ends instead. */
	if (warden->copy)
		warden->ended = true;
	else
		kill(warden->child, SIGKILL);
}

/* The signals that are passed on, and SIGCHLD. */
static sigset_t watched_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	return set;
}

/* Returns 0 or -errno. */
static int make_sockets(struct warden *warden, struct ward *ward)
{
	sigset_t watched = watched_signals();
	int orders[2], notices[2], calls[2];

	warden->signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	if (warden->signals < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders) < 0)
		return -errno;
	warden->orders = orders[0];
	ward->orders = orders[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, notices) < 0)
		return -errno;
	warden->notices = notices[0];
	ward->notices = notices[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, calls) < 0)
		return -errno;
	warden->calls = calls[0];
	ward->calls = calls[1];
	return 0;
}

static void close_if_open(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void warden_destroy(struct warden *warden)
{
	close_if_open(&warden->signals);
	close_if_open(&warden->orders);
	close_if_open(&warden->notices);
	close_if_open(&warden->calls);
	warden_calls_destroy(warden->rights);
	free(warden);
}

/* ----- the serving process ----- */

static void become_ward(const struct warden *warden, pid_t main_process)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigprocmask(SIG_SETMASK, &warden->before, NULL);
	prctl(PR_SET_NAME, "convertd-serve");
	/* The main process may have ended before prctl() was called. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != main_process)
		_exit(EXIT_FAILURE);
}

/* ----- the main process ----- */

static void read_child(struct warden *warden)
{
	if (waitpid(warden->child, &warden->status, WNOHANG) == warden->child)
		warden->ended = true;
}

static void on_signals(struct warden *warden)
{
	struct signalfd_siginfo info;

	while (read(warden->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		struct warden_order order = { .signum = info.ssi_signo };

		if (info.ssi_signo == SIGHUP)
			warden_calls_reload(warden->rights);
		if (info.ssi_signo == SIGCHLD)
			read_child(warden);
		else if (send(warden->orders, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			log_warning("%s isn't passed on: %s", strsignal((int)info.ssi_signo),
				    strerror(errno));
	}
}

/* Passes one message to the service manager. Returns whether there may be more of them. */
static bool pass_notice(struct warden *warden)
{
	char text[NOTIFY_MAX + 1];
	int passed;
	ssize_t len = fdpass_receive(warden->notices, text, NOTIFY_MAX, false, &passed);

	if (len > 0 && notify_message_is_right(text, (size_t)len)) {
		notify_forward(text, (size_t)len, passed);
	} else if (len > 0) {
		log_error("the serving process sends what is no message of convertd's");
		end_child(warden);
	}
	if (passed >= 0)
		close(passed);
	if (len == 0)
		close_if_open(&warden->notices);
	return len > 0;
}

/*
 * The serving process goes on, and whoever has started this one is to see that it has ended: a copy of it
 * stays, for what takes rights. The serving process is no child of its: it ends with their connection.
 */
static void leave(struct warden *warden)
{
	pid_t pid;

	/* The copy can't say anything to the service manager, so all messages go out before. */
	while (warden->notices >= 0 && pass_notice(warden))
		;
	pid = fork();
	if (pid < 0)
		log_warning("no copy of the main process: %s; sessions go on without its rights",
			    strerror(errno));
	warden->left = pid != 0;
	if (pid)
		return;
	warden->copy = true;
	prctl(PR_SET_NAME, "convertd-rights");
	/* Signals are the serving process's; the service manager listens to the main process. */
	close_if_open(&warden->signals);
	notify_stop();
}

/* The one message that the serving process sends here is WARDEN_LEAVE: it goes on without this process. */
static void on_word(struct warden *warden)
{
	struct warden_order order;
	ssize_t len = recv(warden->orders, &order, sizeof(order), MSG_DONTWAIT);

	if (len == (ssize_t)sizeof(order) && order.signum == WARDEN_LEAVE)
		leave(warden);
	if (len == 0 || (len < 0 && errno != EAGAIN)) {
		close_if_open(&warden->orders);
		warden->ended |= warden->copy;
	}
}

static void watch(struct warden *warden)
{
	while (!warden->ended && !warden->left) {
		struct pollfd fds[OWN_SOCKETS + WARDEN_QUEUES_MAX] = {
			{ .fd = warden->signals, .events = POLLIN },
			{ .fd = warden->notices, .events = POLLIN },
			{ .fd = warden->orders, .events = POLLIN },
			{ .fd = warden->calls, .events = POLLIN },
		};
		size_t queues = warden_calls_poll(warden->rights, fds + OWN_SOCKETS);

		if (poll(fds, OWN_SOCKETS + queues, -1) < 0)
			continue;
		/* Verdicts first: clients wait for them, and a call may close the queue that they are for. */
		if (!warden_calls_serve(warden->rights, fds + OWN_SOCKETS) ||
		    (fds[3].revents && !warden_calls_answer(warden->rights, &warden->calls)))
			end_child(warden);
		if (fds[1].revents)
			pass_notice(warden);
		if (fds[0].revents)
			on_signals(warden);
		if (fds[2].revents)
			on_word(warden);
	}
	/* Passes on what the serving process has said before its end. */
	while (warden->notices >= 0 && pass_notice(warden))
		;
}

/*
 * If the serving process was killed, its survivor (survivor.c) has its sockets for a moment, listening ones as well:
 * whoever starts convertd again when this process ends finds their places free. It has this socket, too.
 */
static void await_survivor(const struct warden *warden)
{
	struct pollfd notices = { .fd = warden->notices };

	if (warden->notices >= 0)
		poll(&notices, 1, SURVIVOR_MAX_MS);
}

/* Ends by the signal that has ended the serving process, which has dumped core already. */
static void end_by_signal(struct warden *warden, int signum)
{
	static const struct rlimit none = { 0 };

	setrlimit(RLIMIT_CORE, &none);
	signal(signum, SIG_DFL);
	sigprocmask(SIG_SETMASK, &warden->before, NULL);
	raise(signum);
}

static int end_status(struct warden *warden)
{
	if (WIFEXITED(warden->status))
		return WEXITSTATUS(warden->status);
	log_error("the serving process was ended by a signal: %s", strsignal(WTERMSIG(warden->status)));
	end_by_signal(warden, WTERMSIG(warden->status));
	return EXIT_FAILURE;
}

int warden_run(struct warden *warden)
{
	int status;

	watch(warden);
	/* The copy has all that would have to be undone. */
	if (warden->left)
		_exit(EXIT_SUCCESS);
	await_survivor(warden);
	status = end_status(warden);
	warden_destroy(warden);
	return status;
}

/* Returns 0, in both processes, or -errno. */
static int split(struct warden *warden, struct ward *ward)
{
	pid_t self = getpid();
	int error = make_sockets(warden, ward);

	if (error)
		return error;
	warden->child = fork();
	if (warden->child < 0)
		return -errno;
	if (warden->child == 0) {
		become_ward(warden, self);
		notify_relay(ward->notices);
		rights_init(ward->calls);
		return 0;
	}
	ward_fini(ward);
	return 0;
}

bool warden_split(struct warden **out, struct ward *ward, struct warden_calls *rights)
{
	struct warden *warden = malloc(sizeof(*warden));
	sigset_t watched = watched_signals();
	int error = -ENOMEM;

	*ward = WARD_NONE;
	*out = NULL;
	if (!warden)
		warden_calls_destroy(rights);
	if (warden && rights) {
		*warden = (struct warden){ .signals = -1, .orders = -1, .notices = -1, .calls = -1, .rights = rights };
		sigprocmask(SIG_BLOCK, &watched, &warden->before);
		error = split(warden, ward);
	}
	if (!error && warden->child) {
		*out = warden;
		return true;
	}
	if (warden)
		warden_destroy(warden);
	if (!error)
		return true;
	ward_fini(ward);
	log_error("no second process: %s; raise TasksMax= or the limit of processes",
		  strerror(-error));
	return false;
}
