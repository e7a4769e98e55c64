/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_network.c - the fake kernel's network: hosts that answer SYNs and requests after some time, or don't */
#include "config.h"

#include "fake_private.h"

#include "convert/convert.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define HOSTS 8
#define MS INT64_C(1000000)

static struct {
	struct fake_host host;
	union sockaddr_ip address;
	unsigned int syns;
	uint8_t received[FAKE_BYTES]; /* on the last connection */
	size_t received_len;
	unsigned int last; /* which connection that was */
} hosts[HOSTS];

void fake_host_add(const struct fake_host *host)
{
	for (int i = 0; i < HOSTS; i++) {
		if (hosts[i].host.address)
			continue;
		memset(&hosts[i], 0, sizeof(hosts[i]));
		hosts[i].host = *host;
		if (sockaddr_ip_parse(&hosts[i].address, host->address, 0) != 0)
			fake_die("%s isn't an address", host->address);
		return;
	}
	fake_die("too many hosts");
}

static int host_named(const char *address)
{
	for (int i = 0; i < HOSTS; i++)
		if (hosts[i].host.address && strcmp(hosts[i].host.address, address) == 0)
			return i;
	fake_die("there is no host %s", address);
}

void fake_host_remove(const char *address)
{
	hosts[host_named(address)].host.address = NULL;
}

unsigned int fake_host_syns(const char *address)
{
	return hosts[host_named(address)].syns;
}

size_t fake_host_received(const char *address, const uint8_t **bytes)
{
	int host = host_named(address);

	*bytes = hosts[host].received;
	return hosts[host].received_len;
}

/* IPv4 and v4-mapped addresses are equal. */
int fake_host_find(const union sockaddr_ip *address)
{
	struct in6_addr wanted = sockaddr_ip_in6(address);

	for (int i = 0; i < HOSTS; i++) {
		struct in6_addr own = sockaddr_ip_in6(&hosts[i].address);

		if (hosts[i].host.address && memcmp(&own, &wanted, sizeof(own)) == 0 &&
		    sockaddr_ip_port(address) == sockaddr_ip_port(&hosts[i].address))
			return i;
	}
	return -1;
}

bool fake_network_is_alive(const struct fake_socket *socket)
{
	return socket->host < 0 || !hosts[socket->host].host.dead;
}

static const struct fake_answer *answer_of(const struct fake_socket *socket)
{
	const struct fake_host *host = &hosts[socket->host].host;

	if (!host->answer_count)
		return NULL;
	return &host->answers[socket->answer < host->answer_count ? socket->answer : host->answer_count - 1];
}

static void socket_deliver(struct fake_socket *socket, const void *bytes, size_t len)
{
	if (socket->in_len + len > FAKE_BYTES)
		fake_die("too many bytes arrive");
	memcpy(socket->in + socket->in_len, bytes, len);
	socket->in_len += len;
	socket->in_total += len;
	socket->heard = fake_now();
	if (socket->host >= 0 && hosts[socket->host].host.loses_mptcp)
		socket->fallen_back = true;
	fake_epoll_wake(socket);
}

static void socket_reset(struct fake_socket *socket, int error)
{
	if (socket->state == FAKE_SYN_SENT) {
		fake_refused(socket, error);
		return;
	}
	socket->error = error;
	socket->state = FAKE_CLOSED;
	socket->was_open = true;
	socket->in_len = 0;
	fake_epoll_wake(socket);
}

/* The next piece of a host's answer. */
static void answer_say(struct fake_socket *socket)
{
	const struct fake_answer *answer = answer_of(socket);
	size_t left = answer->len - socket->said;
	size_t piece = answer->piece && answer->piece < left ? answer->piece : left;

	if (socket->state != FAKE_ESTABLISHED)
		return;
	if (piece)
		socket_deliver(socket, (const uint8_t *)answer->bytes + socket->said, piece);
	socket->said += piece;
	if (piece < left) {
		fake_at(fake_now() + answer->after_ms * MS, answer_say, socket);
		return;
	}
	if (answer->error)
		socket_reset(socket, answer->error);
	if (answer->fin) {
		socket->fin = true;
		fake_epoll_wake(socket);
	}
}

/* Has a whole request arrived, or does the host need none? */
static bool is_asked(const struct fake_socket *socket)
{
	struct convert_request request;
	size_t length;

	if (hosts[socket->host].host.is_server)
		return true;
	if (convert_request_parse(socket->out, socket->out_len, &request) == CONVERT_STATUS_OK && request.has_silence)
		return true;
	return convert_message_length(socket->out, socket->out_len, &length) == CONVERT_STATUS_OK && length <= socket->out_len;
}

void fake_network_sent(struct fake_socket *socket)
{
	const struct fake_answer *answer;

	if (socket->host < 0 || socket->state != FAKE_ESTABLISHED)
		return;
	hosts[socket->host].received_len = socket->out_len;
	memcpy(hosts[socket->host].received, socket->out, socket->out_len);
	answer = answer_of(socket);
	if (!answer || socket->answered || !is_asked(socket))
		return;
	socket->answered = true;
	fake_at(fake_now() + answer->after_ms * MS, answer_say, socket);
}

static void syn_answer(struct fake_socket *socket)
{
	const struct fake_host *host = &hosts[socket->host].host;

	if (host->refuses) {
		fake_refused(socket, host->refuses);
		return;
	}
	socket->syn_taken = socket->syn_len && !host->takes_no_data;
	socket->fallen_back |= host->no_mptcp;
	socket->timestamps = !host->no_timestamps;
	fake_established(socket);
}

int fake_network_route(const struct fake_socket *socket)
{
	int host = fake_host_find(&socket->peer);

	return host >= 0 && hosts[host].host.no_route ? hosts[host].host.at_once : 0;
}

int fake_network_syn(struct fake_socket *socket)
{
	struct fake_host *host;

	socket->host = fake_host_find(&socket->peer);
	if (socket->host < 0)
		return ENETUNREACH;
	host = &hosts[socket->host].host;
	if (host->at_once)
		return host->at_once;
	socket->answer = hosts[socket->host].syns++;
	socket->answered = false;
	socket->said = 0;
	if (!host->silent)
		fake_at(fake_now() + host->synack_ms * MS, syn_answer, socket);
	return 0;
}

/* --- by hand --- */

void fake_synack(int fd)
{
	struct fake_socket *socket = fake_socket_of(fd);

	if (socket->state != FAKE_SYN_SENT)
		fake_die("there is no SYN to be answered");
	syn_answer(socket);
}

void fake_deliver(int fd, const void *bytes, size_t len)
{
	struct fake_socket *socket = fake_socket_of(fd);

	if (socket->state != FAKE_ESTABLISHED)
		fake_die("bytes for a socket that isn't connected");
	socket_deliver(socket, bytes, len);
}

void fake_fin(int fd)
{
	struct fake_socket *socket = fake_socket_of(fd);

	socket->fin = true;
	fake_epoll_wake(socket);
}

void fake_reset(int fd, int error)
{
	socket_reset(fake_socket_of(fd), error);
}
