/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls.c - what one call of an I/O function costs the process that makes it
 *
 *   calls DIRECT_ADDRESS CONVERTED_ADDRESS PORT PENDING_ADDRESS
 *
 * Makes each call once on each kind of descriptor, with what it asks for being there, and counts
 * the instructions and the system calls of it (trace.h), those of the mark taken off. At both
 * addresses an echo server listens on PORT; under the shim, connections to DIRECT_ADDRESS are to be
 * bypassed. Connections to PENDING_ADDRESS must stay pending. Prints a line for each case: pending
 * connections, descriptor, call, instructions, system calls. Without a preload the same is counted
 * for the plain C library.
 */
#include "trace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define STALL_MS  10000
#define POLL_MANY 64

enum kind { KIND_DIRECT, KIND_CONVERTED, KIND_PIPE, KIND_FILE, KIND_COUNT };

static const char *const kind_names[] = { "socket", "converted socket", "pipe", "file" };

/* A kind of descriptor. What is written to @out can be read from @in. */
struct subject {
	int in, out, epfd;
	struct pollfd many[POLL_MANY];
};

static char byte[1];
static struct epoll_event event;

static void die(const char *what)
{
	fprintf(stderr, "calls: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* The calls. Before each, what it waits for is there, so that none blocks. */
static long call_nothing(struct subject *subject)
{
	(void)subject;
	return 1;
}

static long call_send(struct subject *subject)
{
	return send(subject->out, byte, 1, 0);
}

static long call_recv(struct subject *subject)
{
	return recv(subject->in, byte, 1, 0);
}

static long call_read(struct subject *subject)
{
	return read(subject->in, byte, 1);
}

static long call_write(struct subject *subject)
{
	return write(subject->out, byte, 1);
}

static long call_poll(struct subject *subject)
{
	struct pollfd one = { .fd = subject->in, .events = POLLIN };

	return poll(&one, 1, STALL_MS);
}

static long call_poll_many(struct subject *subject)
{
	return poll(subject->many, POLL_MANY, STALL_MS) > 0;
}

static long call_epoll_wait(struct subject *subject)
{
	return epoll_wait(subject->epfd, &event, 1, STALL_MS);
}

#define ON(kind)   (1u << (kind))
#define ON_SOCKETS (ON(KIND_DIRECT) | ON(KIND_CONVERTED))
#define ON_ALL     (ON_SOCKETS | ON(KIND_PIPE) | ON(KIND_FILE))

static const struct call {
	const char *name;
	long (*make)(struct subject *subject);
	unsigned int kinds;
	bool wants_input;
} calls[] = {
	/* the first one measures what a mark costs */
	{ "nothing", call_nothing, ON_ALL, false },
	{ "send", call_send, ON_SOCKETS, false },
	{ "recv", call_recv, ON_SOCKETS, true },
	{ "read", call_read, ON_ALL, true },
	{ "write", call_write, ON_ALL, false },
	{ "poll", call_poll, ON_ALL, true },
	{ "poll of 64", call_poll_many, ON_ALL, true },
	{ "epoll_wait", call_epoll_wait, ON_SOCKETS | ON(KIND_PIPE), true },
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

static struct sockaddr_in address(const char *text, const char *port)
{
	struct sockaddr_in found = { .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)atoi(port)) };

	if (inet_pton(AF_INET, text, &found.sin_addr) != 1) {
		fprintf(stderr, "calls: \"%s\" is not an IPv4 address\n", text);
		exit(2);
	}
	return found;
}

static int connection(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void pending_connection(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0 ||
	    errno != EINPROGRESS)
		die("a connection that stays pending");
}

static void subject_open(struct subject *subject, enum kind kind, const struct sockaddr_in to[])
{
	char path[] = "/tmp/bench-calls-XXXXXX";
	int ends[2];

	if (kind == KIND_PIPE) {
		if (pipe(ends) < 0)
			die("pipe");
		subject->in = ends[0];
		subject->out = ends[1];
	} else if (kind == KIND_FILE) {
		subject->in = subject->out = mkstemp(path);
		if (subject->in < 0 || unlink(path) < 0)
			die(path);
	} else {
		subject->in = subject->out = connection(&to[kind]);
	}
	for (size_t i = 0; i < POLL_MANY; i++)
		subject->many[i] = (struct pollfd){ .fd = subject->in, .events = POLLIN };
	if (kind == KIND_FILE)
		return; /* epoll refuses files: they are always ready */
	subject->epfd = epoll_create1(0);
	event = (struct epoll_event){ .events = EPOLLIN };
	if (subject->epfd < 0 || epoll_ctl(subject->epfd, EPOLL_CTL_ADD, subject->in, &event) < 0)
		die("epoll_ctl");
}

/* Leaves exactly one byte to be read. */
static void input_prepare(const struct subject *subject, enum kind kind)
{
	struct pollfd ready = { .fd = subject->in, .events = POLLIN };

	if (kind == KIND_FILE) {
		if (pwrite(subject->in, byte, 1, 0) != 1 || lseek(subject->in, 0, SEEK_SET) != 0)
			die("a file with a byte");
		return;
	}
	while (poll(&ready, 1, 0) > 0)
		if (read(subject->in, byte, 1) != 1)
			die("read");
	if (write(subject->out, byte, 1) != 1 || poll(&ready, 1, STALL_MS) != 1)
		die("a byte that comes back");
}

static void call_once(const struct call *call, struct subject *subject, enum kind kind)
{
	if (call->wants_input)
		input_prepare(subject, kind);
	if (call->make(subject) != 1)
		die(call->name);
}

/* In the traced process: each call three times, first unmarked, since it is bound and its pages
 * come in then. */
static void subjects_run(const struct sockaddr_in to[])
{
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		struct subject subject = { .epfd = -1 };

		subject_open(&subject, (enum kind)kind, to);
		for (size_t i = 0; i < CALLS; i++) {
			if (!(calls[i].kinds & ON(kind)))
				continue;
			call_once(&calls[i], &subject, (enum kind)kind);
			for (int pass = 0; pass < 2; pass++) {
				if (calls[i].wants_input)
					input_prepare(&subject, (enum kind)kind);
				trace_mark();
				if (calls[i].make(&subject) != 1)
					die(calls[i].name);
				trace_mark();
			}
		}
	}
}

