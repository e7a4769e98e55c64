/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * surface_interrupts.c - writes a transcript of cancellation and signals during a pending connection
 *
 *   surface_interrupts cancellation|signals ADDRESS PORT
 *
 * The server never answers. "cancellation" cancels threads in each call that waits. "signals" checks that other calls are no cancellation
 * points, that signals interrupt the same calls as in the kernel, and that handlers may make async-signal-safe calls. The transcript
 * must be the same with the shim and without it.
 */
#include "config.h"

#include "await.h"
#include "say.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>

#define MANY 300 /* descriptors: more than a hook has room for on its stack */
#define ROUNDS 300
#define TICK_US 400

static struct sockaddr_in server = { .sin_family = AF_INET };

static int tcp(int flags)
{
	int fd = socket(AF_INET, SOCK_STREAM | flags, 0);

	must(fd, "socket");
	return fd;
}

static int go(int fd)
{
	return connect(fd, (struct sockaddr *)&server, sizeof(server));
}

static int pending(void)
{
	int fd = tcp(SOCK_NONBLOCK);

	if (go(fd) == 0 || errno != EINPROGRESS)
		must(-1, "connect");
	return fd;
}

static void blocking(int fd)
{
	int off = 0;

	must(ioctl(fd, FIONBIO, &off), "FIONBIO");
}

enum where { IN_CONNECT, IN_RECV, IN_READ, IN_SEND, IN_POLL, IN_POLL_MANY, IN_SELECT, IN_EPOLL, WAITS };

static const char *const names[WAITS] = { "connect", "recv", "read", "send", "poll", "poll of many", "select", "epoll" };

struct waiter {
	enum where where;
	int fd, epfd;
	_Atomic int thread;
};

static void wait_somewhere(const struct waiter *waiter)
{
	struct pollfd pollers[MANY];
	struct epoll_event event;
	char buf[4];
	fd_set set;

	for (int i = 0; i < MANY; i++)
		pollers[i] = (struct pollfd){ .fd = i ? -1 : waiter->fd, .events = POLLOUT };
	switch (waiter->where) {
	case IN_CONNECT:
		go(waiter->fd);
		break;
	case IN_RECV:
		recv(waiter->fd, buf, 1, 0);
		break;
	case IN_READ:
		read(waiter->fd, buf, 1);
		break;
	case IN_SEND:
		send(waiter->fd, "x", 1, MSG_NOSIGNAL);
		break;
	case IN_POLL:
		poll(pollers, 1, -1);
		break;
	case IN_POLL_MANY:
		poll(pollers, MANY, -1);
		break;
	case IN_SELECT:
		FD_ZERO(&set);
		FD_SET(waiter->fd, &set);
		select(waiter->fd + 1, NULL, &set, NULL, NULL);
		break;
	case IN_EPOLL:
		epoll_wait(waiter->epfd, &event, 1, -1);
		break;
	case WAITS:
		break;
	}
}

static void *wait_in_thread(void *arg)
{
	struct waiter *waiter = arg;

	waiter->thread = gettid();
	wait_somewhere(waiter);
	return NULL;
}

/* Cancels a thread in the call; the socket must stay as it was. */
static void cancelled_in(enum where where)
{
	struct epoll_event event = { .events = EPOLLOUT };
	struct waiter waiter = { .where = where, .epfd = epoll_create1(0) };
	pthread_t thread;
	void *result;

	waiter.fd = where == IN_CONNECT ? tcp(0) : pending();
	must(epoll_ctl(waiter.epfd, EPOLL_CTL_ADD, waiter.fd, &event), "epoll_ctl");
	if (where <= IN_SEND)
		blocking(waiter.fd);
	must(-pthread_create(&thread, NULL, wait_in_thread, &waiter), "thread");
	AWAIT(waiter.thread && sleeps_in_call(waiter.thread));
	pthread_cancel(thread);
	pthread_join(thread, &result);
	fcntl(waiter.fd, F_SETFL, O_NONBLOCK);
	scene(names[where]);
	SAY(result == PTHREAD_CANCELED);
	SAY(go(waiter.fd));
	say_events(waiter.fd);
	SAY(shutdown(waiter.fd, SHUT_RDWR));
	SAY(go(waiter.fd));
	close(waiter.fd);
	close(waiter.epfd);
}

/* Returns the size of the address space in pages. */
static long pages(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size = 0;

	must(file && fscanf(file, "%ld", &size) == 1 ? 0 : -1, "statm");
	fclose(file);
	return size;
}

static void cancelled(void)
{
	long before;

	for (int where = 0; where < WAITS; where++)
		cancelled_in(where);
	before = pages();
	for (int i = 0; i < 30; i++)
		cancelled_in(IN_POLL_MANY);
	scene("memory");
	SAY(pages() < before + 30);
}

