/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.c - many threads, each with an event loop of its own, connect and talk at the same time
 *
 *   threads ADDRESS PORT THREADS CONNECTIONS [forks]
 *
 * Each thread makes CONNECTIONS connections to an echo server, one after the other: a non-blocking
 * socket, registered edge-triggered before connect() in every second one. With "forks" one more thread
 * forks all the time: children that end at once, and programs. Prints "done N", or what went wrong
 * first, and ends with 1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define STALL_MS 20000

static struct sockaddr_in server;
static int stall_ms; /* how long nothing may happen; a multiple on slow machines, by CONVERT_PATIENCE, as convertlab's waiting.py has it */
static int connections;
static _Atomic int done;

static void die(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, strerror(error));
	exit(1);
}

static void watch(int epfd, int op, int fd, unsigned int events)
{
	struct epoll_event event = { .events = events | EPOLLET, .data.fd = fd };

	if (epoll_ctl(epfd, op, fd, &event) < 0)
		die("epoll_ctl", errno);
}

/* Waits for one of @events; skips others. */
static void await(int epfd, unsigned int events)
{
	struct epoll_event event;
	int count;

	do {
		count = epoll_wait(epfd, &event, 1, stall_ms);
		if (count == 0)
			die("no event", ETIMEDOUT);
	} while (count < 0 ? errno == EINTR : !(event.events & (events | EPOLLERR)));
	if (count < 0)
		die("epoll_wait", errno);
}

static int is_connected(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);
	struct sockaddr_in peer;
	socklen_t peer_len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error)
		die("SO_ERROR", error ? error : errno);
	return getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0;
}

static void talk(int epfd, int fd, unsigned int seed)
{
	char out[64], in[64];
	size_t got = 0, len = (size_t)snprintf(out, sizeof(out), "hello from %u", seed);

	/* If another thread has let the SYN go, early data comes too late: to the program the buffer looks full. */
	while (send(fd, out, len, MSG_NOSIGNAL) != (ssize_t)len) {
		if (errno != EAGAIN)
			die("send", errno);
		await(epfd, EPOLLOUT);
	}
	while (got < len) {
		ssize_t n = recv(fd, in + got, sizeof(in) - got, 0);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			die("recv", n ? errno : ECONNRESET);
		if (n < 0)
			await(epfd, EPOLLIN);
		else
			got += (size_t)n;
	}
	if (got != len || memcmp(in, out, len) != 0)
		die("other bytes came back", EBADMSG);
}

static void connect_once(int epfd, unsigned int number)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int before = number % 2;

	if (fd < 0)
		die("socket", errno);
	if (before)
		watch(epfd, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT);
	/* 0: with early data the SYN leaves with the first bytes */
	if (connect(fd, (struct sockaddr *)&server, sizeof(server)) != 0 && errno != EINPROGRESS)
		die("connect", errno);
	if (!before)
		watch(epfd, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT);
	while (!is_connected(fd))
		await(epfd, EPOLLOUT);
	talk(epfd, fd, number);
	close(fd);
}

static void *run(void *arg)
{
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	for (int i = 0; i < connections; i++)
		connect_once(epfd, (unsigned int)(size_t)arg * 1000000u + (unsigned int)i);
	close(epfd);
	return NULL;
}

static void *run_forks(void *arg)
{
	int status;

	for (unsigned int i = 0; !done; i++) {
		pid_t pid = fork();

		if (pid == 0 && i % 2)
			execl("/bin/true", "true", (char *)NULL);
		if (pid == 0)
			_exit(0);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			die("a child", pid < 0 ? errno : ECHILD);
	}
	return arg;
}

int main(int argc, char **argv)
{
	int count = argc >= 5 ? atoi(argv[3]) : 0;
	const char *patience = getenv("CONVERT_PATIENCE");
	pthread_t threads[64], forker;

	stall_ms = STALL_MS * (patience && atoi(patience) > 0 ? atoi(patience) : 1);
	if (count < 1 || count > 64 || inet_pton(AF_INET, argv[1], &server.sin_addr) != 1) {
		fprintf(stderr, "usage: threads ADDRESS PORT THREADS CONNECTIONS [forks]\n");
		return 2;
	}
	server.sin_family = AF_INET;
	server.sin_port = htons((unsigned short)atoi(argv[2]));
	connections = atoi(argv[4]);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(size_t)i) != 0)
			die("pthread_create", EAGAIN);
	if (argc > 5 && pthread_create(&forker, NULL, run_forks, NULL) != 0)
		die("pthread_create", EAGAIN);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	done = 1;
	if (argc > 5)
		pthread_join(forker, NULL);
	printf("done %d\n", count * connections);
	return 0;
}
