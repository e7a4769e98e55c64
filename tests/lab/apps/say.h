/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * say.h - for programs that write a transcript of system calls
 *
 * SAY(call) prints a line with the scene(), the call as it stands in the source, and its result.
 */
#ifndef APPS_SAY_H
#define APPS_SAY_H

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MS 10000

static const char *scene_name = "";

static inline void scene(const char *name)
{
	scene_name = name;
}

static inline const char *error_name(int error)
{
	return error ? strerror(error) : "0";
}

__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...)
{
	va_list args;

	printf("%s: ", scene_name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

static inline void say_result(const char *call, long result, int error)
{
	if (result < 0)
		say("%s: %s", call, error_name(error));
	else if (error) /* no system call changes errno when it succeeds */
		say("%s = %ld, and errno: %s", call, result, error_name(error));
	else
		say("%s = %ld", call, result);
}

#define SAY(call)                                                                                  \
	do {                                                                                       \
		long said_;                                                                        \
                                                                                                   \
		errno = 0;                                                                         \
		said_ = (call);                                                                    \
		say_result(#call, said_, errno);                                                   \
	} while (0)

static inline void say_events(int fd)
{
	static const struct {
		short bit;
		const char *name;
	} names[] = { { POLLIN, "IN" },   { POLLPRI, "PRI" }, { POLLOUT, "OUT" },
		      { POLLERR, "ERR" }, { POLLHUP, "HUP" }, { POLLRDHUP, "RDHUP" } };
	struct pollfd poller = { .fd = fd, .events = POLLIN | POLLPRI | POLLOUT | POLLRDHUP };

	char text[64] = "";

	poll(&poller, 1, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (poller.revents & names[i].bit)
			strcat(strcat(text, " "), names[i].name);
	say("events%s", text);
}

static inline int get_int(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	return getsockopt(fd, level, name, &value, &len) < 0 ? -1 : value;
}

static inline int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

static inline void say_error(int fd)
{
	say("SO_ERROR %s", error_name(get_int(fd, SOL_SOCKET, SO_ERROR)));
}

/* Waits for one of @events; returns the events that have occurred. */
static inline int await(int fd, int events)
{
	struct pollfd poller = { .fd = fd, .events = (short)events };

	if (poll(&poller, 1, LIMIT_MS) == 1)
		return poller.revents;
	printf("no event %#x in %d ms\n", (unsigned int)events, LIMIT_MS);
	exit(1);
}

static inline void must(int result, const char *what)
{
	if (result >= 0)
		return;
	printf("%s: %s\n", what, error_name(errno));
	exit(1);
}

#endif
