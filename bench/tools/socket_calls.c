/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socket_calls.c - what each system call of a short connection takes: socket_calls ADDRESS COUNT
 *
 * An ordinary program with blocking calls. It makes COUNT connections to the echo server at port 7, one after the other,
 * sends a byte on each and receives it, and prints a line for each call: its name and how many nanoseconds it has taken each
 * time. A call is made when it needn't wait for the peer, but connect(), which does.
 */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SOCKET, CONNECT, GETPEERNAME, SEND, EPOLL_WAIT, RECV, GETPPID, CLOSE, CALLS_COUNT };

static const char *const names[CALLS_COUNT] = {
	"socket", "connect", "getpeername", "send", "epoll_wait", "recv", "getppid", "close",
};

static long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static long long time_of_call; /* of the call that is made */

/* Times a call; the program ends if it fails. */
#define TIMED(ns, call, result)                          \
	do {                                             \
		time_of_call = now();                    \
		(result) = (call);                       \
		*(ns) = now() - time_of_call;            \
		if ((result) < 0)                        \
			err(1, "%s", #call);             \
	} while (0)

static void converse(const struct sockaddr_in *server, int epoll, long long *ns[CALLS_COUNT], int i)
{
	struct sockaddr_in peer;
	socklen_t len = sizeof(peer);
	struct epoll_event event = { .events = EPOLLIN };
	struct pollfd ready = { .events = POLLIN };
	char byte = 'x';
	long result;
	int fd;

	TIMED(&ns[SOCKET][i], socket(AF_INET, SOCK_STREAM, 0), fd);
	TIMED(&ns[CONNECT][i], connect(fd, (const struct sockaddr *)server, sizeof(*server)), result);
	TIMED(&ns[GETPEERNAME][i], getpeername(fd, (struct sockaddr *)&peer, &len), result);
	TIMED(&ns[SEND][i], send(fd, &byte, 1, 0), result);
	ready.fd = fd;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0 || poll(&ready, 1, 10000) != 1)
		err(1, "no answer");
	TIMED(&ns[EPOLL_WAIT][i], epoll_wait(epoll, &event, 1, 0), result);
	TIMED(&ns[RECV][i], recv(fd, &byte, 1, MSG_DONTWAIT), result);
	TIMED(&ns[GETPPID][i], (long)getppid(), result);
	TIMED(&ns[CLOSE][i], close(fd), result);
}

int main(int argc, char **argv)
{
	struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons(7) };
	int epoll = epoll_create1(EPOLL_CLOEXEC), count;
	long long *ns[CALLS_COUNT];

	if (argc != 3 || inet_pton(AF_INET, argv[1], &server.sin_addr) != 1)
		errx(2, "usage: socket_calls ADDRESS COUNT");
	count = atoi(argv[2]);
	for (int call = 0; call < CALLS_COUNT; call++)
		if (!(ns[call] = calloc((size_t)count, sizeof(*ns[call]))))
			err(1, "memory");
	for (int i = 0; i < count; i++)
		converse(&server, epoll, ns, i);
	for (int call = 0; call < CALLS_COUNT; call++) {
		printf("%s", names[call]);
		for (int i = 0; i < count; i++)
			printf(" %lld", ns[call][i]);
		printf("\n");
	}
	return 0;
}
