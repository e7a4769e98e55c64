/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dials.c - dials a silent host many times a second, as a crawler does, and now and then one that echoes
 *
 *     dials SILENT-ADDRESS PORT RATE SECONDS LIVE-ADDRESS PORT COUNT
 *
 * Each dial has 3 s, and the first one is to the live host. Prints how many of the COUNT dials to the live host got their echo, and why the
 * others didn't.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PENDING_MAX 256
#define TIMEOUT_MS 3000

static struct dial {
	int fd;
	bool live, sent;
	long ends_ms;
} dials[PENDING_MAX];
static int pending, answered;

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void failed(const char *what, int error)
{
	fprintf(stderr, "a live dial: %s: %s\n", what, strerror(error));
}

static void begin(const char *address, const char *port, bool live)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	inet_pton(AF_INET, address, &to.sin_addr);
	if (fd < 0 || pending == PENDING_MAX)
		exit(2);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS) {
		if (live)
			failed("connect", errno);
		close(fd);
		return;
	}
	dials[pending++] = (struct dial){ .fd = fd, .live = live, .ends_ms = now_ms() + TIMEOUT_MS };
}

static void end(int i)
{
	close(dials[i].fd);
	dials[i] = dials[--pending];
}

/* Returns whether the dial has ended. */
static bool go_on(struct dial *dial, short events)
{
	char byte = 'x';
	int error = 0;
	socklen_t len = sizeof(error);

	if (events && !dial->sent) {
		getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &error, &len);
		if (!error && send(dial->fd, &byte, 1, MSG_NOSIGNAL) < 0)
			error = errno;
		if (error && dial->live)
			failed("connecting", error);
		dial->sent = true;
		return error != 0;
	}
	if (events && recv(dial->fd, &byte, 1, 0) == 1) {
		answered += dial->live;
		return true;
	}
	if (now_ms() < dial->ends_ms && !(events & (POLLERR | POLLHUP)))
		return false;
	if (dial->live)
		failed("waiting", ETIMEDOUT);
	return true;
}

int main(int argc, char **argv)
{
	const long started = now_ms();
	long silent = 0, live = 0, rate, seconds, count;

	if (argc != 8)
		return 2;
	rate = atol(argv[3]);
	seconds = atol(argv[4]);
	count = atol(argv[7]);
	while (now_ms() - started < seconds * 1000 || pending) {
		const long ms = now_ms() - started;
		struct pollfd fds[PENDING_MAX];

		if (live < count && live * seconds * 1000 <= ms * count) {
			begin(argv[5], argv[6], true);
			live++;
		}
		if (answered && ms < seconds * 1000 && silent * 1000 <= ms * rate) {
			begin(argv[1], argv[2], false);
			silent++;
		}
		for (int i = 0; i < pending; i++)
			fds[i] = (struct pollfd){ dials[i].fd, dials[i].sent ? POLLIN : POLLOUT, 0 };
		poll(fds, (nfds_t)pending, 20);
		for (int i = pending - 1; i >= 0; i--)
			if (go_on(&dials[i], fds[i].revents))
				end(i);
	}
	printf("live dials: %d of %ld\n", answered, count);
	return 0;
}
