/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec_handover.c - tells a started program about the sockets that it inherits
 *
 * The problem: a started program inherits descriptors, and nothing of our knowledge of their sockets. A pending connection has a response
 * in its stream that nobody would take off.
 *
 * - Before an exec, exec_handover_prepare() waits for the end of each handshake whose socket the program gets; after CONVERT_TIMEOUT it
 *   begins the connection anew, directly. It doesn't wait for silent requests: another program can follow these as well (follow.c), if it
 *   has our library. If it hasn't, only the standard descriptors count, and others that were given to it.
 * - exec_handover_is_due() says whether the program will have our library. If so, exec_handover_write() writes a record of each socket
 *   (socket_record.c) into a variable of the program's environment. There are records of silent requests, of failures that the application
 *   hasn't been told of, and of settled sockets, since the kernel may name another server, family or protocol than the application's.
 * - In the new program, the constructor calls exec_handover_adopt(), which removes the variable from the environment. The records name
 *   sockets by SO_COOKIE, and the program looks for descriptors with these cookies. So it doesn't matter how posix_spawn() or a vfork()
 *   child has rearranged the descriptors.
 *
 * The limits are below: SOCKETS_MAX records, and EXEC_HANDOVER_TEXT_MAX bytes in all; unsettled sockets come first. A program that gets no
 * record of a socket treats it as unknown. Nothing stays behind: the program uses a record once or drops it.
 */
#include "config.h"

#include "shim/process/process.h"
#include "shim/process/socket_record.h"
#include "common/clock.h"
#include "shim/socket/conn.h"
#include "shim/connect/conversion.h"
#include "shim/connect/connect.h"
#include "client/client_log.h"
#include "shim/system/next.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define SOCKETS_MAX 64
#define LOW_FDS 64       /* descriptors below may be duplicates made without our hooks */
#define ADOPTED_FDS 256  /* a new program checks all descriptors below, and those that the records name */
#define LOOK_AGAIN_MS 20

/* The phases that a record may have. */
#define ADOPTED_PHASES (PHASE(IDLE) | PHASE(SYN_SENT) | PHASE(DIRECT) | PHASE(DONE) | PHASES_FAILED)

#define SETTLED_FDS 1024 /* settled connections above get no record */

/* The flags of a conn, in the order of the bits. */
#define FLAGS(X)                                                                                             \
	X(ask_silent, dial.attempt.ask.silent) X(ask_blind, dial.attempt.ask.blind) X(silence_due, dial.attempt.silence_due) \
	X(bound, call.bound) X(was_mapped, socket.was_mapped)                                                \
	X(shown_ipv4, socket.shown_ipv4) X(shut_for_reading, socket.shut_for_reading) X(mptcp, socket.mptcp)

#define FLAG_BIT(name, field) FLAG_##name,
enum { FLAGS(FLAG_BIT) FLAG_shut, FLAG_notes = FLAG_shut + 2 };

static uint64_t flags_of(const struct conn *conn)
{
	uint64_t flags = (uint64_t)conn->call.shut << FLAG_shut | (uint64_t)(conn_word(conn) & CONN_NOTES) << FLAG_notes;

#define FLAG_GET(name, field) flags |= (uint64_t)conn->field << FLAG_##name;
	FLAGS(FLAG_GET)
	return flags;
}

static void flags_set(struct conn *conn, uint64_t flags)
{
#define FLAG_SET(name, field) conn->field = flags >> FLAG_##name & 1;
	FLAGS(FLAG_SET)
	conn->call.shut = flags >> FLAG_shut & (SHUT_RDWR + 1);
	conn_note(conn, flags >> FLAG_notes & CONN_NOTES);
}

bool exec_handover_is_due(char *const envp[])
{
	return conn_next_fd(0) >= 0 && children_have_library(envp);
}

/* --- sockets that can't be handed over --- */

static bool is_given(const struct conn *conn)
{
	return conn->socket.given;
}

static bool is_given_unfollowed(const struct conn *conn)
{
	return conn->socket.given && !follow_is_silent(conn);
}

/*
 * Marks the conns whose sockets the program gets through descriptors below @fds: conn.socket.given. posix_spawn_file_actions_adddup2() has
 * already marked those whose descriptors are duplicated for the program.
 */
static void given_find(enum exec_handover_way way, int fds)
{
	if (way == EXEC_HANDOVER_AS_THEY_ARE)
		EACH_CONN (conn, PHASES_UNFINISHED)
			conn->socket.given = false;
	for (int fd = conn_next_fd(0); fd >= 0 && fd < fds; fd = conn_next_fd(fd + 1)) {
		struct conn *conn = conn_handled(fd);

		if (conn && !(next.fcntl(fd, F_GETFD) & FD_CLOEXEC))
			conn->socket.given = true;
	}
}

