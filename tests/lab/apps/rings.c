/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rings.c - connects by the C library's connect(), and sends and receives by io_uring
 *
 * rings WAY raw|libc|files first|last ADDRESS PORT COUNT: connections to an echo server, one after the other. The program makes the ring by
 * a system call of its own or by the C library's syscall(), before the first connect() or after it. "files": as "raw" and "first", and the
 * ring holds each socket as a registered file from before its connect().
 *
 * The ways: connect() blocks ("blocking"), or doesn't, and the program waits until the socket is writable by the ring ("waiting"), by
 * poll() or by epoll_wait() ("polling", "epolling"), and then asks for SO_ERROR; or it sends by the ring, which waits, and never asks
 * ("sending"), or asks for SO_ERROR after that ("late"). "changing" is "waiting", and "late" for the last connection. "together" is
 * "waiting", but begins all connections first.
 *
 * Prints a line for each connection: "right", "failed: ERROR", or "wrong: " and bytes that no echo server sends. At the end a line on
 * standard error says how many connect() calls have waited for the connection.
 */
#include "common/rawcall.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define HELLO "hello, I am a ring"
#define CONNECTIONS_MAX 1000

static struct {
	int fd;
	struct io_uring_params params;
	uint8_t *sq, *cq;
	struct io_uring_sqe *sqes;
	bool holds; /* the socket, as its file 0 */
} ring;

static uint32_t *at(uint8_t *rings, uint32_t offset)
{
	return (uint32_t *)(void *)(rings + offset);
}

static void *map(size_t bytes, off_t offset)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, offset);

	if (memory == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return memory;
}

