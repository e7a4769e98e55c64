/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * surface_local.c - writes a transcript of sockets that never leave this host
 *
 *   surface_local 4|6
 *
 * Calls on sockets that aren't connected, listeners, and connections over the loopback interface. The transcript must be the same with
 * the shim and without it, also in whether sockets are MPTCP ones: none of them concerns the converter.
 */
#include "config.h"

#include "say.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

/* <netinet/tcp.h> and <linux/tcp.h> can't be included together, and neither has all of these options. */
#define TCP_NODELAY 1
#define TCP_MAXSEG 2
#define TCP_SYNCNT 7
#define TCP_LINGER2 8
#define TCP_DEFER_ACCEPT 9
#define TCP_INFO 11
#define TCP_QUICKACK 12
#define TCP_CONGESTION 13
#define TCP_USER_TIMEOUT 18
#define TCP_FASTOPEN 23
#define TCP_ULP 31
#define SOL_MPTCP 284
#define MPTCP_INFO 1

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static int family;
static socklen_t address_len;

static union address loopback(int port)
{
	union address address = { .sa.sa_family = (sa_family_t)family };

	if (family == AF_INET) {
		address.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		address.in.sin_port = htons((uint16_t)port);
	} else {
		address.in6.sin6_addr = in6addr_loopback;
		address.in6.sin6_port = htons((uint16_t)port);
	}
	return address;
}

static union address name_of(int fd)
{
	union address address;
	socklen_t len = sizeof(address);

	must(getsockname(fd, &address.sa, &len), "getsockname");
	return address;
}

static int tcp(int flags)
{
	int fd = socket(family, SOCK_STREAM | flags, 0);

	must(fd, "socket");
	return fd;
}

/* Only MPTCP sockets have MPTCP_INFO. A library may have its own answer to SO_PROTOCOL. */
static void say_kind(int fd)
{
	char info[256];
	socklen_t len = sizeof(info);

	say(getsockopt(fd, SOL_MPTCP, MPTCP_INFO, info, &len) == 0 ? "MPTCP" : "TCP");
}

static int listener(int flags)
{
	union address any = loopback(0);
	int fd = tcp(flags);

	must(bind(fd, &any.sa, address_len), "bind");
	must(listen(fd, 5), "listen");
	return fd;
}

static int connect_to(int fd, int target)
{
	union address address = name_of(target);

	return connect(fd, &address.sa, address_len);
}

static int unspec(int fd)
{
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	return connect(fd, &nobody, sizeof(nobody));
}

static int ask(int fd, unsigned long request)
{
	int answer = -1;

	return ioctl(fd, request, &answer) < 0 ? -1 : answer;
}

static void idle(void)
{
	char buf[16];
	int fd = tcp(SOCK_NONBLOCK);
	union address peer;
	socklen_t len = sizeof(peer);

	scene("idle");
	say_events(fd);
	SAY(send(fd, "x", 1, MSG_NOSIGNAL));
	SAY(send(fd, "x", 1, MSG_OOB | MSG_NOSIGNAL));
	SAY(recv(fd, buf, sizeof(buf), 0));
	SAY(recv(fd, buf, sizeof(buf), MSG_PEEK));
	SAY(recv(fd, buf, 1, MSG_OOB));
	SAY(recv(fd, buf, sizeof(buf), MSG_ERRQUEUE));
	SAY(read(fd, buf, sizeof(buf)));
	SAY(ask(fd, FIONREAD));
	SAY(ask(fd, SIOCOUTQ));
	SAY(ask(fd, SIOCATMARK));
	SAY(sockatmark(fd));
	SAY(getpeername(fd, &peer.sa, &len));
	SAY(accept(fd, NULL, NULL));
	SAY(get_int(fd, SOL_SOCKET, SO_PROTOCOL));
	SAY(get_int(fd, SOL_SOCKET, SO_DOMAIN) == family);
	SAY(get_int(fd, SOL_SOCKET, SO_TYPE));
	SAY(get_int(fd, SOL_SOCKET, SO_ACCEPTCONN));
	SAY(unspec(fd));
	SAY(shutdown(fd, 9));
	for (int how = SHUT_RD; how <= SHUT_RDWR; how++)
		SAY(shutdown(fd, how));
	say_events(fd);
	SAY(recv(fd, buf, sizeof(buf), 0));
	close(fd);
}

