/* SPDX-License-Identifier: BSD-3-Clause */
/* shim_world.c - see shim_world.h */
#include "config.h"

#include "shim_world.h"

#include "common/thread.h"
#include "convert/convert.h"
#include "shim/connect/conversion.h"

#include <errno.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNS_SEEN 16 /* of the pool, in one run */
#define RUN_SECONDS 60

struct world_message world_ok, world_ok_withholds, world_ok_silent;

/* --- states --- */

static unsigned int (*transitions)[CONN_PHASE_COUNT];

const char *world_state_name(enum world_state state)
{
	static const char *const names[] = { "FREE", "IDLE", "STARTING", "DIRECT", "DEFERRED", "PENDING", "CONFIRMED", "DONE", "FAILED", "none" };

	return names[state];
}

/* Counts how the phase of each conn has changed: called before each action of the shim, in any thread. */
static void observe(void)
{
	static enum conn_phase seen[CONNS_SEEN];

	for (uint32_t i = 0; i < CONNS_SEEN; i++) {
		const struct conn *conn = conn_by_index(i);
		enum conn_phase phase = conn ? conn_phase(conn) : CONN_FREE;

		if (phase != seen[i])
			__atomic_fetch_add(&transitions[seen[i]][phase], 1, __ATOMIC_RELAXED);
		seen[i] = phase;
	}
}

static enum world_state state_of(enum conn_phase phase)
{
	static const enum world_state states[CONN_PHASE_COUNT] = {
		[CONN_FREE] = WORLD_FREE,	  [CONN_IDLE] = WORLD_IDLE,	    [CONN_STARTING] = WORLD_STARTING,
		[CONN_DEFERRED] = WORLD_DEFERRED,	  [CONN_RESOLVING] = WORLD_PENDING, [CONN_SYN_SENT] = WORLD_PENDING,
		[CONN_ASKED] = WORLD_PENDING,	  [CONN_CONFIRMED] = WORLD_CONFIRMED, [CONN_BYPASS] = WORLD_PENDING,
		[CONN_BYPASSED] = WORLD_CONFIRMED, [CONN_EARLY_DIRECT] = WORLD_PENDING, [CONN_DIRECT] = WORLD_DIRECT,
		[CONN_DONE] = WORLD_DONE,	  [CONN_FAILED] = WORLD_FAILED,	    [CONN_DISSOLVED] = WORLD_FAILED,
	};

	return states[phase];
}

enum world_state world_state(int fd)
{
	const struct conn *conn = conn_of(fd);

	observe();
	return conn ? state_of(conn_phase(conn)) : WORLD_NONE;
}

enum conn_phase world_phase(int fd)
{
	const struct conn *conn = conn_of(fd);

	observe();
	return conn ? conn_phase(conn) : CONN_PHASE_COUNT;
}

unsigned int world_transitions(enum conn_phase from, enum conn_phase to)
{
	return transitions ? transitions[from][to] : 0;
}

/* --- messages --- */

struct world_message world_error(unsigned int code, uint8_t value)
{
	static const uint8_t cookie[] = "a cookie", mptcp = 30;
	struct world_message message = { .len = 0 };
	struct convert_writer writer;

	convert_writer_init(&writer, message.bytes, sizeof(message.bytes));
	if (code == 3)
		convert_write_error_cookie(&writer, cookie, sizeof(cookie));
	else if (code == 33)
		convert_write_error_options(&writer, &mptcp, 1);
	else
		convert_write_error(&writer, (enum convert_error_code)code, value);
	message.len = (size_t)convert_writer_finish(&writer);
	return message;
}

static struct world_message message_ok(bool withholds, bool silent)
{
	static const uint8_t mptcp = 30;
	const struct convert_withholding withholding = { .withheld = true, .limit_ms = 1000, .silent = silent };
	struct world_message message = { .len = 0 };
	struct convert_writer writer;

	convert_writer_init(&writer, message.bytes, sizeof(message.bytes));
	convert_write_tcp_header(&writer, NULL, 0);
	if (withholds) {
		convert_write_supported(&writer, &mptcp, 1);
		convert_write_withholding(&writer, &withholding);
	}
	message.len = (size_t)convert_writer_finish(&writer);
	return message;
}

struct fake_answer world_answer(const struct world_message *message, int after_ms)
{
	return (struct fake_answer){ .bytes = message->bytes, .len = message->len, .after_ms = after_ms };
}

/* --- a run --- */

static struct world_options chosen;

