/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * surface_remote.c - writes a transcript of a socket's calls while it connects to a server, and afterwards
 *
 *   surface_remote silent|refused|echo ADDRESS PORT [answered]
 *
 * silent: the server never answers, so that connections stay pending; with "answered" the program looks at each only after the
 * converter has answered. refused, echo: the server refuses, or echoes. The transcript must be the same with the shim and without it.
 * Built a second time as surface_syscall, which calls everything through syscall(2).
 */
#include "config.h"

#include "common/rawcall.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/uio.h>

#include "answered.h"
#include "await.h"

#ifdef THROUGH_SYSCALL
#include "through_syscall.h"
#endif
#include "say.h"

static union {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
} server;
static socklen_t server_len;
static int wait_for_answers;

static int tcp(int flags)
{
	int fd = socket(server.sa.sa_family, SOCK_STREAM | flags, 0);

	must(fd, "socket");
	return fd;
}

static int go(int fd)
{
	return connect(fd, &server.sa, server_len);
}

static int unspec(int fd)
{
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	return connect(fd, &nobody, sizeof(nobody));
}

static int tcp_state(int fd)
{
	uint8_t info[8] = { 0 };
	socklen_t len = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) < 0 ? -1 : info[0];
}

/* A socket in the middle of connect(). */
static int pending(void)
{
	int fd = tcp(SOCK_NONBLOCK);

	if (go(fd) == 0 || errno != EINPROGRESS)
		must(-1, "connect");
	if (wait_for_answers)
		AWAIT(is_answered(fd));
	return fd;
}

static int ask(int fd, unsigned long request)
{
	int answer = -1;

	return ioctl(fd, request, &answer) < 0 ? -1 : answer;
}

static void limit(int fd, int option, int ms)
{
	struct timeval time = { ms / 1000, ms % 1000 * 1000 };

	must(setsockopt(fd, SOL_SOCKET, option, &time, sizeof(time)), "time limit");
}

static void blocking(int fd)
{
	int off = 0;

	must(ioctl(fd, FIONBIO, &off), "FIONBIO");
}

static void calls(void)
{
	char buf[8];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT };
	int fd = pending(), epfd = epoll_create1(0), other;

	scene("pending");
	say_events(fd);
	SAY(go(fd));
	SAY(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event));
	SAY(epoll_wait(epfd, &event, 1, 0));
	SAY(send(fd, "x", 1, 0));
	SAY(write(fd, "x", 1));
	SAY(send(fd, "x", 1, MSG_OOB));
	SAY(sendto(fd, "x", 1, 0, &server.sa, server_len));
	SAY(recv(fd, buf, 1, 0));
	SAY(recv(fd, buf, 0, 0));
	SAY(recv(fd, buf, 1, MSG_PEEK));
	SAY(recv(fd, buf, 1, MSG_OOB));
	SAY(recv(fd, buf, 1, MSG_ERRQUEUE));
	SAY(recvmsg(fd, &msg, 0));
	SAY(read(fd, buf, 1));
	SAY(readv(fd, &iov, 1));
	SAY(ask(fd, FIONREAD));
	SAY(ask(fd, SIOCOUTQ));
	SAY(ask(fd, SIOCATMARK));
	SAY(listen(fd, 1));
	SAY(accept(fd, NULL, NULL));
	SAY(tcp_state(fd));
	SAY(getpeername(fd, (struct sockaddr *)&name, &len));
	len = sizeof(name);
	SAY(getsockname(fd, (struct sockaddr *)&name, &len));
	SAY(get_int(fd, SOL_SOCKET, SO_PROTOCOL));
	say_error(fd);
	SAY(get_int(fd, SOL_SOCKET, SO_RCVLOWAT));
	SAY(set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 500));
	SAY(get_int(fd, SOL_SOCKET, SO_RCVLOWAT));
	SAY(set_int(fd, IPPROTO_TCP, 18, 4000)); /* TCP_USER_TIMEOUT */
	SAY(get_int(fd, IPPROTO_TCP, 18));
	SAY(shutdown(fd, 7));
	SAY((other = dup(fd)) > fd);
	SAY(go(other));
	say_events(other);
	close(fd);
	SAY(go(other));
	SAY(shutdown(other, SHUT_RDWR));
	SAY(epoll_wait(epfd, &event, 1, LIMIT_MS));
	SAY((event.events & (EPOLLOUT | EPOLLHUP)) != 0);
	say_error(other);
	close(other);
	close(epfd);
}