/* Makes calls that are no cancellation points, while a cancellation is pending. */
static void *call_all(void *arg)
{
	struct epoll_event event = { .events = EPOLLOUT };
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int fd = pending(), idle = tcp(0), epfd = epoll_create1(0), number;

	(void)arg;
	pthread_cancel(pthread_self());
	SAY(get_int(fd, SOL_SOCKET, SO_ERROR));
	SAY(get_int(fd, IPPROTO_IP, IP_TTL));
	SAY(set_int(fd, IPPROTO_TCP, 18, 1000)); /* TCP_USER_TIMEOUT */
	SAY(getpeername(fd, (struct sockaddr *)&name, &len));
	SAY(getsockname(fd, (struct sockaddr *)&name, &len));
	SAY(ioctl(fd, FIONREAD, &number));
	SAY(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event));
	SAY(epoll_ctl(epfd, EPOLL_CTL_DEL, fd, &event));
	SAY(shutdown(fd, SHUT_RDWR));
	SAY(set_int(idle, IPPROTO_TCP, 7, 3)); /* TCP_SYNCNT */
	SAY(set_int(idle, IPPROTO_IP, IP_TTL, 33));
	SAY(get_int(idle, IPPROTO_IP, IP_TTL));
	SAY(listen(idle, 1));
	SAY((number = dup(fd)) >= 0);
	SAY((number = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
	SAY(fcntl(fd, F_GETFL) & O_NONBLOCK);
	pthread_testcancel();
	return NULL;
}

static void uncancelled(void)
{
	pthread_t thread;
	void *result;

	scene("no points of cancellation");
	must(-pthread_create(&thread, NULL, call_all, NULL), "thread");
	pthread_join(thread, &result);
	SAY(result == PTHREAD_CANCELED);
}

static volatile int handler_fd;

/* Makes only async-signal-safe calls. */
static void handle(int number)
{
	struct pollfd poller = { .fd = handler_fd, .events = POLLOUT };
	int saved_errno = errno;
	char buf[4];

	(void)number;
	if (handler_fd > 0) {
		poll(&poller, 1, 0);
		recv(handler_fd, buf, 1, MSG_DONTWAIT);
		get_int(handler_fd, SOL_SOCKET, SO_ERROR);
		go(handler_fd);
	}
	errno = saved_errno;
}

static void tick(int us)
{
	struct itimerval timer = { { 0, us }, { 0, us } };

	must(setitimer(ITIMER_REAL, &timer, NULL), "setitimer");
}

/* A signal ends every wait. */
static void interrupted(enum where where)
{
	struct epoll_event event = { .events = EPOLLOUT };
	struct waiter waiter = { .where = where, .fd = pending(), .epfd = epoll_create1(0) };
	int other = 0;

	must(epoll_ctl(waiter.epfd, EPOLL_CTL_ADD, waiter.fd, &event), "epoll_ctl");
	tick(TICK_US);
	for (int i = 0; i < ROUNDS; i++) {
		errno = 0;
		wait_somewhere(&waiter);
		other += errno != EINTR;
	}
	tick(0);
	scene(names[where]);
	SAY(other);
	close(waiter.fd);
	close(waiter.epfd);
}

/* Waits until it is killed. */
static void send_all_the_time(pid_t to, int number)
{
	while (kill(to, number) == 0)
		sched_yield();
	_exit(0);
}

/* A signal without a handler ends no wait, whenever it comes. */
static void ignored(int number)
{
	struct epoll_event event = { .events = EPOLLOUT };
	int fd = pending(), epfd = epoll_create1(0), ended = 0;
	struct pollfd poller = { .fd = fd, .events = POLLOUT };
	pid_t self = getpid(), sender;

	must(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
	fflush(stdout);
	sender = fork();
	if (sender == 0)
		send_all_the_time(self, number);
	for (int i = 0; i < ROUNDS; i++) {
		ended += epoll_wait(epfd, &event, 1, 1) < 0;
		ended += poll(&poller, 1, 1) < 0;
	}
	kill(sender, SIGKILL);
	waitpid(sender, NULL, 0);
	scene(strsignal(number));
	SAY(ended);
	close(fd);
	close(epfd);
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = handle };

	ignored(SIGCHLD);
	signal(SIGUSR1, SIG_IGN);
	ignored(SIGUSR1);
	sigaction(SIGALRM, &action, NULL);
	interrupted(IN_POLL);
	interrupted(IN_SELECT);
	interrupted(IN_EPOLL);
	handler_fd = pending();
	interrupted(IN_POLL);
	interrupted(IN_EPOLL);
	SAY(go(handler_fd));
	close(handler_fd);
}

int main(int argc, char **argv)
{
	if (argc < 4 || inet_pton(AF_INET, argv[2], &server.sin_addr) != 1)
		return 2;
	server.sin_port = htons((uint16_t)atoi(argv[3]));
	if (strcmp(argv[1], "signals") == 0) {
		uncancelled();
		signals();
	} else {
		cancelled();
	}
	return 0;
}
