/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forks.c - connections that two processes share from some moment of the handshake on
 *
 *   forks ADDRESS PORT PAIRS WORKERS SPAN-US [kill] [exec] [handler]
 *
 * PAIRS times a process starts a non-blocking connect() and forks within SPAN-US microseconds. Both processes wait
 * for the connection, each in one of several ways, look at it, and read as fast as they can until the end. The
 * server (servers.py: chorus) sends each byte from 0x80 to 0xff once: together the two must get each byte once and
 * nothing else. With "kill" one of the two is killed at some moment within two SPAN-US: its bytes are lost, but the
 * other must get only bytes of the server. With "exec" the child executes this program anew and goes on. With
 * "handler" the process forks in a signal handler, while it waits. Prints "clean PAIRS", or the first error, and ends
 * with 1.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STALL_MS 15000
#define FIRST_BYTE 0x80
#define READ_MOST 16
#define SPINS 100 /* so often a spinning process looks in vain before it pauses */

enum way { POLL, SELECT, EPOLL_BEFORE, EPOLL_AFTER, EDGE_AFTER, BLOCKING, SPINNING, WAY_COUNT };

static const char *const way_names[] = { "poll", "select", "epoll", "own epoll", "own edge epoll", "blocking", "spinning" };

/* The memory that the processes of a pair share. */
struct pair {
	_Atomic int got[256];
	_Atomic pid_t child;
	_Atomic int killed;
};

static struct sockaddr_in server;
static unsigned int span;
static struct pair *pair;
static int pair_fd, with_kill, with_exec, with_handler;
static enum way way;
static const char *who;

static void die(const char *what, int error)
{
	fprintf(stderr, "%s, waiting by %s: %s: %s\n", who, way_names[way], what, strerror(error));
	_exit(1);
}

static void pause_us(unsigned int us)
{
	struct timespec time = { .tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000 };

	nanosleep(&time, NULL);
}

static int new_epoll(int fd, unsigned int events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	if (epfd < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) < 0)
		die("epoll", errno);
	return epfd;
}

static int wait_epoll(int epfd)
{
	struct epoll_event event;

	int ready;

	do
		ready = epoll_wait(epfd, &event, 1, STALL_MS);
	while (ready < 0 && errno == EINTR);
	return ready;
}

static int wait_select(int fd)
{
	struct timeval limit = { .tv_sec = STALL_MS / 1000 };
	fd_set out;

	int ready;

	do {
		FD_ZERO(&out);
		FD_SET(fd, &out);
		ready = select(fd + 1, NULL, &out, NULL, &limit);
	} while (ready < 0 && errno == EINTR);
	return ready;
}

static int wait_poll(int fd, short events)
{
	struct pollfd ready = { .fd = fd, .events = events };

	int count;

	do
		count = poll(&ready, 1, STALL_MS);
	while (count < 0 && errno == EINTR);
	return count;
}

static int wait_connected(int fd, int epfd)
{
	switch (way) {
	case SELECT:
		return wait_select(fd);
	case EPOLL_BEFORE:
	case EPOLL_AFTER:
	case EDGE_AFTER:
		return wait_epoll(epfd);
	case BLOCKING:
	case SPINNING:
		return 1;
	default:
		return wait_poll(fd, POLLOUT);
	}
}

static void look(int fd)
{
	struct sockaddr_in peer;
	socklen_t len = sizeof(peer), intlen = sizeof(int);
	int error = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &intlen) < 0 || error)
		die("SO_ERROR", error ? error : errno);
	/* The other process may have read to the end already, which disconnects a socket that the server has closed. */
	if (getpeername(fd, (struct sockaddr *)&peer, &len) < 0)
		errno != ENOTCONN || way <= EDGE_AFTER ? die("getpeername", errno) : (void)0;
	else if (peer.sin_addr.s_addr != server.sin_addr.s_addr || peer.sin_port != server.sin_port)
		die("another peer", EPROTO);
}

static void read_all(int fd, unsigned int *seed)
{
	unsigned char bytes[READ_MOST];
	unsigned int in_vain = 0;
	ssize_t got;

	do {
		got = recv(fd, bytes, 1 + (size_t)rand_r(seed) % READ_MOST, 0);
		for (ssize_t i = 0; i < got; i++)
			atomic_fetch_add(&pair->got[bytes[i]], 1);
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			die("recv", errno);
		if (got < 0 && way != SPINNING && wait_poll(fd, POLLIN) < 1)
			die("nothing to read", ETIMEDOUT);
		/* In user mode Linux time passes only while all programs wait: without a pause nothing would ever arrive. */
		if (got < 0 && way == SPINNING && ++in_vain % SPINS == 0)
			pause_us(50);
	} while (got != 0);
}

static void go_on(int fd, int epfd, unsigned int seed)
{
	alarm(STALL_MS / 1000 + 5);
	way = rand_r(&seed) % WAY_COUNT;
	if (way == EPOLL_AFTER || way == EDGE_AFTER || epfd < 0)
		epfd = new_epoll(fd, EPOLLIN | EPOLLOUT | (way == EDGE_AFTER ? EPOLLET : 0u));
	if (way == BLOCKING)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	if (wait_connected(fd, epfd) < 1)
		die("no connection", ETIMEDOUT);
	look(fd);
	read_all(fd, &seed);
	_exit(0);
}

/* Starts this program anew, with the socket and the memory that the pair shares. */
static void go_on_as_program(char **argv, int fd, unsigned int seed)
{
	char words[3][16];

	snprintf(words[0], sizeof(words[0]), "%d", fd);
	snprintf(words[1], sizeof(words[1]), "%d", pair_fd);
	snprintf(words[2], sizeof(words[2]), "%u", seed);
	execl("/proc/self/exe", "forks-program", argv[1], argv[2], "taken", words[0], words[1], words[2], (char *)NULL);
	die("execl", errno);
}