/* Sets each option, gets it, and sets it to a wrong value. */
static void options(void)
{
	static const struct {
		const char *text;
		int level, name, right, wrong;
	} all[] = {
		{ "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 1, 0 },
		{ "TCP_SYNCNT", IPPROTO_TCP, TCP_SYNCNT, 3, 999 },
		{ "TCP_LINGER2", IPPROTO_TCP, TCP_LINGER2, 5, -1 },
		{ "TCP_QUICKACK", IPPROTO_TCP, TCP_QUICKACK, 0, 1 },
		{ "TCP_USER_TIMEOUT", IPPROTO_TCP, TCP_USER_TIMEOUT, 3000, -1 },
		{ "no option", IPPROTO_TCP, 9999, 1, 0 },
		{ "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 1, 0 },
		{ "SO_OOBINLINE", SOL_SOCKET, SO_OOBINLINE, 1, 0 },
		{ "SO_PEEK_OFF", SOL_SOCKET, SO_PEEK_OFF, 3, -5 },
		{ "SO_MAX_PACING_RATE", SOL_SOCKET, SO_MAX_PACING_RATE, 100000, -1 },
		{ "SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 50000, 0 },
		{ "SO_RCVLOWAT", SOL_SOCKET, SO_RCVLOWAT, 7, -1 },
		{ "no option", SOL_SOCKET, 9999, 1, 0 },
		{ "IP_TOS", IPPROTO_IP, IP_TOS, 16, 0 },
		{ "IP_TTL", IPPROTO_IP, IP_TTL, 33, 999 },
		{ "IP_MTU_DISCOVER", IPPROTO_IP, IP_MTU_DISCOVER, 2, 99 },
		{ "IP_MTU", IPPROTO_IP, IP_MTU, 1, 0 },
		{ "IP_RECVERR", IPPROTO_IP, IP_RECVERR, 1, 0 },
		{ "no option", IPPROTO_IP, 9999, 1, 0 },
		{ "IPV6_V6ONLY", IPPROTO_IPV6, IPV6_V6ONLY, 1, 0 },
		{ "IPV6_TCLASS", IPPROTO_IPV6, IPV6_TCLASS, 16, 999 },
		{ "IPV6_UNICAST_HOPS", IPPROTO_IPV6, IPV6_UNICAST_HOPS, 16, 999 },
		{ "IPV6_RECVTCLASS", IPPROTO_IPV6, IPV6_RECVTCLASS, 1, 0 },
		{ "no level", 9999, 1, 1, 0 },
	};
	char text[32] = "";
	socklen_t len = sizeof(text);
	int fd;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i].level == IPPROTO_IPV6 && family != AF_INET6)
			continue;
		fd = tcp(0);
		scene(all[i].text);
		SAY(get_int(fd, all[i].level, all[i].name));
		SAY(set_int(fd, all[i].level, all[i].name, all[i].right));
		SAY(get_int(fd, all[i].level, all[i].name));
		SAY(set_int(fd, all[i].level, all[i].name, all[i].wrong));
		SAY(get_int(fd, all[i].level, all[i].name));
		SAY(setsockopt(fd, all[i].level, all[i].name, &all[i].right, 0));
		SAY(getsockopt(fd, all[i].level, all[i].name, text, &len));
		len = sizeof(text);
		close(fd);
	}
	fd = tcp(0);
	scene("strings");
	SAY(getsockopt(fd, IPPROTO_TCP, TCP_ULP, text, &len));
	say("%d bytes", (int)len);
	len = sizeof(text);
	SAY(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
	SAY(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, text, &len));
	say("%s", text);
	close(fd);
}

