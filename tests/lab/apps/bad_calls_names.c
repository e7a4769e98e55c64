/* SPDX-License-Identifier: BSD-3-Clause */
/* bad_calls_names.c - bad addresses and options: connect(), getpeername(), getsockopt() and their like */
#include "config.h"

#include "bad_calls.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

/* <netinet/tcp.h> and <linux/tcp.h> can't be included together, and neither has all of these options. */
#define TCP_NODELAY 1
#define TCP_SYNCNT 7
#define TCP_LINGER2 8
#define TCP_INFO 11
#define TCP_QUICKACK 12
#define TCP_CONGESTION 13
#define TCP_USER_TIMEOUT 18
#define TCP_ULP 31

static union address name;

static void rows_connect(void)
{
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	ROWS(connect(fd, (void *)bad.at, server_len));
	ROWS(connect(fd, (void *)bad.at, 0));
	ROWS(connect(fd, (void *)bad.at, 2));
	ROWS(connect(fd, (void *)bad.at, (socklen_t)-1));
	ROWS(connect(fd, (void *)bad.at, 100000));
	ROWS_LENGTH(connect(fd, &server.sa, (socklen_t)length));
	ROW(connect(fd, edge_copy(&server, server_len), server_len));
	ROW(connect(fd, edge_copy(&server, server_len), server_len + 1));
	ROW(connect(fd, edge_copy(&server, server_len), 128));
	ROW(connect(fd, edge_copy(&server, server_len - 1), server_len));
	ROW(connect(fd, edge_copy(&nobody, 1), 2));
	ROW(connect(fd, edge_copy(&nobody, 2), 2));
	ROW(connect(fd, edge_copy(&nobody, 2), sizeof(nobody)));
	ROW(connect(fd, edge_copy(&nobody, sizeof(nobody)), 200));
	ROW(connect(-1, NULL, server_len));
	ROW(connect(-1, &server.sa, (socklen_t)-1));
}

#define ROWS_NAME(ask)                                                                             \
	do {                                                                                       \
		ROWS(ask(fd, (void *)bad.at, len_of(sizeof(name))));                               \
		ROWS(ask(fd, (void *)bad.at, len_of(0)));                                          \
		ROWS(ask(fd, (void *)bad.at, len_of(-1)));                                         \
		ROWS(ask(fd, &name.sa, (void *)bad.at));                                           \
		ROWS(ask(fd, NULL, (void *)bad.at));                                               \
		ROWS_LENGTH(ask(fd, &name.sa, len_of(length)));                                    \
		ROW(ask(fd, edge(2), len_of(2)));                                                  \
		ROW(ask(fd, edge(2), len_of(3)));                                                  \
		ROW(ask(fd, edge(16), len_of(128)));                                               \
		ROW(ask(-1, NULL, NULL));                                                          \
	} while (0)

#define accept_flags(fd, addr, len) accept4(fd, addr, len, SOCK_NONBLOCK)

void rows_names(void)
{
	rows_connect();
	if (!scene_is("held")) /* the application takes it for connected, but Linux names no peer before the SYN */
		ROWS_NAME(getpeername);
	ROWS_NAME(getsockname);
	ROWS_NAME(accept);
	ROWS_NAME(accept_flags);
}

static const struct option {
	const char *name;
	int level, number;
} options[] = {
#define OPTION(level, name) { #name, level, name }
	OPTION(SOL_SOCKET, SO_ERROR),
	OPTION(SOL_SOCKET, SO_PROTOCOL),
	OPTION(SOL_SOCKET, SO_DOMAIN),
	OPTION(SOL_SOCKET, SO_RCVLOWAT),
	OPTION(SOL_SOCKET, SO_PEERNAME),
	OPTION(SOL_SOCKET, SO_SNDBUF),
	OPTION(SOL_SOCKET, SO_OOBINLINE),
	OPTION(SOL_SOCKET, SO_RCVTIMEO),
	OPTION(SOL_SOCKET, SO_MAX_PACING_RATE),
	OPTION(IPPROTO_TCP, TCP_NODELAY),
	OPTION(IPPROTO_TCP, TCP_INFO),
	OPTION(IPPROTO_TCP, TCP_ULP),
	OPTION(IPPROTO_TCP, TCP_SYNCNT),
	OPTION(IPPROTO_TCP, TCP_USER_TIMEOUT),
	OPTION(IPPROTO_TCP, TCP_QUICKACK),
	OPTION(IPPROTO_IP, IP_TTL),
	OPTION(IPPROTO_IP, IP_TOS),
	OPTION(IPPROTO_IP, IP_MTU),
	OPTION(IPPROTO_IP, IP_MTU_DISCOVER),
	OPTION(IPPROTO_IPV6, IPV6_UNICAST_HOPS),
};

static char room[100000];

static void rows_option(const struct option *option)
{
	const int level = option->level, number = option->number;

	if (level == IPPROTO_IPV6 && server.sa.sa_family != AF_INET6)
		return;
	if (number == IP_MTU && level == IPPROTO_IP && scene_is("held")) /* no SYN has gone to the converter yet */
		return;
	scene_detail(option->name);
	ROWS(getsockopt(fd, level, number, bad.at, len_of(4)));
	ROWS(getsockopt(fd, level, number, bad.at, len_of(0)));
	ROWS(getsockopt(fd, level, number, room, (void *)bad.at));
	ROWS_LENGTH(getsockopt(fd, level, number, room, len_of(length)));
	ROW(getsockopt(fd, level, number, edge(1), len_of(1)));
	ROW(getsockopt(fd, level, number, edge(3), len_of(4)));
	ROW(getsockopt(fd, level, number, NULL, NULL));
	ROWS(setsockopt(fd, level, number, bad.at, 4));
	ROWS(setsockopt(fd, level, number, bad.at, 1));
	ROWS_LENGTH(setsockopt(fd, level, number, room, (socklen_t)length));
	ROW(setsockopt(fd, level, number, edge_copy("\1\0\0", 3), 4));
	scene_detail("");
}

#define ROWS_ANSWER(request)                                                                       \
	do {                                                                                       \
		ROWS(ioctl(fd, request, bad.at));                                                  \
		ROW(ioctl(fd, request, edge(4)));                                                  \
		ROW(ioctl(fd, request, edge(3)));                                                  \
	} while (0)

void rows_options(void)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		rows_option(&options[i]);
	ROWS_ANSWER(FIONREAD);
	ROW(ioctl(fd, FIONREAD, value_of(7)));
	ROW(ioctl(fd, SIOCATMARK, value_of(7)));
	ROWS_ANSWER(SIOCOUTQ);
	ROWS_ANSWER(SIOCOUTQNSD);
	ROWS_ANSWER(SIOCATMARK);
	ROWS_ANSWER(FIONBIO);
}
