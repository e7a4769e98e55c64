/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * supervised.c - a client that no library reaches: it is linked statically
 *
 *	supervised ADDRESS PORT [WORD]...
 *
 * connects once and has "hello" echoed. Each WORD changes one thing:
 *
 *	nonblocking   by a non-blocking socket that is in an epoll instance before it connects
 *	poll          by a non-blocking socket, waited for by poll()
 *	dup           it duplicates the socket's descriptor before it connects, and uses the duplicate
 *	fastopen      "hello" goes by sendto(MSG_FASTOPEN), in place of connect()
 *	sendmsg       likewise, by sendmsg()
 *	cloexec       its socket has SOCK_CLOEXEC
 *	options       it sets socket options before it connects, and prints them afterwards
 *	advice        it sets options that TCP has but MPTCP lacks, before it connects and after, and prints them
 *	ttl           it sets its packets' TTL, as a client does that wants to reach only its neighbours
 *	listen        it only listens, and connects to itself
 *	bind          it binds the socket to a port before it connects
 *	threads=N     N threads do all this, each for itself
 *	inherited     its socket is descriptor 9, a TCP socket that it inherits
 *	uring         it tries to set io_uring up first
 *	hidden        it isn't dumpable, so that only root may look into it
 *	x32           makes its socket, and connects, by x32's calls, which any amd64 program may
 *
 * It prints a line of NAME=VALUE for each connection. The tests compile it themselves, for several machines and C libraries.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TEXT "hello"

static int argument_count;
static char **arguments;
static struct sockaddr_storage server;
static socklen_t server_len;

static int has(const char *word)
{
	for (int i = 3; i < argument_count; i++)
		if (strcmp(arguments[i], word) == 0)
			return 1;
	return 0;
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static const char *show(const struct sockaddr_storage *addr, char text[64])
{
	char host[INET6_ADDRSTRLEN];
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;

	if (addr->ss_family == AF_INET)
		snprintf(text, 64, "%s:%d", inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host)), ntohs(in->sin_port));
	else
		snprintf(text, 64, "[%s]:%d", inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host)), ntohs(in6->sin6_port));
	return text;
}

static void set(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)) != 0)
		perror("setsockopt");
}

static int get(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	getsockopt(fd, level, name, &value, &len);
	return value;
}

/* Waits until the socket is writable. Returns the events. */
static unsigned int wait_writable(int epoll, int fd)
{
	struct pollfd polled = { .fd = fd, .events = POLLOUT };
	struct epoll_event event = { 0 };

	if (epoll < 0) {
		poll(&polled, 1, 20000);
		return (unsigned int)polled.revents;
	}
	epoll_wait(epoll, &event, 1, 20000);
	if (event.data.u64 && event.data.u64 != 0x1234567890abcdefU)
		fprintf(stderr, "the event's data has changed\n");
	return event.events;
}

#ifdef __x86_64__
#define X32 0x40000000
#else
#define X32 0
#endif

#define INHERITED 9

static int open_socket(int domain, int type)
{
	if (has("inherited"))
		return INHERITED;
	return has("x32") ? (int)syscall(X32 | SYS_socket, domain, type, 0) : socket(domain, type, 0);
}

/* Connects; returns the result of connect(), or of the call that replaces it. */
static long begin(int fd)
{
	struct iovec iov = { TEXT, strlen(TEXT) };
	struct msghdr message = { .msg_name = &server, .msg_namelen = server_len, .msg_iov = &iov, .msg_iovlen = 1 };

	if (has("fastopen"))
		return sendto(fd, TEXT, strlen(TEXT), MSG_FASTOPEN, (struct sockaddr *)&server, server_len);
	if (has("sendmsg"))
		return sendmsg(fd, &message, MSG_FASTOPEN);
	if (has("x32"))
		return syscall(X32 | SYS_connect, fd, &server, server_len);
	return connect(fd, (struct sockaddr *)&server, server_len);
}

static void advise(int fd)
{
	set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 12345);
	set(fd, IPPROTO_TCP, TCP_QUICKACK, 1);
	set(fd, IPPROTO_TCP, TCP_SYNCNT, 4);
	printf("timeout=%d syncnt=%d hops=%d wrong=%s\n", get(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), get(fd, IPPROTO_TCP, TCP_SYNCNT),
	       get(fd, IPPROTO_IP, IP_TTL),
	       setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &(int){ 1000 }, sizeof(int)) == 0 ? "taken" : strerror(errno));
}

/* Listens as servers do, in an epoll instance, and connects to itself. Prints the protocols of the sockets. */
static int listen_and_accept(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 77 };
	socklen_t len = sizeof(any);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), epoll = epoll_create1(0), to = socket(AF_INET, SOCK_STREAM, 0), got;

	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) != 0 || listen(fd, 5) != 0 ||
	    getsockname(fd, (struct sockaddr *)&any, &len) != 0 || connect(to, (struct sockaddr *)&any, len) != 0) {
		printf("error=%s\n", strerror(errno));
		return 1;
	}
	event.data.u64 = 0;
	epoll_wait(epoll, &event, 1, 20000);
	got = accept(fd, NULL, NULL);
	printf("listener=%d accepted=%d reuse=%d flags=%d data=%d\n", get(fd, SOL_SOCKET, SO_PROTOCOL), get(got, SOL_SOCKET, SO_PROTOCOL),
	       get(fd, SOL_SOCKET, SO_REUSEADDR), fcntl(fd, F_GETFL) & O_NONBLOCK, (int)event.data.u64);
	return 0;
}