/* Options, flags and address must survive listen(), for which the shim replaces an MPTCP socket by a TCP one. */
static void kept(void)
{
	static const struct {
		int level, name, value;
	} set[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },     { SOL_SOCKET, SO_RCVBUF, 40000 },
		{ SOL_SOCKET, SO_SNDBUF, 30000 },    { SOL_SOCKET, SO_PRIORITY, 3 },
		{ IPPROTO_TCP, TCP_NODELAY, 1 },     { IPPROTO_TCP, TCP_MAXSEG, 600 },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, 7 }, { IPPROTO_TCP, TCP_FASTOPEN, 7 },
		{ IPPROTO_TCP, TCP_DEFER_ACCEPT, 3 }, { IPPROTO_IP, IP_TOS, 8 },
	};
	struct timeval patience = { 3, 250000 };
	struct linger linger = { 1, 5 };
	socklen_t len = sizeof(linger);
	int fd = tcp(SOCK_NONBLOCK | SOCK_CLOEXEC);
	union address any = loopback(0), name;

	scene("kept");
	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
		SAY(set_int(fd, set[i].level, set[i].name, set[i].value));
	SAY(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	SAY(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	SAY(fcntl(fd, F_SETOWN, getpid()));
	SAY(fcntl(fd, F_SETSIG, SIGUSR1));
	SAY(bind(fd, &any.sa, address_len));
	name = name_of(fd);
	SAY(listen(fd, 5));
	say_kind(fd);
	SAY(memcmp(&name, &any, 2) || memcmp(&name, (name = name_of(fd), &name), address_len));
	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
		SAY(get_int(fd, set[i].level, set[i].name));
	memset(&linger, 0, sizeof(linger));
	SAY(getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len));
	say("%d %d", linger.l_onoff, linger.l_linger);
	len = sizeof(patience);
	memset(&patience, 0, sizeof(patience));
	SAY(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, &len));
	say("%d.%06d", (int)patience.tv_sec, (int)patience.tv_usec);
	SAY(get_int(fd, SOL_SOCKET, SO_REUSEADDR));
	SAY(fcntl(fd, F_GETFL));
	SAY(fcntl(fd, F_GETFD));
	SAY(fcntl(fd, F_GETOWN) == getpid());
	SAY(fcntl(fd, F_GETSIG) == SIGUSR1);
	close(fd);
}

/* If a socket has another descriptor, or another process has it, all of them must see the same socket. */
static void shared(void)
{
	char buf[4] = "";
	int fd = tcp(0), other = dup(fd), status, listens[2];
	union address any = loopback(0);
	pid_t child;

	scene("dup");
	SAY(bind(other, &any.sa, address_len));
	SAY(listen(fd, 5));
	SAY(get_int(other, SOL_SOCKET, SO_ACCEPTCONN));
	SAY(get_int(fd, SOL_SOCKET, SO_PROTOCOL));
	close(fd);
	fd = tcp(0);
	must(connect_to(fd, other), "connect");
	close(fd);
	SAY(get_int(accept(other, NULL, NULL), SOL_SOCKET, SO_PROTOCOL));
	close(other);

	fd = tcp(0);
	must(bind(fd, &any.sa, address_len), "bind");
	scene("fork");
	must(pipe(listens), "pipe");
	fflush(stdout);
	child = fork();
	if (child == 0) {
		other = tcp(0);
		must(read(listens[0], buf, 1) == 1 ? connect_to(other, fd) : -1, "connect");
		_exit(write(other, "hi", 2) == 2 && get_int(fd, SOL_SOCKET, SO_ACCEPTCONN) == 1 ? 0 : 1);
	}
	SAY(listen(fd, 5));
	must((int)write(listens[1], "!", 1), "write");
	other = accept(fd, NULL, NULL);
	SAY(read(other, buf, 2));
	SAY(waitpid(child, &status, 0) == child && status == 0);
	close(listens[0]);
	close(listens[1]);
	close(fd);
	close(other);
}

static void listening(void)
{
	char buf[4];
	int fd = tcp(SOCK_NONBLOCK);
	union address any = loopback(0);

	scene("listener");
	SAY(bind(fd, &any.sa, address_len));
	SAY(bind(fd, &any.sa, address_len));
	SAY(listen(fd, 3));
	say_kind(fd);
	SAY(listen(fd, 1));
	say_events(fd);
	SAY(get_int(fd, SOL_SOCKET, SO_PROTOCOL));
	SAY(get_int(fd, SOL_SOCKET, SO_ACCEPTCONN));
	SAY(send(fd, "x", 1, MSG_NOSIGNAL));
	SAY(recv(fd, buf, 1, 0));
	SAY(connect_to(fd, fd));
	SAY(accept(fd, NULL, NULL));
	SAY(ask(fd, FIONREAD));
	for (int how = SHUT_WR; how >= SHUT_RD; how--) {
		SAY(shutdown(fd, how));
		say_events(fd);
	}
	SAY(accept(fd, NULL, NULL));
	SAY(listen(fd, 3));
	SAY(accept(fd, NULL, NULL));
	SAY(unspec(fd));
	SAY(accept(fd, NULL, NULL));
	close(fd);
	fd = tcp(0);
	scene("listens without bind");
	SAY(listen(fd, 1));
	say_kind(fd);
	close(fd);
}

