/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * again.c - uses a socket in other ways than one connect(): again ADDRESS PORT CLOSED CASE
 *
 *	shutdown   another thread shuts the socket down while its connect() waits; then it connects again
 *	close      another thread closes it while its connect() waits; another descriptor for it stays open
 *	refused    the server refuses (its port CLOSED), a second connect() returns the error, and the socket connects again
 *	told       likewise, but SO_ERROR has the error; for both, ADDRESS may be of IPv6
 *	unspec     AF_UNSPEC undoes a non-blocking connect() to CLOSED at once, and the socket connects again
 *	network    a thread moves to a new network namespace, which reaches no server, and connects there
 *	owner      the process owns the signals of the socket (F_SETOWN) and connects it
 *	message    another thread executes this program, with "left", while a sendmmsg() waits, whose count has the same address in both
 *	odd        flags that socket() doesn't know; an IPv6 socket without IPv4 to an IPv4 address
 *
 * Prints a transcript, which must be the same with and without a supervisor.
 */
#include "moments.h"

#include <sched.h>

static struct sockaddr_in closed;
static struct sockaddr_in6 server6, closed6; /* if ADDRESS is of IPv6 */

static int connect_to(int fd, const void *to)
{
	const struct sockaddr *addr = to;

	return connect(fd, addr, addr->sa_family == AF_INET6 ? sizeof(server6) : sizeof(server));
}

static int tcp(int flags)
{
	int fd = socket(AF_INET, SOCK_STREAM | flags, 0);

	if (fd < 0)
		exit(2);
	return fd;
}

static void await_end(int fd)
{
	struct pollfd ended = { .fd = fd, .events = POLLOUT };

	printf("poll: %s\n", poll(&ended, 1, PATIENCE_MS) == 1 && ended.revents & POLLERR ? "an error" : "none");
}

static void *shut_down(void *unused)
{
	(void)unused;
	await_connect(getpid());
	shutdown(sock, SHUT_RDWR);
	return NULL;
}

static void *close_it(void *unused)
{
	(void)unused;
	await_connect(getpid());
	close(sock);
	return NULL;
}

static void shut_while_connecting(void)
{
	pthread_t thread;

	sock = tcp(0);
	start(&thread, shut_down, NULL);
	printf("connect: %s\n", said(connect_to(sock, &server)));
	pthread_join(thread, NULL);
	printf("connect again: %s\n", said(connect_to(sock, &server)));
	talk(sock);
}

static void closed_while_connecting(void)
{
	pthread_t thread;
	int other;

	sock = tcp(0);
	other = dup(sock);
	start(&thread, close_it, NULL);
	printf("connect: %s\n", said(connect_to(sock, &server)));
	pthread_join(thread, NULL);
	talk(other);
}

static void refused(bool by_option)
{
	const bool v6 = server6.sin6_family;
	const void *to = v6 ? (const void *)&server6 : &server, *nobody = v6 ? (const void *)&closed6 : &closed;
	socklen_t len = sizeof(int);
	int error = 0, ret;

	sock = v6 ? socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0) : tcp(SOCK_NONBLOCK);
	printf("connect: %s\n", said(connect_to(sock, nobody)));
	await_end(sock);
	if (by_option)
		getsockopt(sock, SOL_SOCKET, SO_ERROR, &error, &len);
	else
		error = connect_to(sock, nobody) < 0 ? errno : 0;
	printf("told: %s\n", strerror(error));
	ret = connect_to(sock, to);
	if (ret < 0 && errno == ECONNABORTED) /* Linux returns this once if no connect() has returned the error */
		ret = connect_to(sock, to);
	printf("connect again: %s\n", said(ret));
	talk(sock);
}

static void undone(void)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	sock = tcp(SOCK_NONBLOCK);
	printf("connect: %s\n", said(connect_to(sock, &closed)));
	printf("undone: %s\n", said(connect(sock, &none, sizeof(none))));
	printf("connect again: %s\n", said(connect_to(sock, &server)));
	talk(sock);
}