/* Watches a silent request until CONVERT_TIMEOUT. Returns whether the stream is the server's. */
static bool follow_to_its_end(const struct conn *conn, int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	enum silence silence;

	while ((silence = follow_look(conn, fd)) == SILENCE_OPEN && clock_ns() < conn->dial.attempt.ends)
		next.poll(&ready, 1, LOOK_AGAIN_MS);
	return silence == SILENCE_KEPT;
}

/*
 * Runs in a vfork() child, which can take no step: the conns are its parent's. Before vfork() the parent has ended all handshakes but those
 * of silent requests. If another thread has begun one since, or one was there before a bare clone(), the program gets an unconnected
 * socket.
 */
static void deny(int fd, bool informed)
{
	const struct conn *conn = conn_named(kernel_cookie(fd));

	if (!conn || !conn_in(conn, PHASES_UNFINISHED) || next.fcntl(fd, F_GETFD) & FD_CLOEXEC)
		return;
	if (!follow_is_possible(conn) || !(informed || follow_to_its_end(conn, fd)))
		replace_descriptor(fd);
}

void exec_handover_prepare(enum exec_handover_way way, bool informed)
{
	ERRNO_KEPT;
	const int standard = STDERR_FILENO + 1, fds = informed ? INT_MAX : standard;

	if (conn_none_handled())
		return;
	if (conn_is_owner()) {
		given_find(way, fds);
		conversion_conclude_all(informed ? is_given_unfollowed : is_given);
		EACH_CONN (conn, PHASES_UNFINISHED) {
			if (conn->socket.given)
				follow_note(conn, conn->fd);
			conn->socket.given = false;
		}
	} else {
		for (int fd = 0; fd < (informed ? LOW_FDS : standard); fd++)
			deny(fd, informed);
		for (int fd = conn_next_fd(LOW_FDS); informed && fd >= 0; fd = conn_next_fd(fd + 1))
			deny(fd, informed);
	}
}

/* --- writing --- */

struct list {
	char *text;
	size_t len;
	const struct conn *conns[SOCKETS_MAX];
	size_t count;
};

static bool list_has(const struct list *list, const struct conn *conn)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->conns[i] == conn)
			return true;
	return false;
}

static struct socket_record record_of(const struct conn *conn, int fd)
{
	return (struct socket_record){
		.numbers = {
			[SOCKET_RECORD_PHASE] = conn_phase(conn),
			[SOCKET_RECORD_FD] = (uint64_t)fd,
			[SOCKET_RECORD_COOKIE] = conn->cookie,
			[SOCKET_RECORD_FLAGS] = flags_of(conn),
			[SOCKET_RECORD_ERROR] = (uint64_t)conn->error,
			[SOCKET_RECORD_RCVLOWAT] = (uint64_t)conn->socket.rcvlowat,
			[SOCKET_RECORD_LOCAL_PORT] = conn->dial.attempt.local_port,
			[SOCKET_RECORD_STARTED] = (uint64_t)conn->dial.started,
		},
		.server = conn->dial.server,
	};
}

static void list_add(struct list *list, struct conn *conn, int fd)
{
	struct socket_record record;
	size_t len;

	if (list->count == SOCKETS_MAX || list_has(list, conn))
		return;
	conn_mark_shared(conn);
	record = record_of(conn, fd);
	len = socket_record_write(&record, list->text, list->len, EXEC_HANDOVER_TEXT_MAX);
	if (!len)
		return;
	list->len = len;
	list->conns[list->count++] = conn;
}

/* The conns that a walk over the descriptors selects. */
struct choice {
	bool settled; /* they need no further step; else the others */
	bool cloexec; /* descriptors that exec() closes, else the others */
};

static bool is_chosen(const struct conn *conn, int fd, struct choice choice)
{
	enum conn_phase phase = conn_phase(conn);
	bool unsettled = follow_is_possible(conn) || (phase_in(phase, PHASES_FAILED) && atomic_load(&conn->error));
	int flags;

	if (unsettled == choice.settled || phase == CONN_FREE)
		return false;
	if (phase_in(phase, PHASES_UNFINISHED) && !unsettled)
		return false;
	flags = next.fcntl(fd, F_GETFD);
	return flags >= 0 && !(flags & FD_CLOEXEC) == !choice.cloexec;
}