static void *client(void *unused)
{
	const int nonblocking = has("nonblocking") || has("poll");
	int fd = open_socket(server.ss_family, SOCK_STREAM | (nonblocking ? SOCK_NONBLOCK : 0) | (has("cloexec") ? SOCK_CLOEXEC : 0));
	int epoll = has("nonblocking") ? epoll_create1(0) : -1, error, again;
	struct epoll_event event = { .events = EPOLLOUT, .data.u64 = 0x1234567890abcdefU };
	struct sockaddr_storage local, peer = { 0 };
	socklen_t len = sizeof(peer);
	char text[64], local_text[64], answer[16] = "", out[512];
	double started, called, connected;
	long got;
	size_t have = 0;
	int taken;

	if (fd < 0) {
		printf("socket=%s\n", strerror(errno));
		exit(2);
	}
	if (has("options")) {
		set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
		set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
		set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 77);
		set(fd, SOL_SOCKET, SO_RCVBUF, 50000);
		set(fd, IPPROTO_IP, IP_TOS, 16);
	}
	if (has("advice"))
		advise(fd);
	if (has("ttl"))
		set(fd, IPPROTO_IP, IP_TTL, 9);
	if (has("bind")) {
		struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(4567) };

		if (bind(fd, (struct sockaddr *)&any, sizeof(any)) != 0)
			perror("bind");
	}
	if (epoll >= 0)
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	if (has("dup")) {
		int other = dup(fd);

		fd = other;
	}
	started = now_ms();
	errno = 0;
	got = begin(fd);
	error = errno;
	called = now_ms();
	taken = got > 0;
	if (got < 0 && error == EINPROGRESS) {
		unsigned int events = wait_writable(epoll, fd);

		error = get(fd, SOL_SOCKET, SO_ERROR);
		got = error ? -1 : 0;
		if (!(events & EPOLLOUT))
			fprintf(stderr, "never writable: %x\n", events);
	}
	connected = now_ms();
	if (has("advice"))
		advise(fd);
	if (got < 0) {
		printf("error=%s call_ms=%.1f\n", strerror(error), called - started);
		return (void *)1;
	}
	again = connect(fd, (struct sockaddr *)&server, server_len) == 0 ? 0 : errno;
	if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0)
		perror("getpeername");
	len = sizeof(local);
	if (getsockname(fd, (struct sockaddr *)&local, &len) != 0)
		perror("getsockname");
	if (!taken && write(fd, TEXT, strlen(TEXT)) != (ssize_t)strlen(TEXT))
		perror("write");
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	while (have < strlen(TEXT) && (got = read(fd, answer + have, sizeof(answer) - 1 - have)) > 0)
		have += (size_t)got;
	snprintf(out, sizeof(out), "answer=%s peer=%s local=%s protocol=%d call_ms=%.1f connected_ms=%.1f again=%s cloexec=%d",
		 answer, show(&peer, text), show(&local, local_text), get(fd, SOL_SOCKET, SO_PROTOCOL), called - started,
		 connected - started, again == EISCONN ? "EISCONN" : again ? strerror(again) : "0",
		 fcntl(fd, F_GETFD) & FD_CLOEXEC);
	if (has("options"))
		printf("%s nodelay=%d keepalive=%d idle=%d rcvbuf=%d tos=%d\n", out, get(fd, IPPROTO_TCP, TCP_NODELAY),
		       get(fd, SOL_SOCKET, SO_KEEPALIVE), get(fd, IPPROTO_TCP, TCP_KEEPIDLE), get(fd, SOL_SOCKET, SO_RCVBUF),
		       get(fd, IPPROTO_IP, IP_TOS));
	else
		printf("%s\n", out);
	close(fd);
	return unused;
}

int main(int argc, char *argv[])
{
	struct sockaddr_in *in = (void *)&server;
	struct sockaddr_in6 *in6 = (void *)&server;
	pthread_t threads[1024];
	int count = 0;
	void *failed;

	argument_count = argc;
	arguments = argv;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3)
		return 2;
	if (inet_pton(AF_INET, argv[1], &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)atoi(argv[2]));
		server_len = sizeof(*in);
	} else if (inet_pton(AF_INET6, argv[1], &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)atoi(argv[2]));
		server_len = sizeof(*in6);
	} else {
		return 2;
	}
	if (has("hidden"))
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (has("uring"))
		printf("uring=%s\n", syscall(SYS_io_uring_setup, 8, NULL) < 0 ? strerror(errno) : "there");
	if (has("listen"))
		return listen_and_accept();
	for (int i = 3; i < argc; i++)
		if (strncmp(argv[i], "threads=", 8) == 0)
			count = atoi(argv[i] + 8);
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, client, NULL);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	if (count)
		return 0;
	failed = client(NULL);
	return failed ? 1 : 0;
}
