/* SPDX-License-Identifier: BSD-3-Clause */
/* bad_calls_waits.c - bad arrays and sets: poll(), select() and epoll; and the start of programs */
#include "config.h"

#include "bad_calls.h"

#include <spawn.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <time.h>

#define MANY 100000

#ifdef __GLIBC__
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t bytes);
#endif

static const struct timespec soon = { 0, 1000000 };

static struct pollfd *asked(int fd)
{
	static struct pollfd fds[MANY];

	for (size_t i = 0; i < MANY; i++)
		fds[i] = (struct pollfd){ .fd = -1 };
	fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN | POLLOUT };
	return fds;
}

static struct pollfd *asked_at_edge(int fd, size_t room)
{
	return edge_copy(asked(fd), room);
}

/* Makes the memory at @at readable, but not writable. */
static void *sealed(void *at)
{
	return mprotect((void *)((uintptr_t)at & ~(uintptr_t)4095), 4096, PROT_READ) < 0 ? NULL : at;
}

/* Limits the process to @count descriptors. */
static struct pollfd *limited(int fd, rlim_t count)
{
	struct rlimit limit = { count, count };

	return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? NULL : asked(fd);
}

static const struct timespec *nonsense(void)
{
	static const struct timespec time = { 0, -1 };

	return &time;
}

/* A bad pointer to a time, but not NULL, which would mean to wait for ever. */
static void *some(struct bad bad)
{
	return bad.at ? bad.at : bads[1].at;
}

static void rows_poll(void)
{
	ROWS(poll((struct pollfd *)(void *)bad.at, 1, 1));
	ROWS(poll((struct pollfd *)(void *)bad.at, 0, 1));
	ROWS(poll((struct pollfd *)(void *)bad.at, (nfds_t)-1, 1));
	ROW(poll(asked(fd), (nfds_t)-1, 1));
	ROW(poll(asked(fd), (nfds_t)-1 / 16, 1));
	ROW(poll(limited(fd, 64), 65, 1));
	ROW(poll(limited(fd, 64), 64, 1));
	ROW(poll(limited(fd, 64), MANY, 1));
	ROW(poll(asked_at_edge(fd, 8), 1, 1));
	ROW(poll(asked_at_edge(fd, 8), 2, 1));
	ROW(poll(asked_at_edge(fd, 12), 2, 1));
	ROW(poll(asked_at_edge(fd, 4), 1, 1));
	ROW(poll(asked_at_edge(fd, 800), 101, 1));
	ROW(poll(sealed(asked_at_edge(fd, 8)), 1, 1));
	ROWS(ppoll((struct pollfd *)(void *)bad.at, 1, &soon, NULL));
	ROWS(ppoll(asked(fd), 1, some(bad), NULL));
	ROWS(ppoll(asked(fd), 1, &soon, (const sigset_t *)(void *)bad.at));
	ROW(ppoll(asked(fd), 1, nonsense(), NULL));
	ROW(ppoll(asked(fd), (nfds_t)-1, &soon, NULL));
	ROW(ppoll(asked(fd), 1, sealed(edge_copy(&soon, sizeof(soon))), NULL));
#ifdef __GLIBC__
	ROWS(__poll_chk((struct pollfd *)(void *)bad.at, 1, 1, 8));
	ROWS(__poll_chk((struct pollfd *)(void *)bad.at, 2, 1, 8));
#endif
}

static int instance(int fd)
{
	int epfd = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT };

	epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event); /* this fails for descriptors that can't be registered */
	return epfd;
}

static struct epoll_event *events(void)
{
	static struct epoll_event list[8];

	return list;
}