static const char *environment(const char *name)
{
	if (strcmp(name, "CONVERT_ADDR") == 0)
		return chosen.converters ? chosen.converters : CONVERTER;
	if (strcmp(name, "CONVERT_FALLBACK") == 0)
		return chosen.fallback;
	if (strcmp(name, "CONVERT_EARLY_DATA") == 0)
		return chosen.early_data;
	if (strcmp(name, "CONVERT_BYPASS_MPTCP") == 0)
		return chosen.bypass_mptcp;
	if (strcmp(name, "CONVERT_CACHE") == 0)
		return "none";
	return strcmp(name, "CONVERT_WITHHOLDING") == 0 ? chosen.withholding : NULL;
}

void world_begin(const struct world_options *options)
{
	static struct settings settings;

	if (options)
		chosen = *options;
	world_ok = message_ok(false, false);
	world_ok_withholds = message_ok(true, false);
	world_ok_silent = message_ok(true, true);
	fake_observer = observe;
	conn_init();
	settings_read(&settings, environment);
	world_expect(settings.enabled, "%s", settings.problem);
	conversion_init(&settings);
}

void *world_shared_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

bool world_run(void (*body)(void *arg), void *arg, const char *name)
{
	int status;
	pid_t pid;

	if (!transitions)
		transitions = world_shared_memory(sizeof(*transitions) * CONN_PHASE_COUNT);
	snprintf(fake_context, sizeof(fake_context), "%s", name);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		alarm(RUN_SECONDS);
		body(arg);
		observe();
		fflush(NULL);
		_exit(EXIT_SUCCESS);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	if (WIFSIGNALED(status))
		fprintf(stderr, "%s: %s\n", name, strsignal(WTERMSIG(status)));
	return status == 0;
}

void world_failed(const char *file, int line, const char *condition, const char *format, ...)
{
	const char *slash = strrchr(file, '/');
	char text[300];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fake_die("%s:%d: not %s: %s", slash ? slash + 1 : file, line, condition, text);
}

/* --- the application --- */

union sockaddr_ip world_address(const char *text)
{
	union sockaddr_ip addr;

	world_expect(sockaddr_ip_parse(&addr, text, 0) == 0, "%s", text);
	return addr;
}

int world_socket(bool blocking)
{
	return hook_socket(AF_INET, SOCK_STREAM | (blocking ? 0 : SOCK_NONBLOCK), 0);
}

int world_connect(int fd, const char *server)
{
	union sockaddr_ip addr = world_address(server);

	return hook_connect(fd, &addr.sa, sockaddr_ip_len(&addr)) == 0 ? 0 : errno;
}

short world_wait(int fd, int ms)
{
	struct pollfd poller = { .fd = fd, .events = POLLOUT };

	return hook_poll(&poller, 1, ms) < 0 ? -1 : poller.revents;
}

int world_error_of(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	return hook_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : errno;
}

const char *world_peer(int fd, char text[static SOCKADDR_STRLEN])
{
	union sockaddr_ip addr;
	socklen_t len = sizeof(addr);

	if (hook_getpeername(fd, &addr.sa, &len) != 0)
		return error_text(errno);
	return sockaddr_ip_format(&addr, text);
}

/* --- invariants --- */

void world_is_empty(void)
{
	observe();
	world_expect(fake_open_count() == 0, "%u descriptors are open", fake_open_count());
	world_expect(!conn_next_in(PHASES_UNFINISHED, 0), "a conn is pending");
	world_expect(conn_handled_count == 0, "%u", conn_handled_count);
	world_expect(conn_unseen == 0, "%u", conn_unseen);
	world_expect(conn_deferred == 0, "%u", conn_deferred);
	for (uint32_t i = 0; i < CONNS_SEEN; i++) {
		const struct conn *conn = conn_by_index(i);

		world_expect(!conn || conn_phase(conn) == CONN_FREE, "conn %u is %s", i, phase_name(conn_phase(conn)));
		world_expect(!conn || !(conn_word(conn) & CONN_CLAIMED), "conn %u is claimed", i);
	}
}

void world_is_restored(int fd, int epfd, uint32_t events)
{
	world_expect(fake_option(fd, SOL_SOCKET, SO_RCVLOWAT) == 1, "%d", fake_option(fd, SOL_SOCKET, SO_RCVLOWAT));
	world_expect(fake_option(fd, SOL_SOCKET, SO_KEEPALIVE) == 0, "keepalive is on");
	world_expect(fake_option(fd, IPPROTO_TCP, TCP_KEEPIDLE) == 7200, "%d", fake_option(fd, IPPROTO_TCP, TCP_KEEPIDLE));
	if (epfd >= 0)
		world_expect(fake_registered(epfd, fd) == events, "%#x in place of %#x", fake_registered(epfd, fd), events);
}