/* shutdown() of any direction ends a pending connection. */
static void shutdowns(void)
{
	char buf[4];

	for (int how = SHUT_RD; how <= SHUT_RDWR; how++) {
		int fd = pending();

		scene("shutdown");
		SAY(shutdown(fd, how));
		say_events(fd);
		SAY(tcp_state(fd));
		SAY(recv(fd, buf, 1, 0));
		SAY(recv(fd, buf, 1, 0));
		SAY(send(fd, "x", 1, MSG_NOSIGNAL));
		say_error(fd);
		say_events(fd);
		SAY(shutdown(fd, how));
		SAY(go(fd));
		SAY(go(fd));
		close(fd);
		fd = pending();
		SAY(shutdown(fd, how));
		SAY(go(fd));
		SAY(go(fd));
		say_error(fd);
		say_events(fd);
		SAY(shutdown(fd, how));
		say_error(fd);
		SAY(get_int(fd, SOL_SOCKET, SO_ERROR));
		close(fd);
	}
}

static void dissolved(void)
{
	char buf[4];
	int fd = pending();

	scene("AF_UNSPEC");
	SAY(unspec(fd));
	say_events(fd);
	say_error(fd);
	say_events(fd);
	SAY(recv(fd, buf, 1, 0));
	SAY(go(fd));
	SAY(go(fd));
	say_events(fd);
	SAY(unspec(fd));
	SAY(send(fd, "x", 1, MSG_NOSIGNAL));
	SAY(send(fd, "x", 1, MSG_NOSIGNAL));
	SAY(unspec(fd));
	SAY(go(fd));
	say_events(fd);
	close(fd);
}

/* One thread waits in the kernel while another ends the connection. */
struct waiter {
	int fd;
	enum { IN_CONNECT, IN_RECV, IN_SEND, IN_POLL, IN_SELECT, IN_EPOLL, WAITS } where;
	long result;
	int error;
	_Atomic int thread;
};

static long wait_somewhere(const struct waiter *waiter)
{
	struct pollfd poller = { .fd = waiter->fd, .events = POLLIN | POLLOUT | POLLRDHUP };
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT };
	char buf[4];
	fd_set set;
	int epfd;

	switch (waiter->where) {
	case IN_CONNECT:
		return go(waiter->fd);
	case IN_RECV:
		return recv(waiter->fd, buf, 1, 0);
	case IN_SEND:
		return send(waiter->fd, "x", 1, MSG_NOSIGNAL);
	case IN_POLL:
		return poll(&poller, 1, LIMIT_MS) < 0 ? -1 : poller.revents & POLLOUT;
	case IN_SELECT:
		FD_ZERO(&set);
		FD_SET(waiter->fd, &set);
		return select(waiter->fd + 1, NULL, &set, NULL, NULL);
	case IN_EPOLL:
		epfd = epoll_create1(0);
		must(epoll_ctl(epfd, EPOLL_CTL_ADD, waiter->fd, &event), "epoll_ctl");
		event.events = 0;
		must(epoll_wait(epfd, &event, 1, LIMIT_MS), "epoll_wait");
		close(epfd);
		return (event.events & (EPOLLOUT | EPOLLHUP)) != 0; /* which of the two depends on microseconds */
	case WAITS:
		break;
	}
	return 0;
}

static void *wait_in_thread(void *arg)
{
	struct waiter *waiter = arg;

	waiter->thread = gettid();
	waiter->result = wait_somewhere(waiter);
	waiter->error = errno;
	return NULL;
}

static void taken_away(void)
{
	static const char *const names[WAITS] = { "connect", "recv", "send", "poll", "select", "epoll" };

	for (int where = IN_CONNECT; where < WAITS; where++) {
		struct waiter waiter = { .where = where };
		pthread_t thread;

		scene(names[where]);
		waiter.fd = where == IN_CONNECT ? tcp(0) : pending();
		if (where <= IN_SEND)
			blocking(waiter.fd);
		must(-pthread_create(&thread, NULL, wait_in_thread, &waiter), "thread");
		AWAIT(waiter.thread && sleeps_in_call(waiter.thread));
		SAY(shutdown(waiter.fd, SHUT_WR));
		pthread_join(thread, NULL);
		say_result("woken", waiter.result, waiter.error);
		say_error(waiter.fd);
		close(waiter.fd);
	}
}