static void list_walk(struct list *list, struct choice choice)
{
	struct conn *conn;

	if (!choice.settled && conn_none_handled())
		return;
	for (int fd = conn_next_fd(0); fd >= 0; fd = conn_next_fd(fd + 1)) {
		if (choice.settled && fd >= SETTLED_FDS)
			break;
		conn = conn_of(fd);
		if (conn && is_chosen(conn, fd, choice))
			list_add(list, conn, fd);
	}
	/* A vfork() child may have rearranged its descriptors, which the table doesn't know. */
	for (int fd = 0; fd < LOW_FDS && !conn_is_owner(); fd++) {
		conn = conn_of(fd) ? NULL : conn_named(kernel_cookie(fd));
		if (conn && is_chosen(conn, fd, choice))
			list_add(list, conn, fd);
	}
}

size_t exec_handover_write(char out[EXEC_HANDOVER_TEXT_MAX], enum exec_handover_way way)
{
	ERRNO_KEPT;
	/* File actions may duplicate a descriptor that exec() closes, and the duplicate stays open. */
	static const struct choice choices[] = {
		{ .settled = false, .cloexec = false },
		{ .settled = true, .cloexec = false },
		{ .settled = false, .cloexec = true },
		{ .settled = true, .cloexec = true },
	};
	struct list list = { .text = out, .len = strlen(EXEC_HANDOVER_VARIABLE "=") };

	memcpy(out, EXEC_HANDOVER_VARIABLE "=", list.len);
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		if (!choices[i].cloexec || way == EXEC_HANDOVER_CHANGED)
			list_walk(&list, choices[i]);
	return list.count ? list.len : 0;
}

/* --- adopting --- */

static void conn_fill(struct conn *conn, const struct socket_record *record)
{
	const uint64_t *numbers = record->numbers;

	conn->dial.server = record->server;
	conn->follows = true;
	flags_set(conn, numbers[SOCKET_RECORD_FLAGS]);
	conn->error = (int)numbers[SOCKET_RECORD_ERROR];
	conn->socket.rcvlowat = (int)numbers[SOCKET_RECORD_RCVLOWAT];
	conn->dial.attempt.local_port = (uint16_t)numbers[SOCKET_RECORD_LOCAL_PORT];
	conn->dial.started = (int64_t)numbers[SOCKET_RECORD_STARTED];
}

static void adopt(int fd, const struct socket_record *record)
{
	const enum conn_phase phase = (enum conn_phase)record->numbers[SOCKET_RECORD_PHASE];
	struct conn *conn;
	char text[SOCKADDR_STRLEN];

	if (record->numbers[SOCKET_RECORD_PHASE] >= CONN_PHASE_COUNT || !phase_in(phase, ADOPTED_PHASES))
		return;
	if (record->server.sa.sa_family == AF_UNSPEC && !phase_in(phase, PHASE(IDLE) | PHASE(DIRECT)))
		return;
	conn = conn_add(fd, 0);
	if (!conn)
		return;
	conn_fill(conn, record);
	if (phase == CONN_SYN_SENT)
		follow_adopt(conn);
	conn_move(conn, CONN_IDLE, phase);
	conn_mark_unseen(conn, phase == CONN_SYN_SENT);
	log_line("%s: taken over from the program before",
		 sockaddr_ip_format(&conn->dial.server, text));
}

/* Takes over the socket of @fd, a descriptor of the new program, if there is a record of it. */
static void adopt_fd(int fd, const char *text)
{
	uint64_t cookie = kernel_cookie(fd);
	struct socket_record record;

	while (cookie && (text = socket_record_read(&record, text))) {
		struct conn *conn;

		if (record.numbers[SOCKET_RECORD_COOKIE] != cookie)
			continue;
		conn = conn_named(cookie);
		if (conn)
			conn_dup(conn->fd, fd);
		else
			adopt(fd, &record);
		return;
	}
}

void exec_handover_adopt(void)
{
	const char *text = getenv(EXEC_HANDOVER_VARIABLE), *rest = text;
	struct socket_record record;

	if (!text)
		return;
	if (getauxval(AT_SECURE)) { /* the environment is the caller's, who has fewer rights than this program */
		unsetenv(EXEC_HANDOVER_VARIABLE);
		return;
	}
	for (int fd = 0; fd < ADOPTED_FDS; fd++)
		adopt_fd(fd, text);
	while ((rest = socket_record_read(&record, rest)))
		if (record.numbers[SOCKET_RECORD_FD] >= ADOPTED_FDS &&
		    record.numbers[SOCKET_RECORD_FD] <= INT32_MAX)
			adopt_fd((int)record.numbers[SOCKET_RECORD_FD], text);
	unsetenv(EXEC_HANDOVER_VARIABLE);
}
