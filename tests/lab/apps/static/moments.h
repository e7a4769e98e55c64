/* SPDX-License-Identifier: BSD-3-Clause */
/* moments.h - what moments.c and again.c share: the socket, its server, and waiting for another thread */
#ifndef MOMENTS_H
#define MOMENTS_H

#include "../await.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TEXT "hello"
#define PATIENCE_MS 20000
#define BEGUN_MS 80

static struct sockaddr_in server;
static int sock;

static inline double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static inline const char *said(long result)
{
	return result < 0 ? strerror(errno) : "taken";
}

/* Has the server echo a few bytes, and prints the outcome. */
static inline void talk(int fd)
{
	char bytes[64] = "", host[INET6_ADDRSTRLEN] = "";
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} peer = { 0 };
	socklen_t len = sizeof(peer), error_len = sizeof(int);
	int error = -1;
	ssize_t got, sum = 0;

	poll(&ready, 1, PATIENCE_MS);
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_len);
	getpeername(fd, &peer.any, &len);
	if (peer.any.sa_family == AF_INET6)
		inet_ntop(AF_INET6, &peer.in6.sin6_addr, host, sizeof(host));
	else
		inet_ntop(AF_INET, &peer.in.sin_addr, host, sizeof(host));
	printf("socket: error %d, peer %s\n", error, host);
	fcntl(fd, F_SETFL, 0);
	if (send(fd, TEXT, strlen(TEXT), MSG_NOSIGNAL) < 0) {
		printf("send: %s\n", strerror(errno));
		return;
	}
	shutdown(fd, SHUT_WR);
	while ((got = recv(fd, bytes + sum, sizeof(bytes) - 1 - (size_t)sum, 0)) > 0)
		sum += got;
	printf("echo: %s%s\n", bytes, got < 0 ? strerror(errno) : "");
	if (strcmp(bytes, TEXT) != 0 && sum)
		printf("foreign: %zd bytes\n", sum);
}

/* Tells whether a thread is in connect(), or in a call by which the preloaded library's connect() waits. */
static inline bool is_connecting(pid_t tid)
{
	const long call = call_of(tid);

#ifdef SYS_poll
	if (call == SYS_poll)
		return true;
#endif
	return call == SYS_connect || call == SYS_recvfrom || call == SYS_ppoll;
}

/* Tells whether a TCP connection of this network namespace is there or is being made, whoever makes it. */
static inline bool is_under_way(void)
{
	FILE *file = fopen("/proc/self/net/tcp", "r");
	unsigned int state;
	char line[256];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%*d: %*s %*s %x", &state) == 1 && (state == TCP_SYN_SENT || state == TCP_ESTABLISHED);
	if (file)
		fclose(file);
	return found;
}

/*
 * Waits until a thread has been in connect() for BEGUN_MS and a connection is under way, so that the library or supervisor has begun its
 * attempt. It may be another program's connection, as nothing shows for whom the supervisor makes one; hence the time. The answer takes
 * several times as long. Earlier the descriptor may still be another file's, and a signal may end the call undone.
 */
static inline void await_connect(pid_t tid)
{
	static const struct timespec pause = { .tv_nsec = 1000000 };

	const double end = now_ms() + PATIENCE_MS;
	double since = now_ms();

	while (now_ms() < since + BEGUN_MS && now_ms() < end) {
		nanosleep(&pause, NULL);
		if (!is_connecting(tid) || !is_under_way())
			since = now_ms();
	}
}

static inline void start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	if (pthread_create(thread, NULL, run, argument) != 0)
		exit(2);
}

#endif
