/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * first_byte.c - an ordinary program that asks a server for something and says how long it has waited
 *
 *   first_byte [--socks5 [--user NAME:PASSWORD]] [--fast-open] SERVER PORT THREADS
 *
 * It knows nothing of Convert: it runs as it is, or under libconvert.so. From its standard input it
 * takes lines "SOURCE ADDRESS PORT"; each is one connection, from the local address SOURCE to
 * ADDRESS and PORT, which are the server's or those of a SOCKS5 proxy (RFC 1928, with RFC 1929 for
 * a password). As curl does, it sends a SOCKS5 command when the one before has been answered. With
 * --fast-open the request goes out with the SYN, by MSG_FASTOPEN.
 *
 * Each of the threads serves one line at a time, by blocking calls, and prints the line with four
 * times in microseconds since the call of connect(): when TCP was connected, when the program knew
 * that the server was (behind the SOCKS5 commands), when the first byte of the response was there,
 * when all was. The first two are 0 with --fast-open, where one call does it all. Instead of the
 * times stands "failed" and why. The server is that of ../load; every byte of its response is
 * checked.
 */
#include "load/payload.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX   1000
#define REQUEST_SIZE  100
#define RESPONSE_SIZE 1000
#define NAME_MAX_SIZE 255 /* RFC 1929; of the name and of the password */

static struct {
	bool socks5, fast_open;
	const char *user, *password;
	struct sockaddr_in server;
} arguments;

struct times {
	double tcp, connected, first, all; /* microseconds since `start` */
	struct timespec start;
};

static double since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->tv_sec) * 1e6 +
	       (double)(now.tv_nsec - start->tv_nsec) / 1e3;
}

/* Sends all of it; returns NULL or what went wrong. */
static const char *say(int fd, const void *data, size_t size)
{
	ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);

	if (sent < 0)
		return strerror(errno);
	return sent == (ssize_t)size ? NULL : "a message was sent in part";
}

/* Receives so many bytes. */
static const char *hear(int fd, uint8_t *data, size_t size)
{
	ssize_t got = recv(fd, data, size, MSG_WAITALL);

	if (got < 0)
		return strerror(errno);
	return got == (ssize_t)size ? NULL : "the peer has closed";
}

/* RFC 1929 */
static const char *socks5_log_in(int fd)
{
	uint8_t message[3 + 2 * NAME_MAX_SIZE] = { 1 }, answer[2];
	size_t user = strlen(arguments.user), password = strlen(arguments.password);
	const char *wrong;

	message[1] = (uint8_t)user;
	memcpy(message + 2, arguments.user, user);
	message[2 + user] = (uint8_t)password;
	memcpy(message + 3 + user, arguments.password, password);
	if ((wrong = say(fd, message, 3 + user + password)) ||
	    (wrong = hear(fd, answer, sizeof(answer))))
		return wrong;
	return answer[1] == 0 ? NULL : "the proxy refuses the password";
}

/* RFC 1928: greeting, authentication, CONNECT, one after the other. */
static const char *socks5(int fd)
{
	const uint8_t method = arguments.user ? 2 : 0, greeting[] = { 5, 1, method };
	uint8_t request[10] = { 5, 1, 0, 1 }, answer[10];
	const char *wrong;

	if ((wrong = say(fd, greeting, sizeof(greeting))) || (wrong = hear(fd, answer, 2)))
		return wrong;
	if (answer[0] != 5 || answer[1] != method)
		return "the proxy refuses the method of authentication";
	if (arguments.user && (wrong = socks5_log_in(fd)))
		return wrong;
	memcpy(request + 4, &arguments.server.sin_addr, 4);
	memcpy(request + 8, &arguments.server.sin_port, 2);
	if ((wrong = say(fd, request, sizeof(request))) ||
	    (wrong = hear(fd, answer, sizeof(answer))))
		return wrong;
	return answer[1] == 0 && answer[3] == 1 ? NULL : "the proxy can't connect to the server";
}

