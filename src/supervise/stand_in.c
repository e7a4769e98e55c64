/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stand_in.c - makes a socket like the program's, and puts it under the program's descriptors and into its epoll instances
 *
 * Linux loses bytes on MPTCP sockets that have fallen back to TCP. So we need a stand-in where the program's MPTCP socket would fall back:
 * for destinations that aren't converted, and where Multipath TCP doesn't get through to the converter.
 *
 * We compare the program's socket options with those of a new socket, and copy those that differ. An epoll instance forgets a socket with
 * its last descriptor, so we make the registrations again.
 *
 * Other processes that share the socket (by fork() before connect()) keep the old one.
 */
#include "config.h"

#include "supervise/stand_in.h"

#include "common/sockaddr.h"
#include "common/socket_options.h"
#include "supervise/permission.h"
#include "supervise/sockets.h"
#include "supervise/tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct option_value {
	char bytes[SOCKET_OPTION_BYTES];
	socklen_t len; /* 0: unknown */
};

static void option_read(int fd, const struct socket_option *option, struct option_value *out)
{
	int buffer = socket_option_buffer(option);

	memset(out, 0, sizeof(*out));
	out->len = sizeof(out->bytes);
	if (getsockopt(fd, option->level, buffer ? buffer : option->name, out->bytes, &out->len) != 0)
		out->len = 0;
}

/* Returns the options of a new socket, which it reads only once. */
static const struct option_value *defaults_of(int domain, bool mptcp)
{
	static struct option_value values[2][2][SOCKET_OPTIONS_COUNT];
	static bool known[2][2];
	const int v6 = domain == AF_INET6;
	int fd;

	if (known[v6][mptcp])
		return values[v6][mptcp];
	fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, mptcp ? IPPROTO_MPTCP : 0);
	if (fd < 0)
		return NULL;
	for (int i = 0; i < SOCKET_OPTIONS_COUNT; i++)
		option_read(fd, &socket_options[i], &values[v6][mptcp][i]);
	close(fd);
	known[v6][mptcp] = true;
	return values[v6][mptcp];
}

/* Returns whether the option is ours: we decide how to send the SYN, and if @placed, over which network. */
static bool is_ours(const struct socket_option *option, bool placed)
{
	if (option->level == SOL_SOCKET)
		return option->name == SO_BINDTODEVICE && placed;
	return option->level == IPPROTO_TCP &&
	       (option->name == TCP_FASTOPEN_NO_COOKIE || option->name == TCP_FASTOPEN_CONNECT);
}

/* Copies the options that the program has set. Ignores errors: the new socket's protocol may lack an option. */
static void program_options_copy(int from, int to, bool placed)
{
	const bool mptcp = kernel_get(from, SOL_SOCKET, SO_PROTOCOL, -1) == IPPROTO_MPTCP;
	const struct option_value *before = defaults_of(kernel_get(from, SOL_SOCKET, SO_DOMAIN, -1), mptcp);
	struct option_value now;
	int half;

	for (int i = 0; before && i < SOCKET_OPTIONS_COUNT; i++) {
		const struct socket_option *option = &socket_options[i];

		option_read(from, option, &now);
		if (is_ours(option, placed) || !now.len || (now.len == before[i].len && memcmp(now.bytes, before[i].bytes, now.len) == 0))
			continue;
		if (socket_option_buffer(option)) {
			memcpy(&half, now.bytes, sizeof(half));
			half /= 2; /* the kernel doubles what it is given */
			memcpy(now.bytes, &half, sizeof(half));
		}
		(void)setsockopt(to, option->level, option->name, now.bytes, now.len);
	}
}

int stand_in_make(const struct call *call, int fd, int domain, bool mptcp, bool bound, bool placed)
{
	int made = permission_socket_like(call->tid, fd, domain, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, mptcp ? IPPROTO_MPTCP : 0);
	int ret = 0;

	if (made < 0)
		return made;
	program_options_copy(fd, made, placed);
	if (!mptcp)
		advice_copy(fd, made);
	if (bound)
		ret = kernel_copy_address(fd, made);
	if (ret == 0)
		return made;
	close(made);
	return ret;
}

/* --- where a program has a socket: its descriptors, and its registrations in epoll instances --- */

/*
 * An epoll instance knows a socket by its file and its descriptor number. To change a registration, a process has to have the file under
 * the program's number. So a child or a thread of the supervisor, with a descriptor table of its own, puts the socket under the program's
 * number for a moment, and works on duplicates of the program's epoll instances. /proc lists the registrations.
 */

