/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ask.c - "convertd status": asks the running converter for its status and prints it
 *
 * It sends one request of HTTP/1.0, whose answer ends with the connection, so that only the status line and the
 * empty line have to be understood. The process at that address may not be a converter, so
 * the answer is read up to a limit, and printed without control characters.
 */
#include "config.h"

#include "convertd/observe/ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_MAX (256 * 1024)
#define TIMEOUT_SECONDS 10

/* Returns a connected socket or -errno. */
static int open_connection(const struct metrics_address *where)
{
	static const struct timeval timeout = { .tv_sec = TIMEOUT_SECONDS };
	struct sockaddr_un path = { .sun_family = AF_UNIX };
	const struct sockaddr *address = (const struct sockaddr *)&path;
	socklen_t len = sizeof(path);
	int fd, error;

	if (where->path[0]) {
		strcpy(path.sun_path, where->path);
	} else {
		address = &where->address.sa;
		len = sockaddr_ip_len(&where->address);
	}
	fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, address, len) == 0)
		return fd;
	/* connect() fails with EINPROGRESS when the time-out of SO_SNDTIMEO has passed (socket(7)). */
	error = errno == EINPROGRESS ? ETIMEDOUT : errno;
	close(fd);
	return -error;
}

/* Sends the request and reads the answer to its end. Returns the number of its bytes, or -errno. */
static ssize_t exchange(int fd, char answer[static ANSWER_MAX + 1])
{
	static const char request[] = "GET /status HTTP/1.0\r\nHost: convertd\r\n\r\n";
	size_t len = 0;
	ssize_t n;

	if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0)
		return -errno;
	while (len < ANSWER_MAX && (n = recv(fd, answer + len, ANSWER_MAX - len, 0)) != 0) {
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		len += (size_t)n;
	}
	answer[len] = '\0';
	return (ssize_t)len;
}

/* Returns the body of an answer with status 200, or NULL. */
static const char *find_body(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n");

	if (strncmp(answer, "HTTP/1.", 7) != 0 || strncmp(answer + 8, " 200 ", 5) != 0 || !body)
		return NULL;
	return body + 4;
}

static void print_body(const char *body)
{
	for (; *body; body++)
		putchar((*body >= ' ' && *body < 127) || *body == '\n' ? *body : '?');
}

int ask_status(const struct metrics_address *where)
{
	char *answer = malloc(ANSWER_MAX + 1), name[METRICS_ADDRESS_STRLEN];
	int fd = answer ? open_connection(where) : -ENOMEM;
	ssize_t len = fd < 0 ? fd : exchange(fd, answer);
	const char *body = len < 0 ? NULL : find_body(answer);

	metrics_address_format(where, name);
	if (fd >= 0)
		close(fd);
	if (body)
		print_body(body);
	else if (len < 0)
		fprintf(stderr,
			"convertd: status: %s: %s; is convertd running, with --metrics %s?\n", name,
			strerror((int)-len), name);
	else
		fprintf(stderr, "convertd: status: %s: no convertd answers there\n", name);
	free(answer);
	return body && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
