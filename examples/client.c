/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.c - reaches a server through a Transport Converter (RFC 8803)
 *
 *     client CONVERTER PORT SERVER PORT        with numeric addresses, IPv4 or IPv6
 *
 * The request, a Connect TLV that names the server, is the first thing on the connection to the converter and travels in its SYN
 * (TCP Fast Open). The first thing that comes back is the response. What follows it belongs to the server: standard input goes
 * there, and what comes from there goes to standard output. If the converter answers with an Error TLV, that is printed, and the
 * exit status is 1.
 *
 *     cc -o client client.c $(pkg-config --cflags --libs convertproto)
 *
 * The preload library does the same for programs that know nothing of it. What it does beyond this: it remembers the converter's
 * cookie (a Missing Cookie error), converters that don't answer and servers that are better reached directly; and it sends the first
 * data of the application in the SYN, too. See libconvert.so(7).
 */
#define _GNU_SOURCE /* IPPROTO_MPTCP, MSG_FASTOPEN */
#include "relay.h"

#include <convert/convert.h>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "client: %s: %s\n", what, why);
	exit(1);
}

/* An address and a port as one of IPv6; IPv4 addresses as IPv4-mapped ones, which is how a Connect TLV has them, too. */
static struct sockaddr_in6 parse_address(const char *address, const char *port)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_V4MAPPED, .ai_family = AF_INET6 }, *found;
	struct sockaddr_in6 result;
	int error;

	hints.ai_socktype = SOCK_STREAM;
	error = getaddrinfo(address, port, &hints, &found);
	if (error)
		fail(address, gai_strerror(error));
	memcpy(&result, found->ai_addr, sizeof(result));
	freeaddrinfo(found);
	return result;
}

/* A connection to the converter that begins with the request. */
static int send_request(const struct sockaddr_in6 *converter, const uint8_t *request, size_t len)
{
	const struct sockaddr *address = (const struct sockaddr *)converter;
	int on = 1, fd = socket(AF_INET6, SOCK_STREAM, IPPROTO_MPTCP);
	ssize_t sent;

	if (fd < 0) /* a kernel without Multipath TCP */
		fd = socket(AF_INET6, SOCK_STREAM, 0);
	if (fd < 0)
		fail("socket", strerror(errno));
	/* Converters take data in SYNs without a Fast Open cookie (Section 4.2); older kernels lack the option for MPTCP. */
	setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof(on));
	sent = sendto(fd, request, len, MSG_FASTOPEN, address, sizeof(*converter));
	if (sent < 0 && errno == EOPNOTSUPP) { /* net.ipv4.tcp_fastopen is off: for a round trip more */
		if (connect(fd, address, sizeof(*converter)) < 0)
			fail("connect to the converter", strerror(errno));
		sent = send(fd, request, len, 0);
	}
	if (sent != (ssize_t)len)
		fail("request to the converter", sent < 0 ? strerror(errno) : "sent in part");
	return fd;
}

/* Takes the response off the stream, and not a byte of what is behind it. */
static enum convert_status read_response(int fd, uint8_t buf[CONVERT_MESSAGE_MAX], struct convert_response *response)
{
	size_t have = 0, want = CONVERT_HEADER_LEN;
	enum convert_status status;

	do {
		ssize_t got = recv(fd, buf + have, want - have, MSG_WAITALL);

		if (got != (ssize_t)(want - have))
			fail("response of the converter", got < 0 ? strerror(errno) : "ends too early");
		have = want;
		status = convert_response_parse(buf, have, response);
		want = response->length; /* is known as soon as the fixed header is there */
	} while (status == CONVERT_STATUS_NEED_MORE);
	return status;
}

int main(int argc, char **argv)
{
	static struct direction both[2]; /* to the server, and back */
	uint8_t buf[CONVERT_MESSAGE_MAX];
	struct convert_response response;
	struct convert_writer writer;
	enum convert_status status;
	struct sockaddr_in6 server;
	ssize_t len;
	int fd;

	if (argc != 5) {
		fprintf(stderr, "Usage: client CONVERTER PORT SERVER PORT\n");
		return 2;
	}
	server = parse_address(argv[3], argv[4]);
	convert_writer_init(&writer, buf, sizeof(buf));
	convert_write_connect(&writer, &server.sin6_addr, ntohs(server.sin6_port), NULL, 0);
	len = convert_writer_finish(&writer);
	if (len < 0) /* -EINVAL: the RFC forbids this address, a loopback one for instance */
		fail(argv[3], strerror((int)-len));
	server = parse_address(argv[1], argv[2]);
	fd = send_request(&server, buf, (size_t)len);
	status = read_response(fd, buf, &response);
	if (status != CONVERT_STATUS_OK || response.has_error) {
		/* The RFC wants a reset after both: this is what close() does then. */
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 }, sizeof(struct linger));
		close(fd);
		if (status != CONVERT_STATUS_OK)
			fail("response of the converter", convert_status_name(status));
		fprintf(stderr, "client: the converter reports error %u (%s), value %u\n", response.error_code,
			convert_error_name(response.error_code), response.error_value.data[0]);
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	both[0].from = STDIN_FILENO;
	both[0].to = both[1].from = fd;
	both[1].to = STDOUT_FILENO;
	while (!both[1].ended)
		if (!relay_step(both))
			fail("connection", strerror(errno));
	return 0;
}
