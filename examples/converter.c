/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * converter.c - a Transport Converter (RFC 8803) for a look at the protocol
 *
 *     converter PORT
 *
 * It listens for TCP and Multipath TCP connections. On each it reads a request, connects to the server that the request names,
 * answers, and relays bytes until both sides have closed. Each connection has a process of its own.
 *
 *     cc -o converter converter.c $(pkg-config --cflags --libs convertproto)
 *
 * Do not let it listen where others can reach it. This is what convertd(8) does beyond this example:
 *
 * - it serves only clients and servers that its rules name. This one connects anybody to anything, its own network included;
 * - it asks clients for cookies (Section 6.2.7), which prove their addresses, and limits what unproven ones can make it send;
 * - it limits connections, memory and time. Here a client that sends nothing keeps a process for ever;
 * - it may answer in the SYN+ACK (Section 4.2), and corrects windows that Linux misreads in MPTCP SYNs with data;
 * - it speaks Multipath TCP, and uses TCP options that clients ask for, towards servers as well (Section 7), and tells clients
 *   which options the server's SYN+ACK has (Section 6.2.6), as far as the kernel tells. Here that list is empty;
 * - it hands on resets as resets, serves thousands of connections in one process, and can be replaced without ending them.
 */
#define _GNU_SOURCE /* IPPROTO_MPTCP */
#include "relay.h"

#include <convert/convert.h>

#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

/* With Fast Open, a connection is accepted when its SYN is here. On MPTCP sockets Linux keeps back what is written before the handshake
 * is complete, even beyond that. So this waits for its end, which is an event but no state that poll() shows. */
static void wait_established(int fd)
{
	struct epoll_event event = { .events = EPOLLOUT | EPOLLET };
	int epoll = epoll_create1(0);
	struct tcp_info info;
	socklen_t len;

	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	do {
		len = sizeof(info);
		if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 || info.tcpi_state != TCP_SYN_RECV)
			break;
	} while (epoll_wait(epoll, &event, 1, -1) > 0);
	close(epoll);
}

/* What the client learns of a connect() that failed (Section 6.2.8). */
static void write_connect_error(struct convert_writer *writer, const struct in6_addr *address, int error)
{
	bool ipv4 = IN6_IS_ADDR_V4MAPPED(address);

	if (error == ECONNREFUSED)
		convert_write_error(writer, CONVERT_ERROR_CONNECTION_RESET, 0);
	else if (error == ENETUNREACH || error == EHOSTUNREACH) /* with the Code field of the ICMP or ICMPv6 message */
		convert_write_error(writer, CONVERT_ERROR_DESTINATION_UNREACHABLE, error == ENETUNREACH ? 0 : ipv4 ? 1 : 3);
	else
		convert_write_error(writer, CONVERT_ERROR_NETWORK_FAILURE, 0);
}

/* Sections 7.1 to 7.3: such options of a Connect TLV are ignored. convert_tcp_option_next() skips those of kinds 0 and 1. */
static bool kind_is_ignored(uint8_t kind)
{
	return kind == 2 || kind == 3 || kind == 5; /* Maximum Segment Size, Window Scale, SACK */
}

/* Returns the socket of the connection to the server, or -1 with an Error TLV in the response. */
static int connect_server(const struct convert_request *request, struct convert_writer *writer)
{
	struct sockaddr_in6 server = { .sin6_family = AF_INET6, .sin6_port = htons(request->port), .sin6_addr = request->address };
	struct convert_span options = request->tcp_options;
	uint8_t kinds[CONVERT_MESSAGE_MAX / 2];
	struct convert_tcp_option option;
	size_t count = 0;
	int fd;

	while (convert_tcp_option_next(&options, &option) == CONVERT_STATUS_OK)
		if (!kind_is_ignored(option.kind))
			kinds[count++] = option.kind;
	if (count > 0) {
		convert_write_error_options(writer, kinds, count);
		return -1;
	}
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&server, sizeof(server)) == 0) {
		/* Section 6.2.6 demands this TLV. A program doesn't see the options in the SYN+ACK, so its list is empty. */
		if (request->extended)
			convert_write_tcp_header(writer, NULL, 0);
		return fd;
	}
	write_connect_error(writer, &request->address, errno);
	return -1;
}

/* Copies bytes until both sides have ended. */
static void relay(int client, int server)
{
	static struct direction both[2];

	fcntl(client, F_SETFL, O_NONBLOCK);
	fcntl(server, F_SETFL, O_NONBLOCK);
	both[0].from = both[1].to = client;
	both[0].to = both[1].from = server;
	while (!both[0].ended || !both[1].ended)
		if (!relay_step(both))
			return;
}