/* For the handler of SIGUSR1. */
static int shared_fd, shared_epfd;
static unsigned int shared_seed;

static void fork_here(int number)
{
	pid_t child = fork();

	(void)number;
	if (child < 0)
		die("fork", errno);
	if (child == 0) {
		who = "the child";
		go_on(shared_fd, shared_epfd, shared_seed ^ 0x5bd1e995);
	}
	pair->child = child;
}

/* Starts a process that sends SIGUSR1 within SPAN-US. */
static void signal_soon(unsigned int seed)
{
	struct sigaction action = { .sa_handler = fork_here, .sa_flags = SA_RESTART };
	pid_t parent = getpid();

	sigaction(SIGUSR1, &action, NULL);
	if (fork() != 0)
		return;
	pause_us((unsigned int)rand_r(&seed) % span);
	kill(parent, SIGUSR1);
	_exit(0);
}

static void be_a_pair(char **argv, unsigned int seed)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int epfd = -1;
	sigset_t usr1;
	pid_t child;

	who = "the parent";
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	if (with_handler) {
		sigprocmask(SIG_BLOCK, &usr1, NULL);
		signal_soon(seed);
	}
	if (connect(fd, (struct sockaddr *)&server, sizeof(server)) == 0 || errno != EINPROGRESS)
		die("connect", errno);
	epfd = new_epoll(fd, EPOLLIN | EPOLLOUT);
	if (with_handler) {
		shared_fd = fd;
		shared_epfd = epfd;
		shared_seed = seed;
		sigprocmask(SIG_UNBLOCK, &usr1, NULL);
		go_on(fd, epfd, seed);
	}
	pause_us((unsigned int)rand_r(&seed) % span);
	child = fork();
	if (child < 0)
		die("fork", errno);
	if (child > 0) {
		pair->child = child;
		go_on(fd, epfd, seed);
	}
	who = "the child";
	seed ^= 0x5bd1e995;
	if (with_exec)
		go_on_as_program(argv, fd, seed);
	go_on(fd, epfd, seed);
}

/* Kills one of the two processes, unless it has ended before. */
static void kill_one(pid_t parent, unsigned int *seed)
{
	int either = rand_r(seed) % 2;

	pause_us((unsigned int)rand_r(seed) % (2 * span));
	if (either && pair->child > 0)
		kill(pair->child, SIGKILL);
	else
		kill(parent, SIGKILL);
}

static int wait_for_all(void)
{
	int status, failures = 0;

	while (wait(&status) > 0) {
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			pair->killed = 1;
		else if (status != 0)
			failures++;
	}
	return failures;
}

static void judge(int failures, unsigned int seed)
{
	int missing = 0, extra = 0;

	for (int i = 0; i < 256; i++) {
		missing += i >= FIRST_BYTE && !pair->got[i];
		extra += pair->got[i] > (i >= FIRST_BYTE);
	}
	/* A killed process takes its bytes with it: all, if it was the parent before its fork(). */
	if (!failures && !extra && (!missing || pair->killed))
		return;
	fprintf(stderr, "pair %u: %d failed, %d bytes missing, %d that the server hasn't sent%s\n", seed, failures, missing,
		extra, pair->killed ? ", one was killed" : "");
	exit(1);
}

static void map_pair(void)
{
	pair = mmap(NULL, sizeof(*pair), PROT_READ | PROT_WRITE, MAP_SHARED, pair_fd, 0);
	if (pair == MAP_FAILED)
		exit(1);
}

static void work(char **argv, unsigned int seed, int pairs)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pair_fd = memfd_create("pair", 0);
	if (pair_fd < 0 || ftruncate(pair_fd, sizeof(*pair)) < 0)
		exit(1);
	map_pair();
	for (; pairs > 0; pairs--, seed++) {
		unsigned int random = seed * 2654435761u;
		pid_t parent;

		memset(pair, 0, sizeof(*pair));
		parent = fork();
		if (parent == 0)
			be_a_pair(argv, random);
		if (with_kill)
			kill_one(parent, &random);
		judge(wait_for_all(), seed);
	}
	exit(0);
}

static void be_the_program(char **argv)
{
	who = "the program";
	pair_fd = atoi(argv[5]);
	map_pair();
	go_on(atoi(argv[4]), -1, (unsigned int)strtoul(argv[6], NULL, 10));
}

static int usage(void)
{
	fprintf(stderr, "usage: forks ADDRESS PORT PAIRS WORKERS SPAN-US [kill] [exec] [handler]\n");
	return 2;
}

int main(int argc, char **argv)
{
	int pairs, workers, status, failures = 0;

	if (argc < 6 || inet_pton(AF_INET, argv[1], &server.sin_addr) != 1)
		return usage();
	server.sin_family = AF_INET;
	server.sin_port = htons((unsigned short)atoi(argv[2]));
	if (argc == 7 && !strcmp(argv[3], "taken"))
		be_the_program(argv);
	pairs = atoi(argv[3]);
	workers = atoi(argv[4]);
	span = (unsigned int)atoi(argv[5]);
	if (workers < 1 || pairs < workers || !span)
		return usage();
	for (int i = 6; i < argc; i++) {
		with_kill |= !strcmp(argv[i], "kill");
		with_exec |= !strcmp(argv[i], "exec");
		with_handler |= !strcmp(argv[i], "handler");
	}
	for (int i = 0; i < workers; i++)
		if (fork() == 0)
			work(argv, (unsigned int)i * 1000000u, pairs / workers);
	while (wait(&status) > 0)
		failures += status != 0;
	if (!failures)
		printf("clean %d\n", pairs);
	return failures != 0;
}
