/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tally.c - makes connections and counts their outcomes: tally ADDRESS SERVER COUNT AT_ONCE METHOD
 *
 * SERVER is "echo" (port 7): each connection sends its part of a pattern and a FIN, and expects the same bytes back. Or
 * "chorus" (port 1900), which speaks at once and sends each byte from 0x80 to 0xff. At most AT_ONCE connections are under way
 * at a time. METHOD is "blocking", "epoll" (each socket is registered before its connect(), as event loops do), "fastopen"
 * (MSG_FASTOPEN) or "fastopen-connect" (TCP_FASTOPEN_CONNECT), and with WITH_URING "uring" and "uring-recv". All but "epoll"
 * use AT_ONCE threads. With OWN_WAITS "epoll" waits as Bun does. Prints one line,
 *
 *   done=20 failed=1 foreign=0 peers=0 early=0 slowest=0.3 late=0 errno-104=1 (uring)
 *
 * failed: connections without all of their bytes, by their errors; EPROTO: an end too soon. foreign: bytes that differ from
 * the server's, or come behind its last. peers: established connections whose getpeername() isn't the server. early: connections that
 * were refused after they had been established. slowest: milliseconds of the longest non-blocking connect(). late: how many of these took
 * more than LATE_MS. In brackets: the calls that were used, as "uring" methods may have to do without io_uring.
 */
#include "tally.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#ifndef TCP_FASTOPEN_CONNECT
#define TCP_FASTOPEN_CONNECT 30
#endif

#define ECHOED 20000 /* bytes, and as many more as the connection's number */
/* Linux may report the end of a stream a minute late where packets are lost (net.mptcp.close_timeout, doc/limits.md). */
#define PATIENCE_MS 100000
#define ERRORS 160
#define LATE_MS 10 /* no call of an event loop should take so long */

struct conversation {
	int fd;
	size_t number, expected, sent, received, foreign;
	int error;
	bool established;
};

static union {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
} server;
static socklen_t server_len;
static bool echo;
static const struct way *way = &plain_way;
static unsigned char pattern[ECHOED + 4096], chorus[128];

static struct {
	pthread_mutex_t lock;
	size_t next, count;
	size_t done, failed, foreign, peers, early, late, errors[ERRORS];
	double slowest;
} tally = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* --- the plain way --------------------------------------------------------- */

static bool plain_open(void)
{
	return true;
}

static ssize_t plain_send(int fd, const void *data, size_t len)
{
	return send(fd, data, len, MSG_NOSIGNAL);
}

static ssize_t plain_recv(int fd, void *data, size_t len)
{
	return recv(fd, data, len, 0);
}

static int plain_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	return connect(fd, to, len);
}

const struct way plain_way = { "plain", plain_open, plain_connect, plain_send, plain_recv };

/* Connects with the first bytes, where there are any to send. */
static int fastopen_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	ssize_t sent;

	if (!echo)
		return connect(fd, to, len);
	sent = sendto(fd, pattern, 100, MSG_FASTOPEN | MSG_NOSIGNAL, to, len);
	return sent < 0 ? -1 : (int)sent;
}

static const struct way fastopen_way = { "fastopen", plain_open, fastopen_connect, plain_send, plain_recv };

/* connect() returns at once, and the first write sends the SYN. */
static int deferred_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	static const int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)) != 0)
		return -1;
	return connect(fd, to, len);
}

static const struct way deferred_way = { "fastopen-connect", plain_open, deferred_connect, plain_send, plain_recv };

/* --- one conversation -------------------------------------------------------- */

static const unsigned char *expected_bytes(void)
{
	return echo ? pattern : chorus;
}

static void look_at(struct conversation *c, const unsigned char *data, size_t len)
{
	for (size_t i = 0; i < len; i++, c->received++)
		if (c->received >= c->expected || data[i] != expected_bytes()[c->received])
			c->foreign++;
}