/* SO_LINGER makes close() reset TCP sockets; connect() to AF_UNSPEC resets Multipath TCP sockets as well. */
static void reset(int client)
{
	const struct sockaddr unspec = { .sa_family = AF_UNSPEC };

	setsockopt(client, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 }, sizeof(struct linger));
	connect(client, &unspec, sizeof(unspec)); /* fails if the connection has ended already */
}

/* Reads the request, and what the client has sent behind it. Returns the number of bytes; 0 if the client has ended. */
static size_t read_request(int client, uint8_t *buf, size_t size, struct convert_request *request, enum convert_status *status)
{
	size_t have = 0;
	ssize_t len;

	do {
		len = recv(client, buf + have, size - have, 0);
		if (len <= 0)
			return 0;
		have += (size_t)len;
		*status = convert_request_parse(buf, have, request);
	} while (*status == CONVERT_STATUS_NEED_MORE && !request->has_silence);
	return have;
}

/*
 * Decides what to do about the request, as the RFC demands. This converter offers none of libconvert's own TLVs (doc/private-tlvs.md).
 * It resets a silent request in any case, since the client would take an answer for the server's bytes.
 */
static enum convert_answer decide(const struct convert_request *request, enum convert_status status, enum convert_error_code *code)
{
	enum convert_answer answer = convert_request_answer(status, code);

	if (request->has_silence)
		return CONVERT_ANSWER_RESET;
	if (answer == CONVERT_ANSWER_NONE && (request->has_echo || request->has_hold_time)) {
		*code = CONVERT_ERROR_UNSUPPORTED_MESSAGE;
		return CONVERT_ANSWER_ERROR;
	}
	return answer;
}

/* One connection, from its first byte to its last. */
static void serve(int client)
{
	static uint8_t buf[65536]; /* the request, and what the client has sent behind it */
	enum convert_error_code code = CONVERT_ERROR_MALFORMED_MESSAGE;
	uint8_t answer[CONVERT_MESSAGE_MAX];
	struct convert_request request;
	struct convert_writer writer;
	enum convert_status status = CONVERT_STATUS_NEED_MORE;
	int server = -1;
	size_t have;
	ssize_t len;

	have = read_request(client, buf, sizeof(buf), &request, &status);
	if (have == 0)
		return;
	convert_writer_init(&writer, answer, sizeof(answer));
	switch (decide(&request, status, &code)) {
	case CONVERT_ANSWER_NONE:
		if (request.has_info) /* of the options that could be asked for, none is supported */
			convert_write_supported(&writer, NULL, 0);
		if (request.has_connect)
			server = connect_server(&request, &writer);
		break;
	case CONVERT_ANSWER_ERROR:
		if (code == CONVERT_ERROR_UNSUPPORTED_VERSION)
			convert_write_error_versions(&writer);
		else
			convert_write_error_echo(&writer, code, buf, have < request.length ? have : request.length);
		break;
	case CONVERT_ANSWER_RESET:
		reset(client);
		return;
	case CONVERT_ANSWER_IGNORE:
		return;
	}
	len = convert_writer_finish(&writer);
	wait_established(client);
	if (len < 0 || send(client, answer, (size_t)len, 0) != len)
		return;
	if (server < 0) {
		/* Bytes that nobody has read would make a reset of close(), and the client might lose the answer. */
		shutdown(client, SHUT_WR);
		while (recv(client, buf, sizeof(buf), 0) > 0)
			;
		return;
	}
	have -= request.length;
	if (have == 0 || send(server, buf + request.length, have, 0) == (ssize_t)have)
		relay(client, server);
}

int main(int argc, char **argv)
{
	int on = 1, off = 0, client, listener = socket(AF_INET6, SOCK_STREAM, IPPROTO_MPTCP);
	struct sockaddr_in6 address = { .sin6_family = AF_INET6 };

	if (argc != 2) {
		fprintf(stderr, "Usage: converter PORT\n");
		return 2;
	}
	if (listener < 0) /* a kernel without Multipath TCP */
		listener = socket(AF_INET6, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	/* Data in SYNs is taken without a Fast Open cookie (Section 4.2). Where the kernel can't, it comes a round trip later. */
	setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN, &(int){ 128 }, sizeof(int));
	setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof(on));
	address.sin6_port = htons((uint16_t)atoi(argv[1]));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(listener, SOMAXCONN) < 0) {
		perror("converter: listen");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN); /* nobody waits for the processes */
	while ((client = accept(listener, NULL, NULL)) >= 0 || errno == EINTR || errno == ECONNABORTED) {
		if (client >= 0 && fork() == 0) {
			close(listener);
			serve(client);
			return 0;
		}
		if (client >= 0)
			close(client);
	}
	perror("converter: accept");
	return 1;
}