/* The address of a bound socket must stay taken, by this process alone. */
static void taken(void)
{
	int fd = listener(0), other = tcp(0), third = tcp(0);
	union address address = name_of(fd);

	scene("taken");
	SAY(bind(other, &address.sa, address_len));
	SAY(set_int(other, SOL_SOCKET, SO_REUSEADDR, 1));
	SAY(bind(other, &address.sa, address_len));
	close(fd);
	SAY(bind(other, &address.sa, address_len));
	SAY(listen(other, 1));
	say_kind(other);
	SAY(set_int(third, SOL_SOCKET, SO_REUSEPORT, 1));
	SAY(bind(third, &address.sa, address_len));
	close(other);
	close(third);
	fd = tcp(0);
	other = tcp(0);
	address = loopback(0);
	SAY(set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1));
	SAY(set_int(other, SOL_SOCKET, SO_REUSEPORT, 1));
	SAY(bind(fd, &address.sa, address_len));
	address = name_of(fd);
	SAY(bind(other, &address.sa, address_len));
	SAY(listen(fd, 1));
	SAY(listen(other, 1));
	say_kind(fd);
	say_kind(other);
	close(fd);
	close(other);
}

static void connects_wrongly(void)
{
	int fd = tcp(0), closed = listener(0);
	union address address = name_of(closed), odd = address;

	close(closed);
	odd.sa.sa_family = 99;
	scene("wrong connects");
	SAY(connect(fd, &address.sa, 8));
	SAY(connect(fd, &odd.sa, address_len));
	SAY(connect(fd, NULL, 0));
	SAY(connect(fd, &address.sa, address_len));
	say_events(fd);
	say_error(fd);
	SAY(connect(fd, &address.sa, address_len));
	say_kind(fd);
	close(fd);
	SAY(connect(fd, &address.sa, address_len));
	SAY(connect(STDIN_FILENO, &address.sa, address_len));
	fd = tcp(SOCK_NONBLOCK);
	scene("refused, not waited for");
	SAY(connect(fd, &address.sa, address_len));
	SAY(await(fd, POLLOUT) & POLLERR);
	say_events(fd);
	SAY(recv(fd, &odd, 1, 0));
	SAY(recv(fd, &odd, 1, 0));
	say_events(fd);
	SAY(connect(fd, &address.sa, address_len));
	close(fd);
}