struct search {
	struct places *all;
	int count;
	int epoll; /* the instance that we look at */
};

static struct places *place_of(const struct search *search, uint64_t socket)
{
	for (int i = 0; i < search->count; i++)
		if (search->all[i].socket == socket)
			return &search->all[i];
	return NULL;
}

static bool note_watch(void *context, const struct tracee_watch *watch)
{
	const struct search *search = context;
	struct places *places = place_of(search, watch->inode);

	if (places && places->watch_count < PLACES_WATCHES_MAX) {
		places->epolls[places->watch_count] = search->epoll;
		places->watches[places->watch_count++] = *watch;
	}
	return true;
}

static bool note_fd(void *context, int fd, const char *target)
{
	struct search *search = context;
	struct places *places;
	unsigned long inode;

	if (sscanf(target, "socket:[%lu]", &inode) == 1) {
		places = place_of(search, inode);
		if (places && places->fd_count < PLACES_MAX)
			places->fds[places->fd_count++] = fd;
	} else if (strcmp(target, "anon_inode:[eventpoll]") == 0) {
		search->epoll = fd;
		tracee_each_watch(search->all->tid, fd, note_watch, search);
	}
	return true;
}

uint64_t places_socket(int fd)
{
	struct stat info;

	return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

void places_find_all(struct places *all, int count, pid_t tid)
{
	struct search search = { .all = all, .count = count };

	for (int i = 0; i < count; i++) {
		all[i].tid = tid;
		all[i].fd_count = all[i].watch_count = 0;
	}
	tracee_each_fd(tid, note_fd, &search);
}

int places_limit(const struct places *places)
{
	int limit = 0;

	for (int i = 0; i < places->watch_count; i++)
		limit = places->watches[i].fd > limit ? places->watches[i].fd : limit;
	return limit;
}

int places_move_beyond(int fd, int limit)
{
	int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, limit + 1);

	if (fd >= 0)
		close(fd);
	return moved;
}

void places_change(const struct places *places, int sock, int operation)
{
	const int limit = places_limit(places);

	for (int i = 0; i < places->watch_count; i++) {
		const struct tracee_watch *watch = &places->watches[i];
		struct epoll_event event = { .events = watch->events, .data.u64 = watch->data };
		const int epoll = places_move_beyond(tracee_get_fd(places->tid, places->epolls[i]), limit);

		if (epoll >= 0 && dup2(sock, watch->fd) == watch->fd) {
			(void)epoll_ctl(epoll, operation, watch->fd, &event);
			close(watch->fd);
		}
		if (epoll >= 0)
			close(epoll);
	}
}

/* Registers @made, the socket's replacement, in place of the registrations that ended with the socket. */
static void register_anew(const struct places *places, int made)
{
	pid_t child;
	int sock;

	if (!places->watch_count)
		return;
	child = fork();
	if (child == 0) {
		sock = places_move_beyond(made, places_limit(places));
		if (sock >= 0)
			places_change(places, sock, EPOLL_CTL_ADD);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

/* --- the replacement --- */

/*
 * Puts @made under the program's number @at, if the socket is still there: another thread may have closed it meanwhile, and opened another
 * file under that number.
 */
static int put_at(int listener, const struct call *call, const struct places *places, int at, int made)
{
	const bool cloexec = tracee_is_cloexec(call->tid, at);
	int now = tracee_get_fd(call->tid, at);
	const bool there = now >= 0 && places_socket(now) == places->socket;

	if (now >= 0)
		close(now);
	return there ? listener_put_fd(listener, call, made, at, cloexec) : 0;
}

int stand_in_put(int listener, const struct call *call, int fd, int made)
{
	struct places places;
	int flags = fcntl(fd, F_GETFL), ret = 0;

	kernel_copy_owner(fd, made); /* O_ASYNC alone, one of the flags, would have no effect */
	if (flags < 0 || fcntl(made, F_SETFL, flags) != 0)
		return -errno;
	places.socket = places_socket(fd);
	if (!places.socket)
		return -errno;
	places_find_all(&places, 1, call->tid);
	for (int i = 0; i < places.fd_count && ret == 0; i++)
		ret = put_at(listener, call, &places, places.fds[i], made);
	if (ret == 0)
		register_anew(&places, made);
	return ret;
}