static bool is_server(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} peer = { 0 };
	socklen_t len = sizeof(peer);

	if (getpeername(fd, &peer.any, &len) != 0)
		return errno == ENOTCONN; /* reset meanwhile */
	if (peer.any.sa_family != server.any.sa_family)
		return false;
	if (peer.any.sa_family == AF_INET)
		return peer.in.sin_port == server.in.sin_port && peer.in.sin_addr.s_addr == server.in.sin_addr.s_addr;
	return peer.in6.sin6_port == server.in6.sin6_port &&
	       memcmp(&peer.in6.sin6_addr, &server.in6.sin6_addr, sizeof(peer.in6.sin6_addr)) == 0;
}

/* Takes the next conversation; returns false if none is left. */
static bool begin(struct conversation *c)
{
	pthread_mutex_lock(&tally.lock);
	size_t number = tally.next < tally.count ? tally.next++ : SIZE_MAX;
	pthread_mutex_unlock(&tally.lock);
	if (number == SIZE_MAX)
		return false;
	*c = (struct conversation){ .fd = -1, .number = number };
	c->expected = echo ? ECHOED + number % 4096 : sizeof(chorus);
	return true;
}

static void end(struct conversation *c)
{
	bool peer = !c->established || is_server(c->fd);

	if (!c->error && c->received < c->expected)
		c->error = EPROTO;
	pthread_mutex_lock(&tally.lock);
	tally.done += !c->error;
	tally.failed += !!c->error;
	tally.errors[c->error < ERRORS ? c->error : 0] += !!c->error;
	tally.foreign += c->foreign;
	tally.peers += !peer;
	tally.early += c->established && c->error == ECONNREFUSED;
	pthread_mutex_unlock(&tally.lock);
	close(c->fd);
}

static int open_socket(int flags)
{
	int fd = socket(server.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	if (fd < 0)
		die("socket");
	return fd;
}

/* --- a thread for each ---------------------------------------------------------- */

static int converse(struct conversation *c)
{
	static const struct timeval limit = { PATIENCE_MS / 1000, 0 };
	unsigned char data[4096];
	size_t sent = 0;
	ssize_t n;

	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	n = way->connect(c->fd, &server.any, server_len);
	if (n < 0)
		return errno;
	sent = (size_t)n;
	while (echo && sent < c->expected) {
		n = way->send(c->fd, pattern + sent, c->expected - sent);
		if (n < 0)
			return errno;
		sent += (size_t)n;
	}
	if (echo && shutdown(c->fd, SHUT_WR) != 0)
		return errno;
	while ((n = way->recv(c->fd, data, sizeof(data))) > 0) {
		c->established = true;
		look_at(c, data, (size_t)n);
	}
	return n < 0 ? errno : 0;
}

static void *work(void *unused)
{
	struct conversation c;

	(void)unused;
	while (begin(&c)) {
		c.fd = open_socket(0);
		c.error = converse(&c);
		end(&c);
	}
	return NULL;
}

static void with_threads(size_t at_once)
{
	pthread_t *threads = calloc(at_once, sizeof(*threads));

	for (size_t i = 0; i < at_once; i++)
		if (!threads || pthread_create(&threads[i], NULL, work, NULL) != 0)
			die("pthread_create");
	for (size_t i = 0; i < at_once; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

/* --- an event loop ---------------------------------------------------------------- */

static void start(int epoll, struct conversation *c)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT, .data.ptr = c };
	double before;

	c->fd = open_socket(SOCK_NONBLOCK);
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
		die("epoll_ctl");
	before = now_ms();
	if (connect(c->fd, &server.any, server_len) != 0 && errno != EINPROGRESS)
		c->error = errno;
	before = now_ms() - before;
	if (before > tally.slowest)
		tally.slowest = before;
	tally.late += before > LATE_MS;
}

/* Sends as much as the socket takes. When all is sent, only waits for input. */
static void send_more(int epoll, struct conversation *c)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
	ssize_t n = 0;

	while (echo && c->sent < c->expected && (n = plain_send(c->fd, pattern + c->sent, c->expected - c->sent)) > 0)
		c->sent += (size_t)n;
	if (n < 0 && errno != EAGAIN)
		c->error = errno;
	if (n < 0)
		return;
	if (echo)
		shutdown(c->fd, SHUT_WR);
	epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
}