/* Calls with a time: on 32-bit architectures they have other names in programs whose times have 64 bits. */
static void timed_waits(int fd)
{
	struct timespec wait = { 0, 1000000 }, much = { 5, 0 };
	struct timeval left = { 0, 1000 };
	struct epoll_event event = { .events = EPOLLOUT };
	struct iovec iov = { &(char){ 0 }, 1 };
	struct mmsghdr message = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
	int epfd = epoll_create1(0);
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	SAY(pselect(fd + 1, NULL, &set, NULL, &wait, NULL));
	FD_SET(fd, &set);
	SAY(select(fd + 1, NULL, &set, NULL, &left));
	FD_SET(fd, &set);
	left.tv_sec = -1;
	SAY(select(fd + 1, NULL, &set, NULL, &left));
	SAY(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event));
#if defined(HAVE_EPOLL_PWAIT2) && !defined(THROUGH_SYSCALL) /* the system call has times of 64 bits everywhere */
	SAY(epoll_pwait2(epfd, &event, 1, &wait, NULL));
#endif
	SAY(recvmmsg(fd, &message, 1, 0, &much));
	SAY(much.tv_sec);
	close(epfd);
}

static void limits(void)
{
	struct timespec none = { 0, 1000 }, much = { 5, 0 };
	struct pollfd poller = { .events = POLLOUT }, both[2] = { { .events = POLLOUT }, { .events = POLLOUT } };
	fd_set set;
	char buf[4];
	int fd = tcp(0), flags;

	limit(fd, SO_SNDTIMEO, 30);
	scene("limits");
	SAY(go(fd));
	SAY(go(fd));
	close(fd);
	fd = pending();
	limit(fd, SO_SNDTIMEO, 30);
	limit(fd, SO_RCVTIMEO, 30);
	flags = fcntl(fd, F_GETFL);
	SAY(fcntl(fd, F_SETFL, flags & ~O_NONBLOCK));
	SAY(recv(fd, buf, 1, 0));
	SAY(recv(fd, buf, 1, MSG_DONTWAIT));
	SAY(send(fd, "x", 1, 0));
	SAY(go(fd));
	SAY(fcntl(fd, F_SETFL, flags));
	SAY(recv(fd, buf, 1, 0));
	poller.fd = fd;
	SAY(poll(&poller, 1, 10));
	SAY(ppoll(&poller, 1, &none, NULL));
	timed_waits(fd);
	both[0] = poller;
	both[1].fd = tcp(0);
	SAY(ppoll(both, 2, &much, NULL));
	SAY(much.tv_sec == 5); /* the system call writes the rest of the time back */
	close(both[1].fd);
	none.tv_nsec = -1;
	SAY(ppoll(&poller, 1, &none, NULL));
	FD_ZERO(&set);
	FD_SET(fd, &set);
	SAY(pselect(fd + 1, NULL, &set, NULL, &none, NULL));
	close(fd);
}

static void refused(void)
{
	char buf[4];
	int fd = tcp(SOCK_NONBLOCK);

	scene("refused");
	SAY(go(fd));
	await(fd, POLLOUT);
	SAY(tcp_state(fd));
	SAY(ask(fd, FIONREAD));
	SAY(recv(fd, buf, 1, 0));
	SAY(recv(fd, buf, 1, 0));
	SAY(send(fd, "x", 1, MSG_NOSIGNAL));
	say_error(fd);
	SAY(go(fd));
	SAY(go(fd));
	await(fd, POLLOUT);
	SAY(unspec(fd));
	say_error(fd);
	SAY(go(fd));
	await(fd, POLLOUT);
	SAY(send(fd, "x", 1, MSG_NOSIGNAL));
	SAY(send(fd, "x", 1, MSG_NOSIGNAL));
	SAY(recv(fd, buf, 1, 0));
	SAY(shutdown(fd, SHUT_WR));
	close(fd);
	fd = tcp(0);
	SAY(go(fd));
	say_error(fd);
	SAY(recv(fd, buf, 1, 0));
	SAY(go(fd));
	close(fd);
}

/* Receives @len bytes, also if the answer comes in pieces. */
static int echoed(int fd, int len)
{
	char buf[64];
	int got = 0, more = 1;

	while (got < len && more > 0) {
		await(fd, POLLIN);
		more = (int)recv(fd, buf + got, (size_t)(len - got), 0);
		got += more;
	}
	return more < 0 ? more : memcmp(buf, "abcdefghijklmnopqrst", (size_t)got) ? -1 : got;
}

/* Options that MPTCP accepts only before connect(). */
static void say_late_options(int fd)
{
	SAY(set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1));
	SAY(get_int(fd, SOL_SOCKET, SO_REUSEADDR));
	SAY(set_int(fd, SOL_SOCKET, SO_REUSEADDR, 0));
	SAY(get_int(fd, SOL_SOCKET, SO_REUSEADDR));
	SAY(set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1));
	SAY(get_int(fd, SOL_SOCKET, SO_REUSEPORT));
	SAY(set_int(fd, IPPROTO_IP, 15, 1)); /* IP_FREEBIND */
	SAY(set_int(fd, IPPROTO_IP, 24, 1)); /* IP_BIND_ADDRESS_NO_PORT */
	SAY(get_int(fd, IPPROTO_IP, 24));
	SAY(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, "1", 1)); /* no int */
}

