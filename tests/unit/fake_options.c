/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_options.c - socket options, TCP_INFO and MPTCP_INFO of the fake kernel */
#include "config.h"

#include "fake_private.h"


#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>

/* The options that are an int, with their first values. Others aren't modelled. */
static const struct fake_option defaults[] = {
	{ SOL_SOCKET, SO_RCVLOWAT, 1 },       { SOL_SOCKET, SO_KEEPALIVE, 0 },
	{ SOL_SOCKET, SO_REUSEADDR, 0 },      { SOL_SOCKET, SO_ACCEPTCONN, 0 },
	{ IPPROTO_TCP, TCP_KEEPIDLE, 7200 },  { IPPROTO_TCP, TCP_KEEPINTVL, 75 },
	{ IPPROTO_TCP, TCP_KEEPCNT, 9 },      { IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 0 },
	{ IPPROTO_TCP, TCP_NODELAY, 0 },      { IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 0 },
	{ IPPROTO_IPV6, IPV6_V6ONLY, 0 },     { IPPROTO_TCP, TCP_QUICKACK, 1 },
};

static int default_index(int level, int name)
{
	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		if (defaults[i].level == level && defaults[i].name == name)
			return (int)i;
	return -1;
}

struct fake_option *fake_option_of(struct fake_socket *socket, int level, int name)
{
	int index = default_index(level, name);

	if (index < 0)
		fake_die("option %d of level %d isn't modelled", name, level);
	if (!socket->options[index].name)
		socket->options[index] = defaults[index];
	return &socket->options[index];
}

static int fail(int error)
{
	errno = error;
	return -1;
}

static int tell(const void *answer, size_t bytes, void *value, socklen_t *len)
{
	memcpy(value, answer, bytes < *len ? bytes : *len);
	if (bytes < *len)
		*len = (socklen_t)bytes;
	return 0;
}

static int tell_int(int answer, void *value, socklen_t *len)
{
	return tell(&answer, sizeof(answer), value, len);
}

static int tcp_state_of(const struct fake_socket *socket)
{
	if (socket->state == FAKE_CLOSED)
		return 7; /* CLOSE */
	if (socket->state == FAKE_SYN_SENT)
		return 2;
	if (socket->shut_out)
		return 4;                /* FIN_WAIT1 */
	return socket->fin ? 8 : 1; /* CLOSE_WAIT, ESTABLISHED */
}

static int tell_tcp_info(struct fake_socket *socket, void *value, socklen_t *len)
{
	int64_t silence = (fake_now() - socket->heard) / 1000000;
	struct tcp_info info = { .tcpi_state = (uint8_t)tcp_state_of(socket) };

	if (socket->state == FAKE_ESTABLISHED) {
		info.tcpi_options = (uint8_t)((socket->syn_taken ? TCPI_OPT_SYN_DATA : 0) |
					      (socket->timestamps ? TCPI_OPT_TIMESTAMPS : 0));
		info.tcpi_last_data_recv = info.tcpi_last_ack_recv = (uint32_t)silence;
		if (fake_network_is_alive(socket) && fake_option_of(socket, SOL_SOCKET, SO_KEEPALIVE)->value)
			info.tcpi_last_ack_recv = 0;
	}
	info.tcpi_bytes_received = socket->in_total;
	info.tcpi_bytes_sent = socket->state == FAKE_ESTABLISHED ? socket->out_len : socket->syn_len;
	info.tcpi_segs_out = socket->segments;
	return tell(&info, sizeof(info), value, len);
}

/* For a socket that has fallen back Linux answers like TCP. */
static int tell_mptcp_info(const struct fake_socket *socket, void *value, socklen_t *len)
{
	struct kernel_mptcp_info info = { .flags = 0 };

	if (socket->protocol != IPPROTO_MPTCP)
		return fail(ENOPROTOOPT);
	if (socket->fallen_back)
		return fail(EOPNOTSUPP);
	info.bytes_received = socket->in_total;
	info.write_seq = socket->out_len - socket->syn_len;
	return tell(&info, sizeof(info), value, len);
}

int fake_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	static const struct timeval no_limit;
	struct fake_file *file;
	struct fake_socket *socket;
	int error;

	if (fake_enter(FAKE_getsockopt))
		return -1;
	file = fake_socket_file(fd);
	if (!file)
		return -1;
	socket = &file->socket;
	if (level == SOL_SOCKET)
		switch (name) {
		case SO_COOKIE:
			return tell(&socket->cookie, sizeof(socket->cookie), value, len);
		case SO_DOMAIN:
			return tell_int(socket->domain, value, len);
		case SO_PROTOCOL:
			return tell_int(socket->protocol, value, len);
		case SO_ERROR:
			error = socket->error;
			socket->error = 0;
			return tell_int(error, value, len);
		case SO_SNDTIMEO:
		case SO_RCVTIMEO:
			return tell(&no_limit, sizeof(no_limit), value, len);
		}
	if (level == SOL_MPTCP && name == MPTCP_INFO)
		return tell_mptcp_info(socket, value, len);
	if (level == IPPROTO_TCP && name == TCP_INFO)
		return tell_tcp_info(socket, value, len);
	return tell_int(fake_option_of(socket, level, name)->value, value, len);
}

int fake_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct fake_file *file;

	if (fake_enter(FAKE_setsockopt))
		return -1;
	file = fake_socket_file(fd);
	if (!file)
		return -1;
	if (len != sizeof(int))
		fake_die("option %d of level %d is set to %u bytes", name, level, len);
	memcpy(&fake_option_of(&file->socket, level, name)->value, value, sizeof(int));
	fake_epoll_wake(&file->socket); /* SO_RCVLOWAT looks whether there is enough now */
	return 0;
}

int fake_protocol(int fd)
{
	return fake_socket_of(fd)->protocol;
}

int fake_option(int fd, int level, int name)
{
	return fake_option_of(fake_socket_of(fd), level, name)->value;
}

bool fake_is_connected(int fd)
{
	return fake_socket_of(fd)->state == FAKE_ESTABLISHED;
}

unsigned int fake_port(int fd)
{
	return sockaddr_ip_port(&fake_socket_of(fd)->peer);
}
