/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_kernel.c - the fake kernel's calls, descriptors and clock
 *
 * Each call first gives another thread its turn, and lets events happen that are due; then it is counted, and fails if a test has
 * chosen it. The clock moves only while threads wait or a test passes time, from one event to the next.
 */
#include "config.h"

#include "fake_private.h"

#include "common/clock.h"
#include "shim/system/next.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FDS 64
#define CALLS_MAX 100000
#define EVENTS_MAX 64
#define START_NS (INT64_C(1000000) * 1000000000) /* of CLOCK_MONOTONIC: long after the start of the machine */

static struct fake_file files[FAKE_FILES];
static struct {
	struct fake_file *file;
	int flags; /* of F_GETFD */
} descriptors[FDS];

static uint8_t calls[CALLS_MAX];
static int call_count, fail_number = -1, fail_error;
static bool has_failed;

static int64_t now = START_NS;
static struct {
	int64_t at;
	unsigned int order;
	void (*what)(struct fake_socket *socket);
	struct fake_socket *socket;
	uint64_t cookie;
	unsigned int connection;
} pending[EVENTS_MAX];
static unsigned int event_count, event_order;

void (*fake_observer)(void);
char fake_context[200];

void fake_die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: after call %d, %lld ms: ", fake_context, call_count, (long long)fake_now_ms());
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (log: %s)\n", fake_log_last());
	_exit(EXIT_FAILURE);
}

const char *fake_call_name(enum fake_call call)
{
	static const char *const names[] = {
#define FAKE_NAME(name) #name,
		FAKE_CALLS(FAKE_NAME)
#undef FAKE_NAME
	};

	return names[call];
}

/* --- time, and what happens in it --- */

int64_t fake_now(void)
{
	return now;
}

int64_t fake_now_ms(void)
{
	return (now - START_NS) / 1000000;
}

int64_t clock_read_ns(clockid_t clock)
{
	(void)clock;
	return now;
}

void fake_at(int64_t ns, void (*what)(struct fake_socket *socket), struct fake_socket *socket)
{
	if (event_count == EVENTS_MAX)
		fake_die("too much is on its way");
	pending[event_count].at = ns;
	pending[event_count].order = event_order++;
	pending[event_count].what = what;
	pending[event_count].socket = socket;
	pending[event_count].cookie = socket->cookie;
	pending[event_count++].connection = socket->connection;
}

/* The event that comes first, or -1. */
static int event_first(void)
{
	int first = -1;

	for (unsigned int i = 0; i < event_count; i++)
		if (first < 0 || pending[i].at < pending[first].at ||
		    (pending[i].at == pending[first].at && pending[i].order < pending[first].order))
			first = (int)i;
	return first;
}

static void events_happen(void)
{
	int first;

	while ((first = event_first()) >= 0 && pending[first].at <= now) {
		struct fake_socket *socket = pending[first].socket;
		void (*what)(struct fake_socket *) = pending[first].what;
		bool current = socket->cookie == pending[first].cookie &&
			       socket->connection == pending[first].connection;

		pending[first] = pending[--event_count];
		if (current)
			what(socket);
	}
}

/* Moves the clock to the next event, or to @end if that is sooner. */
static void time_pass(int64_t end)
{
	int first = event_first();

	if (first >= 0 && pending[first].at < end)
		end = pending[first].at;
	if (end == FAKE_NEVER)
		fake_die("waits for ever");
	now = end;
	events_happen();
}

int fake_late_ms;

bool fake_wait(bool (*ready)(void *arg), void *arg, int64_t ns, bool may_wait)
{
	const int64_t end = ns == FAKE_NEVER ? FAKE_NEVER : now + ns;

	for (;;) {
		events_happen();
		if (ready(arg))
			return true;
		if (now >= end)
			return false;
		if (!may_wait)
			fake_die("waits with signals blocked");
		if (!fake_turn_waiting())
			time_pass(end);
		fake_pass_ms(fake_late_ms);
	}
}

void fake_pass_ms(int ms)
{
	const int64_t end = now + ms * INT64_C(1000000);

	while (now < end)
		time_pass(end);
	events_happen();
}

/* --- calls --- */

bool fake_enter(enum fake_call call)
{
	fake_turn();
	if (fake_observer)
		fake_observer();
	events_happen();
	if (call_count == CALLS_MAX)
		fake_die("calls %s() without end", fake_call_name(call));
	calls[call_count] = (uint8_t)call;
	if (call_count++ != fail_number)
		return false;
	has_failed = true;
	errno = fail_error;
	return true;
}

void fake_fail(int number, int error)
{
	fail_number = number;
	fail_error = error;
	call_count = 0;
	has_failed = false;
}

int fake_call_count(void)
{
	return call_count;
}

enum fake_call fake_call_at(int number)
{
	return (enum fake_call)calls[number];
}

enum fake_call fake_failed_call(void)
{
	return (enum fake_call)calls[fail_number];
}

bool fake_has_failed(void)
{
	return has_failed;
}

/* --- descriptors --- */

bool fake_is_fd(int fd)
{
	return fd >= FAKE_FD_MIN && fd < FAKE_FD_MIN + FDS && descriptors[fd - FAKE_FD_MIN].file;
}

struct fake_file *fake_file_of(int fd)
{
	if (fake_is_fd(fd))
		return descriptors[fd - FAKE_FD_MIN].file;
	if (fd >= 0 && fd < FAKE_FD_MIN)
		fake_die("a call for descriptor %d, which isn't one of the model", fd);
	errno = EBADF;
	return NULL;
}

