/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * survivor.c - a process that resets the connections of a convertd that was killed
 *
 * The problem: when a process ends, by SIGKILL, by the OOM killer or by a fault of its own, Linux closes its sockets
 * as if it had done so itself. So each client and each server would see the regular end of the stream, and take the
 * bytes that it has for all of them. With SO_LINGER of 0 s Linux sends an RST instead on TCP sockets (at the price of
 * two system calls for each, as the option would have to be reset before a proper end), but not on Multipath TCP
 * sockets: those send DATA_FIN with any setting, unless they hold unread bytes (Linux 6.18, __mptcp_close()). And a
 * client whose third ACK hasn't come learns nothing for a minute.
 *
 * So the process that is killed must not be the last one that has the sockets. A second process, the survivor, shares
 * convertd's table of descriptors (clone() with CLONE_FILES): it has no copies of the descriptors but the table
 * itself, with all sockets that are open at any moment, at no cost for each. It has little memory, and of its own, so
 * that the OOM killer doesn't choose it. It does nothing until convertd has ended. Then the sockets are still open,
 * since the survivor has them too, and it
 *
 *   1. closes the ways in for new clients (listening sockets; netlink sockets, and with them the rules and queues for
 *      SYNs), so that the kernel doesn't accept clients that nobody serves;
 *   2. waits until the peers have acknowledged all bytes, for a second at most: an RST that is lost is not sent
 *      again, and a queue on the way that is full of these bytes, or of others on the same link, would drop it (of 24
 *      peers of busy connections on one link, one got no RST in each fourth run);
 *   3. resets each connection, as session_reset_socket() does;
 *   4. ends, which closes the remaining descriptors.
 *
 * Sockets that convertd has closed itself are not in the table any more: the kernel goes on to deliver a stream that
 * has ended regularly. When convertd ends regularly, it leaves the connections that have to be reset to the survivor
 * (session_cut()).
 *
 * Limits: if both processes are killed at once (kill -9 of a whole control group, the end of a container whose first
 * process is convertd), Linux ends the streams as described above. To make that rare, the survivor blocks all
 * signals, is in a session of its own, and has another name than convertd. It has the rights of convertd and shares
 * its table, so that an attacker who takes over one of them gains nothing by the other.
 */
#include "config.h"

#include "convertd/privilege/privilege.h"

#include "relay/relay.h"
#include "daemon/log.h"

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Because of this name "pkill convertd" spares the survivor, which ends by itself once convertd has ended. */
#define SURVIVOR_NAME "rfc8803-resets"

/* Before the resets, it looks up to ROUNDS times, each ROUND_MS, whether all bytes are acknowledged. */
#define ROUND_MS 50
#define ROUNDS 20

static atomic_bool there; /* the survivor runs */

/* On s390 the stack is the first argument and the flags are the second: clone(2). */
#ifdef __s390__
#define CLONE_ARGUMENTS(flags) 0, (flags)
#else
#define CLONE_ARGUMENTS(flags) (flags), 0
#endif

static int socket_option(int fd, int option)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0 ? -1 : value;
}

static bool is_connection(int fd)
{
	int domain = socket_option(fd, SO_DOMAIN);

	return (domain == AF_INET || domain == AF_INET6) && socket_option(fd, SO_TYPE) == SOCK_STREAM;
}

/* Closes @fd if new clients arrive by it. Returns false: any_descriptor() has nothing to wait for. */
static bool close_entrance(int fd)
{
	if (socket_option(fd, SO_ACCEPTCONN) > 0 || socket_option(fd, SO_DOMAIN) == AF_NETLINK)
		close(fd);
	return false;
}

/* Tells whether @fd has sent bytes that the peer hasn't acknowledged. */
static bool is_busy(int fd)
{
	int unsent = 0;

	return is_connection(fd) && ioctl(fd, SIOCOUTQ, &unsent) == 0 && unsent;
}

/* Resets @fd if it is a connection, and closes it. Returns false: any_descriptor() has nothing to wait for. */
static bool reset_connection(int fd)
{
	if (!is_connection(fd))
		return false;
	relay_reset(fd);
	close(fd);
	return false;
}