static void *elsewhere(void *unused)
{
	int fd;

	(void)unused;
	if (unshare(CLONE_NEWNET) != 0)
		exit(77);
	fd = tcp(0);
	printf("elsewhere: %s\n", said(connect_to(fd, &server)));
	return NULL;
}

static void from_another_network(void)
{
	pthread_t thread;

	start(&thread, elsewhere, NULL);
	pthread_join(thread, NULL);
	sock = tcp(0);
	printf("here: %s\n", said(connect_to(sock, &server)));
	talk(sock);
}

static void owned(void)
{
	sock = tcp(0);
	fcntl(sock, F_SETOWN, getpid());
	fcntl(sock, F_SETSIG, SIGURG); /* which is ignored */
	printf("connect: %s\n", said(connect_to(sock, &server)));
	printf("owner: %s, signal: %s\n", fcntl(sock, F_GETOWN) == getpid() ? "this process" : "another",
	       fcntl(sock, F_GETSIG) == SIGURG ? "as set" : "another");
	talk(sock);
}

static void odd(void)
{
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6, .sin6_port = server.sin_port };
	int fd = socket(AF_INET6, SOCK_STREAM, 0), on = 1;

	mapped.sin6_addr.s6_addr16[5] = 0xffff;
	mapped.sin6_addr.s6_addr32[3] = server.sin_addr.s_addr;
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	printf("flags: %s\n", said(socket(AF_INET, SOCK_STREAM | 0x10000, 0)));
	printf("IPv4: %s\n", said(connect(fd, (struct sockaddr *)&mapped, sizeof(mapped))));
}

static char **arguments;
static struct mmsghdr message;

static void *execute(void *unused)
{
	(void)unused;
	AWAIT(call_of(getpid()) == SYS_sendmmsg);
	execl("/proc/self/exe", arguments[0], arguments[1], arguments[2], arguments[3], "left", (char *)NULL);
	exit(2);
}

static void executed_meanwhile(void)
{
	struct iovec bytes = { TEXT, strlen(TEXT) };
	pthread_t thread;

	sock = tcp(SOCK_CLOEXEC);
	message.msg_hdr = (struct msghdr){ .msg_name = &server, .msg_namelen = sizeof(server), .msg_iov = &bytes, .msg_iovlen = 1 };
	start(&thread, execute, NULL);
	sendmmsg(sock, &message, 1, MSG_FASTOPEN);
	pthread_join(thread, NULL);
}

/* The server answers this connect() after that sendmmsg(). */
static void left(void)
{
	printf("connect: %s\n", said(connect_to(tcp(0), &server)));
	printf("count: %u\n", message.msg_len);
}

int main(int argc, char *argv[])
{
	const char *which = argc == 5 ? argv[4] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 5)
		return 2;
	if (inet_pton(AF_INET6, argv[1], &server6.sin6_addr) == 1)
		server6.sin6_family = AF_INET6;
	else if (inet_pton(AF_INET, argv[1], &server.sin_addr) != 1)
		return 2;
	arguments = argv;
	server.sin_family = AF_INET;
	server.sin_port = htons((uint16_t)strtol(argv[2], NULL, 10));
	closed = server;
	closed.sin_port = htons((uint16_t)strtol(argv[3], NULL, 10));
	server6.sin6_port = server.sin_port;
	closed6 = server6;
	closed6.sin6_port = closed.sin_port;
	if (strcmp(which, "shutdown") == 0)
		shut_while_connecting();
	else if (strcmp(which, "close") == 0)
		closed_while_connecting();
	else if (strcmp(which, "refused") == 0)
		refused(false);
	else if (strcmp(which, "told") == 0)
		refused(true);
	else if (strcmp(which, "unspec") == 0)
		undone();
	else if (strcmp(which, "network") == 0)
		from_another_network();
	else if (strcmp(which, "owner") == 0)
		owned();
	else if (strcmp(which, "message") == 0)
		executed_meanwhile();
	else if (strcmp(which, "left") == 0)
		left();
	else if (strcmp(which, "odd") == 0)
		odd();
	else
		return 2;
	return 0;
}
