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
 *       SIGTERM, SIGINT, SIGHUP ────── their numbers ───>   drains, stops, reloads
 *       warden_calls.c          <───── calls ────────────   what needs rights; READY=1, descriptors to keep …
 *       exits likewise          <───── exit status ──────   exits, or is killed
 *       is killed               ────── PR_SET_PDEATHSIG ─>  is killed: nothing serves without a main process
 *       exits with 0            <───── WARDEN_CALL_LEAVE    goes on serving, without rights (ward_leave())
 *
 * The service manager listens to the main process only (NotifyAccess=main), so the main process passes on the serving
 * process's messages. If the serving process sends anything that convertd doesn't send, the main process kills it.
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
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The number of descriptors that we poll besides those of the queues: signals, calls. */
#define OWN_SOCKETS 2

struct warden {
	pid_t child;
	int signals;     /* a signalfd */
	int signals_out; /* takes the numbers of signals to the serving process */
	int calls;       /* brings its calls */
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

/* Makes a signalfd and two pairs of sockets, one end for each process. Returns 0 or -errno. */
static int make_sockets(struct warden *warden, struct ward *ward)
{
	sigset_t watched = watched_signals();
	int *const pairs[][2] = { { &warden->signals_out, &ward->signals }, { &warden->calls, &ward->calls } };
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
	close_if_open(&warden->signals_out);
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

static void on_signals(struct warden *warden)
{
	struct signalfd_siginfo info;

	while (read(warden->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		const int signum = (int)info.ssi_signo;

		if (signum == SIGHUP)
			warden_calls_reload(warden->rights);
		if (signum == SIGCHLD)
			warden->ended |= waitpid(warden->child, &warden->status, WNOHANG) == warden->child;
		else if (send(warden->signals_out, &signum, sizeof(signum), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			log_warning("%s isn't passed on: %s", strsignal(signum), strerror(errno));
	}
}

static void watch(struct warden *warden)
{
	while (!warden->ended && !warden->left) {
		struct pollfd fds[OWN_SOCKETS + WARDEN_QUEUES_MAX] = {
			{ .fd = warden->signals, .events = POLLIN },
			{ .fd = warden->calls, .events = POLLIN },
		};
		size_t queues = warden_calls_poll(warden->rights, fds + OWN_SOCKETS);

		if (poll(fds, OWN_SOCKETS + queues, -1) < 0)
			continue;
		/* Verdicts first: clients wait for them, and a call may close the queue that they are for. */
		if (!warden_calls_serve(warden->rights, fds + OWN_SOCKETS) ||
		    (fds[1].revents && !warden_calls_answer(warden->rights, &warden->calls, &warden->left)))
			/* An attacker has taken the serving process over: convertd never sends such messages. */
			kill(warden->child, SIGKILL);
		if (fds[0].revents)
			on_signals(warden);
	}
}

/*
 * Waits for the survivor's end. If the serving process was killed, the survivor (survivor.c) has its sockets for a
 * moment, listening ones as well. When this process ends, the service manager starts another convertd, which must
 * find their addresses free. The survivor also has the other end of the socket for calls, so the end of that
 * connection shows the end of the survivor.
 */
static void await_survivor(const struct warden *warden)
{
	struct pollfd calls = { .fd = warden->calls };

	if (warden->calls >= 0)
		poll(&calls, 1, SURVIVOR_MAX_MS);
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
		notify_relay();
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
		*warden = (struct warden){ .signals = -1, .signals_out = -1, .calls = -1, .rights = rights };
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
	return ward->signals >= 0;
}

static void disconnect(struct ward *ward)
{
	if (ward->signalled)
		event_free(ward->signalled);
	ward->signalled = NULL;
	close_if_open(&ward->signals);
	/* before the number can be another socket's, since workers may ask */
	rights_init(-1);
	close_if_open(&ward->calls);
}

static void on_passed_signal(evutil_socket_t fd, short what, void *arg)
{
	struct ward *ward = arg;
	int signum;
	ssize_t len = recv(fd, &signum, sizeof(signum), MSG_DONTWAIT);

	(void)what;
	if (len == (ssize_t)sizeof(signum))
		ward->on_signal(signum, ward->arg);
	else if (len == 0 && ward->left)
		disconnect(ward);
	else if (len == 0)
		/* The main process is gone, so PR_SET_PDEATHSIG is about to kill this one anyway. */
		_exit(EXIT_FAILURE);
}

static void on_direct_signal(evutil_socket_t signum, short what, void *arg)
{
	struct ward *ward = arg;

	(void)what;
	ward->on_signal((int)signum, ward->arg);
}

/* Obeys the first @count signals that are sent to this process. Returns false without memory. */
static bool listen_directly(struct ward *ward, struct event_base *base, size_t count)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };

	for (size_t i = 0; i < count; i++) {
		ward->direct[i] = evsignal_new(base, signals[i], on_direct_signal, ward);
		if (!ward->direct[i] || evsignal_add(ward->direct[i], NULL) < 0)
			return false;
	}
	return true;
}

bool ward_listen(struct ward *ward, struct event_base *base,
		 void (*on_signal)(int signum, void *arg), void *arg)
{
	ward->on_signal = on_signal;
	ward->arg = arg;
	if (!ward_has_warden(ward))
		return listen_directly(ward, base, sizeof(ward->direct) / sizeof(ward->direct[0]));
	ward->signalled = event_new(base, ward->signals, EV_READ | EV_PERSIST, on_passed_signal, ward);
	return ward->signalled && event_add(ward->signalled, NULL) == 0;
}

void ward_leave(struct ward *ward)
{
	if (!ward_has_warden(ward) || ward->left)
		return;
	ward->left = true;
	prctl(PR_SET_PDEATHSIG, 0);
	if (ward->signalled)
		listen_directly(ward, event_get_base(ward->signalled), 2);
	/* The service manager listens to the main process only. */
	notify_stop();
	rights_leave();
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