struct fake_file *fake_socket_file(int fd)
{
	struct fake_file *file = fake_file_of(fd);

	if (file && (file->is_epoll || file->is_timer)) {
		errno = ENOTSOCK;
		return NULL;
	}
	return file;
}

struct fake_socket *fake_socket_of(int fd)
{
	struct fake_file *file = fake_socket_file(fd);

	if (!file)
		fake_die("descriptor %d isn't a socket", fd);
	return &file->socket;
}

static int fd_free(void)
{
	for (int i = 0; i < FDS; i++)
		if (!descriptors[i].file)
			return i;
	fake_die("no descriptor is left");
}

int fake_file_make(int fd_flags, struct fake_file **made)
{
	int place = fd_free();

	for (int i = 0; i < FAKE_FILES; i++) {
		if (files[i].refs)
			continue;
		memset(&files[i], 0, sizeof(files[i]));
		files[i].refs = 1;
		files[i].flags = O_RDWR;
		descriptors[place].file = *made = &files[i];
		descriptors[place].flags = fd_flags;
		return place + FAKE_FD_MIN;
	}
	fake_die("no file is left");
}

static void file_unref(struct fake_file *file)
{
	if (--file->refs)
		return;
	fake_epoll_forget(file);
	file->socket.cookie = 0;
}

bool fake_close(int fd)
{
	struct fake_file *file = fake_file_of(fd);

	if (!file)
		return false;
	descriptors[fd - FAKE_FD_MIN].file = NULL;
	file_unref(file);
	return true;
}

unsigned int fake_open_count(void)
{
	unsigned int count = 0;

	for (int i = 0; i < FDS; i++)
		count += descriptors[i].file != NULL;
	return count;
}

/* Linux closes the descriptor even if it returns an error: close(2). */
static int call_close(int fd)
{
	const bool fails = fake_enter(FAKE_close);
	const int error = errno;
	const bool closed = fake_close(fd);

	if (fails)
		errno = error;
	return closed && !fails ? 0 : -1;
}

static int fd_copy(int fd, int to, int flags)
{
	struct fake_file *file = fake_file_of(fd), *before;

	if (!file)
		return -1;
	if (to < FAKE_FD_MIN || to >= FAKE_FD_MIN + FDS)
		fake_die("a descriptor is copied to %d", to);
	before = descriptors[to - FAKE_FD_MIN].file;
	file->refs++;
	descriptors[to - FAKE_FD_MIN].file = file;
	descriptors[to - FAKE_FD_MIN].flags = flags;
	if (before)
		file_unref(before);
	return to;
}

static int call_dup(int fd)
{
	if (fake_enter(FAKE_dup))
		return -1;
	return fd_copy(fd, fd_free() + FAKE_FD_MIN, 0);
}

static int call_dup2(int fd, int to)
{
	if (fake_enter(FAKE_dup2))
		return -1;
	return fd == to ? (fake_file_of(fd) ? to : -1) : fd_copy(fd, to, 0);
}

static int call_dup3(int fd, int to, int flags)
{
	if (fake_enter(FAKE_dup3))
		return -1;
	return fd_copy(fd, to, flags & O_CLOEXEC ? FD_CLOEXEC : 0);
}

/* Record locks only exclude other processes, of which there are none: F_SETLK succeeds at once. */
static int call_fcntl(int fd, int command, ...)
{
	struct fake_file *file;
	va_list args;
	void *arg;

	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	if (fake_enter(FAKE_fcntl))
		return -1;
	file = fake_file_of(fd);
	if (!file)
		return -1;
	switch (command) {
	case F_GETFD:
		return descriptors[fd - FAKE_FD_MIN].flags;
	case F_GETFL:
		return file->flags;
	case F_SETFL:
		file->flags = (int)(intptr_t)arg;
		return 0;
	case F_GETSIG:
	case F_SETLK:
		return 0;
	case F_GETOWN_EX:
		memset(arg, 0, sizeof(struct f_owner_ex));
		return 0;
	}
	fake_die("fcntl() command %d isn't modelled", command);
}

/* --- the table --- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define FAKE_MISSING(ret, name, params, ...)                                                            \
	__attribute__((unused)) static ret missing_##name params                                   \
	{                                                                                          \
		fake_die(#name "() isn't modelled");                                               \
	}
NEXT_FUNCTIONS(FAKE_MISSING)
#pragma GCC diagnostic pop

/* First an entry that isn't modelled for each function, then those that are. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#define FAKE_ENTRY(ret, name, params, ...) .name = missing_##name,
struct next_functions next = {
	NEXT_FUNCTIONS(FAKE_ENTRY)
	FAKE_TABLE_SOCKET, FAKE_TABLE_EPOLL,
	.getsockopt = fake_getsockopt, .setsockopt = fake_setsockopt,
	.close = call_close, .dup = call_dup, .dup2 = call_dup2, .dup3 = call_dup3, .fcntl = call_fcntl,
};
#pragma GCC diagnostic pop

int next_poll_now(struct pollfd *polled, nfds_t count)
{
	return fake_enter(FAKE_poll) ? -1 : fake_poll_now(polled, count);
}

void next_close_now(int fd)
{
	call_close(fd);
}

int next_dup_now(int fd, int to, int flags)
{
	return call_dup3(fd, to, flags);
}

int next_socket_now(int domain, int type, int protocol)
{
	return fake_socket_call(domain, type, protocol);
}
