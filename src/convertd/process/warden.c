/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warden.c - the main process (the warden): keeps the rights, starts the serving process, and ends as that does
 *
 * The problem. convertd needs CAP_NET_ADMIN for nftables and netfilter queues, and parses bytes from strangers. An
 * attacker who took over a process with both could change the host's network at will.
 *
 * So there are two processes, as with OpenSSH's sshd. The main process is the one that was started, whose process ID
 * the service manager knows. It keeps the rights and does little else: it uses no event library, speaks no HTTP, and
 * parses no client's stream. The serving process (the ward) has no capability. This file has the life of the two
 * processes:
 *
 *     main process                                        serving process
 *       SIGTERM, SIGINT, SIGHUP ────── orders ──────────>   drains, stops, reloads
 *       $NOTIFY_SOCKET          <───── notices ──────────   READY=1, descriptors to keep …
 *       exits likewise          <───── exit status ──────   exits, or is killed
 *       is killed               ────── PR_SET_PDEATHSIG ─>  is killed: nothing serves without a main process
 *       exits with 0            <───── WARDEN_LEAVE ─────   goes on serving, without rights (ward_leave())
 *
 * The service manager listens to the main process only (NotifyAccess=main), so this process passes on the serving
 * process's messages, if they are of the kinds that convertd sends. warden_calls.c carries out calls that need
 * rights. If the serving process sends anything that convertd doesn't send, the main process kills it.
 */
#include "config.h"

#include "convertd/process/warden.h"

#include "daemon/log.h"
#include "convertd/privilege/privilege.h"
#include "convertd/process/systemd.h"

#include <errno.h>
#include <event2/event.h>
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

/* The number of descriptors that we poll besides those of the queues: signals, notices, orders, calls. */
#define OWN_SOCKETS 4

struct warden {
	pid_t child;
	int signals; /* a signalfd */
	int orders, notices, calls;
	struct warden_calls *rights;
	sigset_t before; /* the signal mask before warden_split(), which is restored */
	bool ended; /* the serving process has ended */
	bool left;  /* the serving process goes on without this one (ward_leave()) */
	int status; /* as waitpid() has set it */
};

bool warden_is_needed(void)
{
	return capabilities_has(CAPABILITIES_OF_WARDEN);
}

/* Kills the serving process: it has sent a message that convertd never sends, so an attacker has taken it over. */
static void end_child(struct warden *warden)
{
	kill(warden->child, SIGKILL);
}

/* Returns the signals that are passed on, and SIGCHLD. */
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

/* Makes a signalfd and three pairs of sockets, one end for each process. Returns 0 or -errno. */
static int make_sockets(struct warden *warden, struct ward *ward)
{
	sigset_t watched = watched_signals();
	int *const pairs[][2] = { { &warden->orders, &ward->orders },
				  { &warden->notices, &ward->notices },
				  { &warden->calls, &ward->calls } };
	int ends[2];

	warden->signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	if (warden->signals < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
			return -errno;
		*pairs[i][0] = ends[0];
		*pairs[i][1] = ends[1];
	}
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

/* Passes one message to the service manager. Returns false if there are no more. */
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

/* Reads from the socket for orders, where the serving process sends nothing but WARDEN_LEAVE. */
static void on_word(struct warden *warden)
{
	struct warden_order order;
	ssize_t len = recv(warden->orders, &order, sizeof(order), MSG_DONTWAIT);

	if (len == (ssize_t)sizeof(order) && order.signum == WARDEN_LEAVE)
		warden->left = true;
	if (len == 0 || (len < 0 && errno != EAGAIN))
		close_if_open(&warden->orders);
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
	/* Passes on the messages that the serving process sent before its end, or before it left. */
	while (warden->notices >= 0 && pass_notice(warden))
		;
}

/*
 * Waits for the survivor's end. If the serving process was killed, the survivor (survivor.c) has its sockets for a
 * moment, listening ones as well. When this process ends, the service manager starts another convertd, which must
 * find their addresses free. The survivor also has the other end of the socket for notices, so the end of that
 * connection shows the end of the survivor.
 */
static void await_survivor(const struct warden *warden)
{
	struct pollfd notices = { .fd = warden->notices };

	if (warden->notices >= 0)
		poll(&notices, 1, SURVIVOR_MAX_MS);
}

/* Ends this process by the signal that has ended the serving process, which has dumped core already; this process doesn't. */
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
	if (!warden->left)
		await_survivor(warden);
	status = warden->left ? EXIT_SUCCESS : end_status(warden);
	warden_destroy(warden);
	return status;
}

/* Makes the sockets and the second process. Returns 0, in both processes, or -errno. */
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

/* ----- the serving process's (the ward's) connection to the main process ----- */

bool ward_has_warden(const struct ward *ward)
{
	return ward->orders >= 0;
}

static void disconnect(struct ward *ward)
{
	if (ward->order)
		event_free(ward->order);
	ward->order = NULL;
	close_if_open(&ward->orders);
	close_if_open(&ward->notices);
	close_if_open(&ward->calls);
	rights_init(-1);
}

static void on_order(evutil_socket_t fd, short what, void *arg)
{
	struct ward *ward = arg;
	struct warden_order order;
	ssize_t len = recv(fd, &order, sizeof(order), MSG_DONTWAIT);

	(void)what;
	if (len == (ssize_t)sizeof(order))
		ward->on_signal((int)order.signum, ward->arg);
	else if (len == 0 && ward->left)
		disconnect(ward);
	else if (len == 0)
		/* The main process is gone, so PR_SET_PDEATHSIG is about to kill this one anyway. */
		_exit(EXIT_FAILURE);
}

bool ward_listen(struct ward *ward, struct event_base *base,
		 void (*on_signal)(int signum, void *arg), void *arg)
{
	ward->on_signal = on_signal;
	ward->arg = arg;
	ward->order = event_new(base, ward->orders, EV_READ | EV_PERSIST, on_order, ward);
	return ward->order && event_add(ward->order, NULL) == 0;
}

static void on_direct_signal(evutil_socket_t signum, short what, void *arg)
{
	struct ward *ward = arg;

	(void)what;
	ward->on_signal((int)signum, ward->arg);
}

void ward_leave(struct ward *ward)
{
	static const int signals[] = { SIGTERM, SIGINT };
	struct warden_order order = { .signum = WARDEN_LEAVE };

	if (!ward_has_warden(ward) || ward->left)
		return;
	ward->left = true;
	prctl(PR_SET_PDEATHSIG, 0);
	for (size_t i = 0; ward->order && i < sizeof(signals) / sizeof(signals[0]); i++) {
		ward->direct[i] = evsignal_new(event_get_base(ward->order), signals[i],
					       on_direct_signal, ward);
		if (ward->direct[i])
			evsignal_add(ward->direct[i], NULL);
	}
	/* The service manager listens to the main process only. */
	notify_stop();
	fdpass_send(ward->orders, &order, sizeof(order), -1);
}

void ward_fini(struct ward *ward)
{
	disconnect(ward);
	for (size_t i = 0; i < sizeof(ward->direct) / sizeof(ward->direct[0]); i++) {
		if (ward->direct[i])
			event_free(ward->direct[i]);
		ward->direct[i] = NULL;
	}
}