static const char *request_send(int fd, const struct sockaddr_in *to, struct times *times)
{
	uint8_t request[REQUEST_SIZE];
	const struct payload_request head = { .request = sizeof(request),
					      .response = RESPONSE_SIZE,
					      .close = true };
	const char *wrong = NULL;

	memcpy(request, payload_at(0), sizeof(request));
	payload_head_write(request, &head);
	clock_gettime(CLOCK_MONOTONIC, &times->start);
	if (arguments.fast_open) {
		ssize_t sent = sendto(fd, request, sizeof(request), MSG_FASTOPEN | MSG_NOSIGNAL,
				      (const struct sockaddr *)to, sizeof(*to));

		if (sent < 0)
			return strerror(errno);
		return sent == sizeof(request) ? NULL : "the request was sent in part";
	}
	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
		return strerror(errno);
	times->tcp = since(&times->start);
	if (arguments.socks5)
		wrong = socks5(fd);
	times->connected = since(&times->start);
	return wrong ? wrong : say(fd, request, sizeof(request));
}

static const char *response_receive(int fd, struct times *times)
{
	uint8_t data[RESPONSE_SIZE + 1];
	size_t size = 0;

	for (;;) {
		ssize_t got = recv(fd, data + size, sizeof(data) - size, 0);

		if (got < 0)
			return strerror(errno);
		if (got == 0)
			break;
		if (size == 0)
			times->first = since(&times->start);
		if (size + (size_t)got > RESPONSE_SIZE ||
		    !payload_matches(data + size, (size_t)got, size))
			return "the response isn't the server's";
		size += (size_t)got;
	}
	times->all = since(&times->start);
	return size == RESPONSE_SIZE ? NULL : "the response is too short";
}

/* One connection; returns NULL or what went wrong. */
static const char *ask(const char *source, const char *address, unsigned port, struct times *times)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	const char *wrong;
	int fd;

	if (inet_pton(AF_INET, source, &from.sin_addr) != 1 ||
	    inet_pton(AF_INET, address, &to.sin_addr) != 1)
		return "no IPv4 address";
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0)
		return strerror(errno);
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0)
		wrong = strerror(errno);
	else if (!(wrong = request_send(fd, &to, times)))
		wrong = response_receive(fd, times);
	close(fd);
	return wrong;
}

static void *serve(void *unused)
{
	char line[128], source[32], address[32];
	unsigned port;

	while (fgets(line, sizeof(line), stdin)) {
		struct times times = { 0 };
		const char *wrong;

		if (sscanf(line, "%31s %31s %u", source, address, &port) != 3 || port > UINT16_MAX)
			errx(1, "\"%s\" is not \"SOURCE ADDRESS PORT\"", line);
		wrong = ask(source, address, port, &times);
		if (wrong)
			printf("%s %s %u failed: %s\n", source, address, port, wrong);
		else
			printf("%s %s %u %.0f %.0f %.0f %.0f\n", source, address, port, times.tcp,
			       times.connected, times.first, times.all);
	}
	return unused;
}

static void usage(void)
{
	errx(2, "usage: first_byte [--socks5 [--user NAME:PASSWORD]] [--fast-open] "
		"SERVER PORT THREADS");
}

static unsigned number_parse(const char *text, unsigned long most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end || value == 0 || value > most)
		errx(2, "\"%s\" is not a number from 1 to %lu", text, most);
	return (unsigned)value;
}

static void user_parse(char *text)
{
	char *colon = strchr(text, ':');

	if (!colon)
		usage();
	*colon = '\0';
	arguments.user = text;
	arguments.password = colon + 1;
	if (strlen(arguments.user) > NAME_MAX_SIZE || strlen(arguments.password) > NAME_MAX_SIZE)
		errx(2, "--user: a name or a password of more than %d bytes",
		     NAME_MAX_SIZE);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "socks5", no_argument, NULL, 's' },
		{ "user", required_argument, NULL, 'u' },
		{ "fast-open", no_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 },
	};
	pthread_t threads[THREADS_MAX];
	unsigned count;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's': arguments.socks5 = true; break;
		case 'u': user_parse(optarg); break;
		case 'f': arguments.fast_open = true; break;
		default: usage();
		}
	}
	if (argc - optind != 3 || (arguments.socks5 && arguments.fast_open))
		usage();
	arguments.server.sin_family = AF_INET;
	if (inet_pton(AF_INET, argv[optind], &arguments.server.sin_addr) != 1)
		errx(2, "\"%s\" is not an IPv4 address", argv[optind]);
	arguments.server.sin_port = htons((uint16_t)number_parse(argv[optind + 1], UINT16_MAX));
	count = number_parse(argv[optind + 2], THREADS_MAX);
	payload_init();
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; i < count; i++) {
		int error = pthread_create(&threads[i], NULL, serve, NULL);

		if (error)
			errx(1, "pthread_create: %s", strerror(error));
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