/* A socket for IPv6 alone can't connect to a v4-mapped address. */
static void v6only(void)
{
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6, .sin6_port = server.in.sin_port };
	int fd;

	if (server.sa.sa_family != AF_INET)
		return;
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	scene("v6only");
	mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&mapped.sin6_addr.s6_addr[12], &server.in.sin_addr, 4);
	SAY(set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1));
	SAY(connect(fd, (struct sockaddr *)&mapped, sizeof(mapped)));
	say_error(fd);
	close(fd);
}

static void echo(void)
{
	char buf[64], *letters = buf;
	struct sockaddr_storage name;
	struct iovec iov[2] = { { buf, 3 }, { buf + 3, 4 } };
	struct msghdr msg = { .msg_name = &name, .msg_namelen = sizeof(name), .msg_iov = iov, .msg_iovlen = 2 };
	socklen_t len = sizeof(name);
	int fd = tcp(SOCK_NONBLOCK);

	scene("echo");
	SAY(set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 500));
	SAY(go(fd));
	await(fd, POLLOUT);
	say_error(fd);
	SAY(go(fd));
	SAY(tcp_state(fd));
	SAY(get_int(fd, SOL_SOCKET, SO_RCVLOWAT));
	SAY(set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 6));
	SAY(getpeername(fd, (struct sockaddr *)&name, &len));
	say("%d", memcmp(&name, &server, len));
	SAY(get_int(fd, SOL_SOCKET, SO_PROTOCOL));
	SAY(get_int(fd, IPPROTO_IP, IP_TTL) > 0);
	SAY(set_int(fd, IPPROTO_TCP, 12, 1)); /* TCP_QUICKACK */
	say_late_options(fd);
	memcpy(letters, "abcdefghijklmnopqrst", 20);
	SAY(ask(fd, FIONREAD));
	SAY(recv(fd, buf + 32, 1, 0));
	SAY(recv(fd, buf + 32, 0, 0));
	SAY(send(fd, letters, 10, 0));
	SAY(echoed(fd, 10));
	SAY(writev(fd, iov, 2));
	await(fd, POLLIN);
	SAY(set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1));
	SAY(recv(fd, buf + 32, 2, MSG_PEEK | MSG_TRUNC));
	SAY(recv(fd, NULL, 2, MSG_TRUNC));
	SAY(recv(fd, buf + 32, 1, MSG_OOB));
	SAY(recvmsg(fd, &msg, 0));
	say("%u %.5s", (unsigned int)msg.msg_namelen, buf);
	blocking(fd);
	SAY(send(fd, "abc", 3, MSG_MORE));
	SAY(send(fd, "defgh", 5, 0));
	SAY(recv(fd, buf, 8, MSG_WAITALL));
	SAY(shutdown(fd, SHUT_WR));
	SAY(send(fd, "x", 1, MSG_NOSIGNAL));
	SAY(recv(fd, buf, 1, 0));
	SAY(ask(fd, FIONREAD));
	SAY(unspec(fd));
	SAY(recv(fd, buf, 1, 0));
	SAY(get_int(fd, SOL_SOCKET, SO_ERROR) >= 0);
	SAY(go(fd));
	SAY(send(fd, letters, 5, 0));
	SAY(recv(fd, buf, 5, MSG_WAITALL));
	close(fd);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 3 ? argv[1] : "";
	int ipv6 = argc > 3 && strchr(argv[2], ':');

	if (argc < 4)
		return 2;
	server_len = ipv6 ? sizeof(server.in6) : sizeof(server.in);
	server.sa.sa_family = ipv6 ? AF_INET6 : AF_INET;
	server.in.sin_port = htons((uint16_t)atoi(argv[3])); /* the port is at the same place in both families */
	if (inet_pton(server.sa.sa_family, argv[2], ipv6 ? (void *)&server.in6.sin6_addr : &server.in.sin_addr) != 1)
		return 2;
	wait_for_answers = argc > 4 && strcmp(argv[4], "answered") == 0;
	if (strcmp(kind, "silent") == 0) {
		calls();
		shutdowns();
		dissolved();
		taken_away();
		limits();
	} else if (strcmp(kind, "refused") == 0) {
		refused();
	} else {
		echo();
		v6only();
	}
	return 0;
}