/* Returns whether the conversation is over. */
static bool step(int epoll, struct conversation *c, unsigned events)
{
	socklen_t len = sizeof(c->error);
	unsigned char data[4096];
	ssize_t n = -1;

	/* a socket that isn't connected yet is writable and hung up for epoll(7) */
	if (!c->established && !(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
		return false;
	if (!c->established)
		getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &c->error, &len);
	if (!c->error && events & EPOLLOUT)
		send_more(epoll, c);
	if (c->error)
		return true;
	c->established = true;
	while ((n = plain_recv(c->fd, data, sizeof(data))) > 0)
		look_at(c, data, (size_t)n);
	if (n < 0 && errno == EAGAIN)
		return false;
	c->error = n < 0 ? errno : 0;
	return true;
}

#ifdef OWN_WAITS
#include "common/rawcall.h"

/* The section by which convertize knows Bun, and its way to wait: by its own system call, past the C library. */
__attribute__((section(".bun"), used)) static char bun[8];

static int wait_for_events(int epoll, struct epoll_event *events, int count, int ms)
{
	const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	return (int)RAWCALL(SYS_epoll_pwait2, epoll, events, count, &time, NULL, 8);
}
#else
#define wait_for_events epoll_wait
#endif

static void with_epoll(size_t at_once)
{
	struct conversation *all = calloc(at_once, sizeof(*all)), *c;
	struct epoll_event events[64];
	int epoll = epoll_create1(EPOLL_CLOEXEC), ready;
	size_t open = 0;

	for (c = all; c < all + at_once && begin(c); c++, open++)
		start(epoll, c);
	while (open > 0) {
		ready = wait_for_events(epoll, events, 64, PATIENCE_MS);
		if (ready < 0)
			die("epoll_wait");
		if (ready == 0) {
			errno = ETIMEDOUT;
			die("connections that don't end");
		}
		for (int i = 0; i < ready; i++) {
			c = events[i].data.ptr;
			if (!c->error && !step(epoll, c, events[i].events))
				continue;
			end(c);
			if (begin(c))
				start(epoll, c);
			else
				open--;
		}
	}
	close(epoll);
	free(all);
}

/* --- the command line ----------------------------------------------------------- */

static void set_server(const char *address, const char *kind)
{
	in_port_t port;

	echo = strcmp(kind, "echo") == 0;
	port = htons(echo ? 7 : 1900);
	if (inet_pton(AF_INET, address, &server.in.sin_addr) == 1) {
		server.in.sin_family = AF_INET;
		server.in.sin_port = port;
		server_len = sizeof(server.in);
	} else if (inet_pton(AF_INET6, address, &server.in6.sin6_addr) == 1) {
		server.in6.sin6_family = AF_INET6;
		server.in6.sin6_port = port;
		server_len = sizeof(server.in6);
	} else {
		errno = EINVAL;
		die(address);
	}
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (unsigned char)(i % 251);
	for (size_t i = 0; i < sizeof(chorus); i++)
		chorus[i] = (unsigned char)(0x80 + i);
}

static void set_way(const char *method)
{
	static const struct way *const ways[] = {
		&fastopen_way,
		&deferred_way,
#ifdef WITH_URING
		&uring_way,
		&uring_recv_way,
#endif
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(method, ways[i]->name) == 0)
			way = ways[i];
	if (!way->open())
		way = &plain_way;
}

static void report(void)
{
	printf("done=%zu failed=%zu foreign=%zu peers=%zu early=%zu slowest=%.1f late=%zu", tally.done, tally.failed, tally.foreign,
	       tally.peers, tally.early, tally.slowest, tally.late);
	for (int error = 0; error < ERRORS; error++)
		if (tally.errors[error])
			printf(" errno-%d=%zu", error, tally.errors[error]);
	printf(" (%s)\n", way->name);
}

int main(int argc, char **argv)
{
	size_t at_once;

	if (argc != 6) {
		fprintf(stderr, "usage: tally ADDRESS echo|chorus COUNT AT_ONCE METHOD\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	set_server(argv[1], argv[2]);
	tally.count = strtoul(argv[3], NULL, 10);
	at_once = strtoul(argv[4], NULL, 10);
	set_way(argv[5]);
	if (strcmp(argv[5], "epoll") == 0)
		with_epoll(at_once);
	else
		with_threads(at_once);
	report();
	return 0;
}