/* Calls @act for each open descriptor but the standard ones and the table's own. Returns whether @act was true for any. */
static bool any_descriptor(DIR *table, bool (*act)(int fd))
{
	const struct dirent *entry;
	bool any = false;

	rewinddir(table);
	while ((entry = readdir(table))) {
		int fd = atoi(entry->d_name);

		if (fd > STDERR_FILENO && fd != dirfd(table))
			any |= act(fd);
	}
	return any;
}

/* The facts that convertd hands to the survivor when it starts it. */
struct beginning {
	int convertd; /* a pidfd, readable once convertd has ended */
	int ready;    /* an eventfd: 1 when the survivor is ready, or 1 + an errno */
	const struct convertd_settings *settings; /* for the sandbox */
};

/* Runs the survivor. Returns its exit status. */
static int survive(const struct beginning *beginning)
{
	struct pollfd convertd = { .fd = beginning->convertd, .events = POLLIN };
	DIR *table;

	prctl(PR_SET_NAME, SURVIVOR_NAME);
	setsid();
	table = opendir("/proc/self/fd");
	if (!table) {
		eventfd_write(beginning->ready, 1 + (eventfd_t)errno);
		return EXIT_FAILURE;
	}
	/* This opens descriptors for a moment, which are convertd's as well, and closes them before convertd serves anybody. */
	sandbox_enter(beginning->settings, SYSCALL_FILTER_SURVIVOR);
	eventfd_write(beginning->ready, 1);
	while (poll(&convertd, 1, -1) < 0 && errno == EINTR)
		;
	any_descriptor(table, close_entrance);
	for (int round = 0; round < ROUNDS && any_descriptor(table, is_busy); round++)
		poll(NULL, 0, ROUND_MS);
	any_descriptor(table, reset_connection);
	return EXIT_SUCCESS;
}

/* pidfd_open(2) is of Linux 5.3, and older C libraries lack it. Returns a descriptor or -errno. */
static int open_pidfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

/* Waits until the survivor is ready. Returns a pidfd, which is readable once the survivor has ended, or -errno. */
static int await_survivor(pid_t pid, int ready)
{
	int fd = open_pidfd(pid);
	struct pollfd news[] = { { .fd = ready, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
	eventfd_t said = 1 + ESRCH;

	if (fd < 0)
		return fd;
	while (poll(news, 2, -1) < 0 && errno == EINTR)
		;
	if (news[0].revents & POLLIN)
		eventfd_read(ready, &said);
	if (said == 1)
		return fd;
	close(fd);
	return 1 - (int)said;
}

/* Forks, but with a shared table of descriptors. (The C library's clone() wants a stack, which sanitizers don't know.) */
static pid_t fork_with_table(void)
{
	return (pid_t)syscall(SYS_clone, CLONE_ARGUMENTS(CLONE_FILES | SIGCHLD), 0, 0, 0);
}

int survivor_start(const struct convertd_settings *settings)
{
	struct beginning beginning = { .convertd = open_pidfd(getpid()),
				       .ready = eventfd(0, EFD_CLOEXEC),
				       .settings = settings };
	sigset_t all, before;
	pid_t pid = -1;
	int fd;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	if (beginning.convertd >= 0 && beginning.ready >= 0)
		pid = fork_with_table();
	if (pid == 0)
		_exit(survive(&beginning));
	fd = pid < 0 ? -errno : await_survivor(pid, beginning.ready);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (beginning.ready >= 0)
		close(beginning.ready);
	/* beginning.convertd stays open: both processes share the table, and the survivor waits for that descriptor. */
	atomic_store(&there, fd >= 0);
	return fd;
}

bool survivor_is_there(void)
{
	return atomic_load(&there);
}

static void on_end(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	atomic_store(&there, false);
	log_warning("the process %s has ended: if convertd is killed from now on, clients and servers may "
		    "take a part of a stream for the whole; restart convertd",
		    SURVIVOR_NAME);
}

struct event *survivor_watch(struct event_base *base, int fd)
{
	struct event *event = event_new(base, fd, EV_READ, on_end, NULL);

	if (event && event_add(event, NULL) < 0) {
		event_free(event);
		return NULL;
	}
	return event;
}