/* Counts the instructions of one marked call, then the system calls of the same call. */
static struct trace_counts call_count(pid_t child)
{
	struct trace_counts counts;

	if (trace_run_to_mark(child) < 0)
		exit(1);
	counts.instructions = trace_count_instructions(child);
	if (trace_run_to_mark(child) < 0)
		exit(1);
	counts.system_calls = trace_count_system_calls(child);
	return counts;
}

static void subjects_count(pid_t child, int pending)
{
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		struct trace_counts mark = { 0, 0 };

		for (size_t i = 0; i < CALLS; i++) {
			struct trace_counts counts;

			if (!(calls[i].kinds & ON(kind)))
				continue;
			counts = call_count(child);
			if (i == 0)
				mark = counts;
			else
				printf("%d\t%s\t%s\t%llu\t%llu\n", pending, kind_names[kind],
				       calls[i].name,
				       (unsigned long long)(counts.instructions -
							    mark.instructions),
				       (unsigned long long)(counts.system_calls -
							    mark.system_calls));
		}
	}
}

int main(int argc, char *argv[])
{
	struct sockaddr_in to[2], nowhere;

	if (argc != 5) {
		fprintf(stderr,
			"usage: calls DIRECT_ADDRESS CONVERTED_ADDRESS PORT PENDING_ADDRESS\n");
		return 2;
	}
	to[KIND_DIRECT] = address(argv[1], argv[3]);
	to[KIND_CONVERTED] = address(argv[2], argv[3]);
	nowhere = address(argv[4], argv[3]);
	for (int pending = 0; pending < 2; pending++) {
		pid_t child = trace_fork();

		if (child) {
			subjects_count(child, pending);
			if (trace_run_to_mark(child) == 0)
				return 1;
			continue;
		}
		trace_mark_init();
		if (pending)
			pending_connection(&nowhere);
		subjects_run(to);
		return 0;
	}
	return 0;
}