static void rows_epoll(void)
{
	const size_t one = sizeof(struct epoll_event);

	ROWS(epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, fd, (struct epoll_event *)(void *)bad.at));
	ROWS(epoll_ctl(instance(fd), EPOLL_CTL_MOD, fd, (struct epoll_event *)(void *)bad.at));
	ROWS(epoll_ctl(instance(fd), EPOLL_CTL_DEL, fd, (struct epoll_event *)(void *)bad.at));
	ROWS(epoll_ctl(instance(fd), 99, fd, (struct epoll_event *)(void *)bad.at));
	ROWS(epoll_ctl(-1, EPOLL_CTL_ADD, fd, (struct epoll_event *)(void *)bad.at));
	ROW(epoll_ctl(instance(fd), 99, fd, events()));
	ROW(epoll_ctl(fd, EPOLL_CTL_ADD, fd, events()));
	ROW(epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, fd, edge_copy(events(), one)));
	ROW(epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, fd, edge_copy(events(), one - 1)));
	ROWS(epoll_wait(instance(fd), (struct epoll_event *)(void *)bad.at, 8, 1));
	ROWS(epoll_wait(instance(fd), (struct epoll_event *)(void *)bad.at, 0, 1));
	ROW(epoll_wait(instance(fd), events(), -1, 1));
	ROW(epoll_wait(instance(fd), events(), INT32_MAX, 1));
	ROW(epoll_wait(instance(fd), edge(one), 8, 1));
	ROW(epoll_wait(fd, events(), 8, 1));
	ROWS(epoll_pwait(instance(fd), (struct epoll_event *)(void *)bad.at, 8, 1, NULL));
	ROWS(epoll_pwait(instance(fd), events(), 8, 1, (const sigset_t *)(void *)bad.at));
#ifdef HAVE_EPOLL_PWAIT2
	ROWS(epoll_pwait2(instance(fd), (struct epoll_event *)(void *)bad.at, 8, &soon, NULL));
	ROWS(epoll_pwait2(instance(fd), events(), 8, some(bad), NULL));
	ROWS(epoll_pwait2(instance(fd), events(), 8, &soon, (const sigset_t *)(void *)bad.at));
	ROW(epoll_pwait2(instance(fd), events(), 8, nonsense(), NULL));
#endif
}

void rows_waits(void)
{
	rows_poll();
	rows_epoll();
}

/* Makes a set of @room bytes with @fd in it, at the end of memory. */
static fd_set *set_at_edge(int fd, size_t room)
{
	unsigned char *set = memset(edge(room), 0, room);

	if (fd >= 0 && (size_t)fd < room * 8)
		set[fd / 8] |= (unsigned char)(1u << fd % 8);
	return (fd_set *)(void *)set;
}

/* Makes a set of the usual size with @fd in it, in front of memory full of ones. */
static fd_set *set_of(int fd)
{
	static unsigned char set[MANY];

	memset(set, 0xff, sizeof(set));
	memset(set, 0, sizeof(fd_set));
	set[fd / 8] |= (unsigned char)(1u << fd % 8);
	return (fd_set *)(void *)set;
}

/* Makes a set with a high descriptor, so that the process's table is large. */
static fd_set *set_high(int fd, int high, size_t room)
{
	dup2(fd, high);
	return set_at_edge(high, room);
}

static struct timeval *time_of(long us)
{
	static struct timeval time;

	time = (struct timeval){ 0, us };
	return &time;
}

static struct timespec *spec_of(long ns)
{
	static struct timespec time;

	time = (struct timespec){ 0, ns };
	return &time;
}

static void rows_select(void)
{
	static const int counts[] = { -1, 0, 8, 63, 64, 65, 1024, 1025, 5000, 1 << 20, INT32_MAX };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const int nfds = counts[i];
		char text[16];

		snprintf(text, sizeof(text), "%d", nfds);
		scene_detail(text);
		ROWS(select(nfds, (fd_set *)(void *)bad.at, NULL, NULL, time_of(1000)));
		ROWS(select(nfds, NULL, NULL, (fd_set *)(void *)bad.at, time_of(1000)));
		ROWS(select(nfds, set_at_edge(fd, 128), (fd_set *)(void *)bad.at, NULL, time_of(1000)));
		for (size_t room = 1; room <= 256; room *= 2) {
			ROW(select(nfds, set_at_edge(fd, room), NULL, NULL, time_of(1000)));
			ROW(select(nfds, NULL, set_at_edge(fd, room), NULL, time_of(1000)));
		}
		ROW(select(nfds, set_high(fd, 300, 128), NULL, NULL, time_of(1000)));
		ROW(select(nfds, set_high(fd, 300, 40), NULL, NULL, time_of(1000)));
		ROW(select(nfds, set_high(fd, 1000, 128), set_at_edge(fd, 128), NULL, time_of(1000)));
		ROW(select(nfds, set_at_edge(fd, 128), sealed(set_at_edge(fd, 128)), NULL, time_of(1000)));
		scene_detail("");
	}
	ROWS(select(64, set_at_edge(fd, 8), NULL, NULL, some(bad)));
	ROW(select(64, set_at_edge(fd, 8), NULL, NULL, time_of(-1)));
	ROW(select(64, NULL, set_at_edge(fd, 8), NULL, sealed(edge_copy(time_of(1000), sizeof(struct timeval)))));
}