/* Transfers data in both directions, urgent data, and the end of the stream. */
static void stream(void)
{
	char buf[64];
	int listening_fd = listener(0), fd = tcp(0), server;
	struct tcp_state {
		uint8_t state, rest[7];
	} info;
	socklen_t len = sizeof(info);
	union address address, name;

	scene("stream");
	SAY(connect_to(fd, listening_fd));
	server = accept(listening_fd, NULL, NULL);
	say_kind(fd);
	say_kind(server);
	address = name_of(server);
	len = sizeof(name);
	SAY(getpeername(fd, &name.sa, &len));
	say("%u %d", (unsigned int)len, memcmp(&name, &address, len));
	SAY(connect_to(fd, listening_fd));
	SAY(listen(fd, 1));
	SAY(get_int(fd, SOL_SOCKET, SO_PROTOCOL));
	SAY(get_int(server, SOL_SOCKET, SO_PROTOCOL));
	len = sizeof(info);
	SAY(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	say("state %d", info.state);
	SAY(get_int(fd, IPPROTO_IP, IP_MTU));
	SAY(set_int(fd, IPPROTO_IP, IP_TTL, 60));
	SAY(get_int(fd, IPPROTO_IP, IP_TTL));
	SAY(write(server, "abcdefghij", 10));
	await(fd, POLLIN);
	SAY(recv(fd, buf, 3, MSG_PEEK | MSG_TRUNC));
	SAY(recv(fd, NULL, 3, MSG_TRUNC));
	SAY(ask(fd, FIONREAD));
	SAY(recv(fd, buf, 5, MSG_WAITALL));
	SAY(recv(fd, buf, 1, MSG_OOB));
	SAY(recv(fd, buf, 10, MSG_WAITALL | MSG_DONTWAIT));
	SAY(recv(fd, buf, 0, MSG_DONTWAIT));
	SAY(recv(fd, buf, 1, MSG_ERRQUEUE));
	SAY(send(server, "u", 1, MSG_OOB));
	SAY(await(fd, POLLPRI) & POLLPRI);
	SAY(sockatmark(fd));
	SAY(recv(fd, buf, 1, MSG_OOB));
	SAY(recv(fd, buf, 1, MSG_DONTWAIT));
	SAY(shutdown(server, SHUT_WR));
	SAY(await(fd, POLLRDHUP) & POLLRDHUP);
	SAY(ask(fd, FIONREAD));
	SAY(recv(fd, buf, 1, 0));
	SAY(unspec(fd));
	say_error(fd);
	SAY(recv(fd, buf, 1, 0));
	SAY(recv(server, buf, 1, 0));
	close(fd);
	close(server);
	close(listening_fd);
}

static void reset(void)
{
	char buf[4];
	struct linger at_once = { 1, 0 };
	int listening_fd = listener(0), fd = tcp(0), server;

	scene("reset");
	SAY(connect_to(fd, listening_fd));
	server = accept(listening_fd, NULL, NULL);
	must(setsockopt(server, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), "SO_LINGER");
	close(server);
	await(fd, POLLRDHUP);
	say_events(fd);
	SAY(recv(fd, buf, 1, 0));
	SAY(recv(fd, buf, 1, 0));
	SAY(send(fd, "x", 1, MSG_NOSIGNAL));
	say_events(fd);
	SAY(shutdown(fd, SHUT_WR));
	close(fd);
	close(listening_fd);
}

/* An epoll registration from before connect() or listen(). */
static void watched(unsigned int mode)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | mode, .data.u64 = 7 }, got;
	int epfd = epoll_create1(0), listening_fd = tcp(0), fd = tcp(SOCK_NONBLOCK);
	union address any = loopback(0);

	scene(mode & EPOLLET ? "watched, edges" : "watched");
	SAY(epoll_ctl(epfd, EPOLL_CTL_ADD, listening_fd, &event));
	must(bind(listening_fd, &any.sa, address_len), "bind");
	must(listen(listening_fd, 5), "listen");
	say_kind(listening_fd);
	SAY(epoll_wait(epfd, &got, 1, 0));
	SAY(connect_to(fd, listening_fd));
	SAY(epoll_wait(epfd, &got, 1, LIMIT_MS));
	say("%x %d", got.events, (int)got.data.u64);
	SAY(epoll_ctl(epfd, EPOLL_CTL_ADD, listening_fd, &event));
	SAY(epoll_ctl(epfd, EPOLL_CTL_DEL, listening_fd, NULL));
	close(fd);
	fd = tcp(SOCK_NONBLOCK);
	event.data.u64 = 8;
	SAY(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event));
	SAY(epoll_wait(epfd, &got, 1, 0));
	say("%x", got.events);
	SAY(connect_to(fd, listening_fd));
	say_kind(fd);
	SAY(epoll_wait(epfd, &got, 1, LIMIT_MS));
	say("%x %d", got.events, (int)got.data.u64);
	SAY(epoll_wait(epfd, &got, 1, 0));
	SAY(epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL));
	close(fd);
	close(listening_fd);
	close(epfd);
}

/* A socket with an option that MPTCP lacks, which then connects. */
static void demanding(void)
{
	int listening_fd = listener(0), fd = tcp(0), server;
	char buf[4] = "";

	scene("demanding");
	SAY(set_int(fd, SOL_SOCKET, SO_OOBINLINE, 1));
	say_kind(fd);
	SAY(connect_to(fd, listening_fd));
	server = accept(listening_fd, NULL, NULL);
	SAY(send(server, "u", 1, MSG_OOB));
	await(fd, POLLIN);
	SAY(recv(fd, buf, 2, 0));
	close(fd);
	close(server);
	close(listening_fd);
}

/* The process may neither get nor lose a descriptor. */
static void descriptors(void)
{
	int before = dup(STDIN_FILENO), fds[5];

	close(before);
	for (int i = 0; i < 5; i++)
		fds[i] = listener(0);
	for (int i = 0; i < 5; i++)
		close(fds[i]);
	scene("descriptors");
	SAY(dup(STDIN_FILENO) == before);
	close(before);
}

int main(int argc, char **argv)
{
	family = argc > 1 && *argv[1] == '6' ? AF_INET6 : AF_INET;
	address_len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	idle();
	options();
	kept();
	shared();
	listening();
	taken();
	connects_wrongly();
	stream();
	reset();
	watched(0);
	watched(EPOLLET);
	demanding();
	descriptors();
	return 0;
}
