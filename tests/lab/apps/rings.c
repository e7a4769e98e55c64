/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rings.c - connects by the C library's connect(), and does all else by io_uring
 *
 * rings blocking|waiting RAW|LIBC first|last ADDRESS PORT COUNT: connections to an echo server, one after the other. "waiting" ones don't
 * block in connect(): the ring tells that the socket is writable. The ring is made by a system call of the program's own
 * or by the C library's syscall(), before the first connection or behind the first connect().
 *
 * For each connection a line: "right", "failed: ERROR", or "wrong: " and the bytes that no echo server sends.
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
#include <sys/mman.h>
#include <sys/socket.h>

#define HELLO "hello, I am a ring"

static struct {
	int fd;
	struct io_uring_params params;
	uint8_t *sq, *cq;
	struct io_uring_sqe *sqes;
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

/* One operation from its submission to its end. Returns its result, or -errno. */
static int ring_do(struct io_uring_sqe what)
{
	uint32_t tail = *at(ring.sq, ring.params.sq_off.tail);
	uint32_t mask = *at(ring.sq, ring.params.sq_off.ring_mask);
	uint32_t *head = at(ring.cq, ring.params.cq_off.head);
	const struct io_uring_cqe *cqes = (struct io_uring_cqe *)(void *)(ring.cq + ring.params.cq_off.cqes);
	int result;

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

/* Waits until the socket is writable. Returns 0 or -errno. */
static int wait_writable(int fd)
{
	socklen_t len = sizeof(int);
	int error = 0, events = ring_do((struct io_uring_sqe){ .opcode = IORING_OP_POLL_ADD, .fd = fd, .poll32_events = POLLOUT });

	if (events < 0)
		return events;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? -errno : -error;
}

static int talk(int fd, char answer[static sizeof(HELLO)], size_t *got)
{
	char hello[] = HELLO;
	int ret = transfer(fd, IORING_OP_SEND, hello, strlen(HELLO));

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

int main(int argc, char *argv[])
{
	struct sockaddr_in server = { .sin_family = AF_INET };
	bool waiting = argc == 7 && strcmp(argv[1], "waiting") == 0, raw = argc == 7 && strcmp(argv[2], "raw") == 0;

	if (argc != 7 || inet_pton(AF_INET, argv[4], &server.sin_addr) != 1)
		return 2;
	server.sin_port = htons((uint16_t)atoi(argv[5]));
	if (strcmp(argv[3], "first") == 0)
		ring_make(raw);
	for (int i = atoi(argv[6]); i > 0; i--) {
		int fd = socket(AF_INET, SOCK_STREAM | (waiting ? SOCK_NONBLOCK : 0), 0);
		int ret = connect(fd, (struct sockaddr *)&server, sizeof(server)) == 0 || errno == EINPROGRESS ? 0 : -errno;
		char answer[sizeof(HELLO)] = "";
		size_t got = 0;

		ring_make(raw);
		if (ret == 0 && waiting)
			ret = wait_writable(fd);
		if (ret == 0)
			ret = talk(fd, answer, &got);
		say(ret, answer, got);
		close(fd);
	}
	return 0;
}