static void ring_make(bool raw)
{
	const struct io_uring_params *params = &ring.params;

	if (ring.sqes)
		return;
	ring.fd = (int)(raw ? RAWCALL(SYS_io_uring_setup, 4, &ring.params) : syscall(SYS_io_uring_setup, 4, &ring.params));
	if (ring.fd < 0) {
		perror("io_uring_setup");
		exit(77);
	}
	ring.sq = map(params->sq_off.array + params->sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
	ring.cq = map(params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
	ring.sqes = map(params->sq_entries * sizeof(struct io_uring_sqe), (off_t)IORING_OFF_SQES);
}

/* Has the ring hold @fd, or no file (-1). */
static void ring_hold(int fd)
{
	if (ring.holds)
		RAWCALL(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_FILES, NULL, 0);
	ring.holds = fd >= 0;
	if (fd >= 0 && RAWCALL(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, &fd, 1) < 0) {
		perror("io_uring_register");
		exit(77);
	}
}

/* Submits an operation and waits for its end. Returns its result, or -errno. */
static int ring_do(struct io_uring_sqe what)
{
	uint32_t tail = *at(ring.sq, ring.params.sq_off.tail);
	uint32_t mask = *at(ring.sq, ring.params.sq_off.ring_mask);
	uint32_t *head = at(ring.cq, ring.params.cq_off.head);
	const struct io_uring_cqe *cqes = (struct io_uring_cqe *)(void *)(ring.cq + ring.params.cq_off.cqes);
	int result;

	if (ring.holds) {
		what.fd = 0;
		what.flags |= IOSQE_FIXED_FILE;
	}
	ring.sqes[tail & mask] = what;
	at(ring.sq, ring.params.sq_off.array)[tail & mask] = tail & mask;
	__atomic_store_n(at(ring.sq, ring.params.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
	while (RAWCALL(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		if (errno != EINTR)
			return -errno;
	while (__atomic_load_n(at(ring.cq, ring.params.cq_off.tail), __ATOMIC_ACQUIRE) == *head)
		if (RAWCALL(SYS_io_uring_enter, ring.fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0 && errno != EINTR)
			return -errno;
	result = cqes[*head & *at(ring.cq, ring.params.cq_off.ring_mask)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return result;
}

static int transfer(int fd, uint8_t opcode, char *bytes, size_t len)
{
	return ring_do((struct io_uring_sqe){ .opcode = opcode, .fd = fd, .addr = (uintptr_t)bytes, .len = (uint32_t)len,
					      .msg_flags = MSG_NOSIGNAL });
}

static int wait_by_ring(int fd)
{
	return ring_do((struct io_uring_sqe){ .opcode = IORING_OP_POLL_ADD, .fd = fd, .poll32_events = POLLOUT });
}

static int wait_by_poll(int fd)
{
	struct pollfd writable = { .fd = fd, .events = POLLOUT };

	return poll(&writable, 1, -1) < 0 ? -errno : 0;
}

static int wait_by_epoll(int fd)
{
	static int epfd = -1;
	struct epoll_event event = { .events = EPOLLOUT, .data.fd = fd };

	if (epfd < 0)
		epfd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) < 0 || epoll_wait(epfd, &event, 1, -1) < 0 ||
	    epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL) < 0)
		return -errno;
	return 0;
}

static const struct way {
	const char *name;
	int (*wait)(int fd); /* until the socket is writable; returns at least 0, or -errno */
	bool blocks, asks_late, changes, together;
} ways[] = {
	{ .name = "blocking", .blocks = true },
	{ .name = "waiting", .wait = wait_by_ring },
	{ .name = "polling", .wait = wait_by_poll },
	{ .name = "epolling", .wait = wait_by_epoll },
	{ .name = "sending" },
	{ .name = "late", .asks_late = true },
	{ .name = "changing", .wait = wait_by_ring, .changes = true },
	{ .name = "together", .wait = wait_by_ring, .together = true },
};

/* SO_ERROR. Returns 0 or -errno. */
static int error_of(int fd)
{
	socklen_t len = sizeof(int);
	int error = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? -errno : -error;
}

/* Returns 0 or -errno. */
static int wait_for_connection(const struct way *way, int fd)
{
	int ret = way->wait ? way->wait(fd) : 0;

	return way->wait && ret >= 0 ? error_of(fd) : ret;
}

static int talk(bool asks_late, int fd, char answer[static sizeof(HELLO)], size_t *got)
{
	char hello[] = HELLO;
	int ret = transfer(fd, IORING_OP_SEND, hello, strlen(HELLO)), error;

	if (ret > 0 && asks_late && (error = error_of(fd)) < 0)
		ret = error;
	while (ret > 0 && *got < strlen(HELLO)) {
		ret = transfer(fd, IORING_OP_RECV, answer + *got, strlen(HELLO) - *got);
		*got += ret > 0 ? (size_t)ret : 0;
		if (memcmp(answer, HELLO, *got) != 0)
			return 0;
	}
	return ret;
}

static void say(int error, const char *bytes, size_t len)
{
	if (memcmp(bytes, HELLO, len) != 0) {
		printf("wrong:");
		for (size_t i = 0; i < len; i++)
			printf(" %02x", (uint8_t)bytes[i]);
		printf("\n");
	} else if (error < 0) {
		printf("failed: %s\n", strerror(-error));
	} else {
		printf(len == strlen(HELLO) ? "right\n" : "failed: it ended\n");
	}
	fflush(stdout);
}

struct connection {
	int fd, error; /* 0 or -errno */
};

static struct connection begin(const struct way *way, const struct sockaddr_in *server, bool files, bool raw)
{
	struct connection made = { .fd = socket(AF_INET, SOCK_STREAM | (way->blocks ? 0 : SOCK_NONBLOCK), 0) };

	if (files)
		ring_hold(made.fd);
	if (connect(made.fd, (const struct sockaddr *)server, sizeof(*server)) != 0 && errno != EINPROGRESS)
		made.error = -errno;
	ring_make(raw);
	return made;
}

static void go_on(const struct way *way, struct connection *made, bool last)
{
	const bool asks_late = way->asks_late || (way->changes && last);
	char answer[sizeof(HELLO)] = "";
	size_t got = 0;
	int ret = made->error;

	if (ret == 0 && !asks_late)
		ret = wait_for_connection(way, made->fd);
	if (ret == 0)
		ret = talk(asks_late, made->fd, answer, &got);
	say(ret, answer, got);
	ring_hold(-1);
	close(made->fd);
}

/* Tells whether @fd is connected, without asking a preloaded library. */
static bool is_connected(int fd)
{
	struct sockaddr_in peer;
	socklen_t len = sizeof(peer);

	return RAWCALL(SYS_getpeername, fd, &peer, &len) == 0;
}

int main(int argc, char *argv[])
{
	struct sockaddr_in server = { .sin_family = AF_INET };
	const bool files = argc == 7 && strcmp(argv[2], "files") == 0;
	const bool raw = files || (argc == 7 && strcmp(argv[2], "raw") == 0);
	static struct connection made[CONNECTIONS_MAX];
	const struct way *way = NULL;
	const int count = argc == 7 ? atoi(argv[6]) : 0;
	int waited = 0;

	for (size_t i = 0; argc == 7 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(argv[1], ways[i].name) == 0)
			way = &ways[i];
	if (!way || inet_pton(AF_INET, argv[4], &server.sin_addr) != 1 || count > CONNECTIONS_MAX)
		return 2;
	server.sin_port = htons((uint16_t)atoi(argv[5]));
	if (strcmp(argv[3], "first") == 0)
		ring_make(raw);
	for (int i = 0; i < count; i++) {
		made[i] = begin(way, &server, files, raw);
		waited += is_connected(made[i].fd);
		if (!way->together)
			go_on(way, &made[i], i == count - 1);
	}
	for (int i = 0; i < count && way->together; i++)
		go_on(way, &made[i], i == count - 1);
	fprintf(stderr, "%d of %d connect() have waited\n", waited, count);
	return 0;
}