/* Returns @ret and the sum of the bytes that the call has left in set_of(), as one number. */
static long left_of(const fd_set *set, int ret)
{
	const unsigned char *bytes = (const unsigned char *)set;
	long sum = ret * 100000000L;

	for (size_t i = 0; i < MANY; i++)
		sum += bytes[i];
	return sum;
}

static void rows_pselect(void)
{
	ROWS(pselect(64, (fd_set *)(void *)bad.at, NULL, NULL, &soon, NULL));
	ROWS(pselect(64, set_at_edge(fd, 8), NULL, NULL, some(bad), NULL));
	ROW(pselect(1 << 20, set_at_edge(fd, 128), NULL, NULL, spec_of(1000000), NULL));
	ROW(pselect(64, set_at_edge(fd, 8), NULL, NULL, spec_of(-1), NULL));
	ROW(pselect(64, set_at_edge(fd, 8), NULL, NULL, sealed(edge_copy(&soon, sizeof(soon))), NULL));
	ROWS(pselect(64, set_at_edge(fd, 8), NULL, NULL, &soon, (const sigset_t *)(void *)bad.at));
}

/* The kernel neither reads nor changes the memory behind a set that is shorter than the call says. */
static void rows_behind(void)
{
	fd_set *set;

	ROW((set = set_of(fd), left_of(set, pselect(8 * MANY, set, NULL, NULL, &soon, NULL))));
	ROW((set = set_of(fd), left_of(set, pselect(8 * MANY, NULL, set, NULL, &soon, NULL))));
	ROW((set = set_of(fd), left_of(set, pselect(1 << 20, set, set_at_edge(fd, 128), NULL, &soon, NULL))));
}

void rows_sets(void)
{
	rows_select();
	rows_pselect();
	rows_behind();
}

#define PROGRAM "/bin/true"

/* Makes an environment with @last as its last variable. */
static char **list(char *last)
{
	static char *strings[4] = { (char *)(uintptr_t) "A=1", (char *)(uintptr_t) "LD_LIBRARY_PATH=/" };

	strings[2] = last;
	return strings;
}

static char **endless(void)
{
	return edge_copy(list(NULL), 2 * sizeof(char *));
}

static char *unended(void)
{
	return edge_copy("LD_PRELOAD=", 11);
}

static char **arguments(void)
{
	static char *strings[] = { (char *)(uintptr_t) "true", NULL };

	return strings;
}

static pid_t *child(void)
{
	static pid_t pid;

	return &pid;
}

/* Each of these calls fails, so that the row prints its line. */
void rows_starts(void)
{
	ROWS(execve(PROGRAM, arguments(), (char **)(void *)bad.at));
	ROWS(execve(PROGRAM, (char **)(void *)bad.at, list(bads[2].at)));
	ROWS(execve(bad.at, arguments(), list(NULL)));
	ROW(execve(PROGRAM, arguments(), list(bads[1].at)));
	ROW(execve(PROGRAM, arguments(), list(bads[2].at)));
	ROW(execve(PROGRAM, arguments(), list(bads[4].at)));
	ROW(execve(PROGRAM, arguments(), list(unended())));
	ROW(execve(PROGRAM, arguments(), endless()));
	ROW(execve(PROGRAM, endless(), list(NULL)));
	ROW(execv(PROGRAM, endless()));
	ROW(execvpe("true", arguments(), endless()));
	ROW(execvpe("true", arguments(), list(bads[2].at)));
	ROW(fexecve(open(PROGRAM, O_RDONLY), arguments(), endless()));
#ifdef HAVE_EXECVEAT
	ROW(execveat(AT_FDCWD, PROGRAM, arguments(), endless(), 0));
	ROW(execveat(AT_FDCWD, PROGRAM, arguments(), list(unended()), 0));
#endif
	ROW(posix_spawn(child(), PROGRAM, NULL, NULL, arguments(), endless()));
	ROW(posix_spawn(child(), PROGRAM, NULL, NULL, arguments(), list(unended())));
	ROW(posix_spawn(child(), PROGRAM, NULL, NULL, endless(), list(NULL)));
	ROW(posix_spawnp(child(), "true", NULL, NULL, arguments(), endless()));
}
