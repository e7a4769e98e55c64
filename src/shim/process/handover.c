/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handover.c - what a program started here must know of the sockets that it inherits
 *
 * The problem: a program that is started inherits descriptors, and nothing of what this process knows of their sockets. A
 * connection that is pending has a response in its stream that nobody would take off.
 *
 * - Before an exec, handover_is_due() says whether the program will have our library. If so, handover_write() makes records of the
 *   sockets, one for each (handover_record.h), for a variable of the program's environment. If not, handover_finish() waits
 *   until the responses are off those sockets that the program is to use: the standard descriptors, and others that were given to it.
 * - In the new program, the constructor calls handover_adopt(), which takes the variable out of the environment.
 *   The records name sockets by SO_COOKIE, and the program looks which of its descriptors have one of these cookies: so what
 *   posix_spawn() or a vfork() child have done to the descriptors needn't be followed.
 * - From then on the socket counts as one of several processes (shared_handshake.c), even after an exec() without a fork().
 *
 * Sockets that aren't settled come first: connections on their way, and failures that the application wasn't told of. A settled
 * socket is recorded for what the kernel would say wrongly of it: the server's address, and the family and protocol that
 * the application has asked for. The limits are below: SOCKETS_MAX records, and HANDOVER_TEXT_MAX bytes in all. A program that gets no
 * record of a socket treats it as one that it knows nothing of. Nothing is left behind: a record is used once or dropped.
 */
#include "config.h"

#include "shim/process/handover.h"

#include "client/cache.h"
#include "client/handshake.h"
#include "convert/convert.h"
#include "shim/connect/attempt.h"
#include "common/clock.h"
#include "shim/socket/conn.h"
#include "shim/connect/conversion.h"
#include "shim/socket/early.h"
#include "shim/process/handover_record.h"
#include "shim/connect/liveness.h"
#include "shim/system/log.h"
#include "shim/socket/mptcpinfo.h"
#include "shim/system/next.h"
#include "shim/connect/shared_handshake.h"
#include "shim/socket/tcpinfo.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define SOCKETS_MAX 64
#define LOW_FDS 64       /* descriptors below may be duplicates that were made where we didn't see it */
#define ADOPTED_FDS 256  /* a new program looks at all descriptors below, and at those that the records name */
#define CLAIM_YIELDS 1000
/* What a program may be told of a socket: phase_soon() makes the others one of these. */
#define ADOPTED_PHASES                                                                                              \
	(PHASE(IDLE) | PHASE(HELD) | PHASE(RESOLVING) | PHASE(SYN_SENT) | PHASE(ASKED) | PHASE(BYPASS) |             \
	 PHASE(EARLY_DIRECT) | PHASE(DIRECT) | PHASE(DONE) | PHASES_FAILED)

#define SETTLED_FDS 1024 /* settled connections above are not looked for */

/* Our file's name without its directory if LD_PRELOAD names us. Else it is NULL: we will be in any program that is started. */
static const char *own_name;

/* What is true of a conn or not, in the order of the bits. */
#define FLAGS(X)                                                                                             \
	X(syn_data, attempt.syn_data) X(ask_info, attempt.ask_info) X(ask_mptcp, attempt.ask_mptcp)          \
	X(ask_silent, attempt.ask_silent) X(ask_blind, attempt.ask_blind)                                    \
	X(silence_due, attempt.silence_due)                                                                  \
	X(cookie_asked, attempt.cookie_asked) X(want_output, attempt.want_output)                            \
	X(fastopen_connect, call.fastopen_connect) X(bound, call.bound) X(was_mapped, socket.was_mapped)     \
	X(shown_ipv4, socket.shown_ipv4) X(deaf, socket.deaf) X(mptcp, socket.mptcp)

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

static const char *base_name(const char *path, size_t *len)
{
	const char *base = path;

	for (const char *c = path; c < path + *len; c++)
		if (*c == '/')
			base = c + 1;
	*len -= (size_t)(base - path);
	return base;
}

/* Is our own name among those of LD_PRELOAD, which spaces or colons separate? */
static bool preloads_us(const char *list)
{
	while (*list) {
		size_t len = strcspn(list, ": "), base_len = len;
		const char *base = base_name(list, &base_len);

		if (base_len == strlen(own_name) && !memcmp(base, own_name, base_len))
			return true;
		list += len + (list[len] != '\0');
	}
	return false;
}

void handover_init(void)
{
	const char *list = getenv("LD_PRELOAD");
	Dl_info info;
	size_t len;

	if (!list || !dladdr((const void *)&own_name, &info) || !info.dli_fname)
		return;
	len = strlen(info.dli_fname);
	own_name = base_name(info.dli_fname, &len);
	if (!preloads_us(list))
		own_name = NULL;
}

bool handover_is_due(char *const envp[])
{
	if (conn_next_fd(0) < 0)
		return false;
	if (!own_name)
		return true;
	for (; envp && *envp; envp++)
		if (!strncmp(*envp, "LD_PRELOAD=", strlen("LD_PRELOAD=")))
			return preloads_us(*envp + strlen("LD_PRELOAD="));
	return false;
}

/*
 * The phase that another program is told of. If a thread is in the middle of a step, it is given some time to come to its end. We don't
 * wait for ever, since the thread may not exist here: a process in which no fork handlers ran may be a child of a bare clone() as well
 * as of vfork(). What the SYN+ACK has confirmed here is pending for the other program until that has seen the response, or the
 * server's first bytes.
 */
static enum conn_phase phase_soon(const struct conn *conn)
{
	enum conn_phase phase;

	for (int i = 0; i < CLAIM_YIELDS && conn_is_claimed(conn); i++)
		sched_yield();
	phase = conn_phase(conn);
	switch (phase) {
	case CONN_STARTING:
		return attempt_phase(&conn->attempt);
	case CONN_CONFIRMED:
		return CONN_ASKED;
	case CONN_BYPASSED:
		return CONN_BYPASS;
	default:
		return phase;
	}
}

/* --- programs without us --- */

/* Sends what is left of the request, and peeks at the response. Returns how many bytes of it there are, or -errno. */
static ssize_t response_look(const struct conn *conn, int fd, uint8_t response[CONVERT_MESSAGE_MAX])
{
	int ret = attempt_send_unclaimed(conn, fd);
	ssize_t got;

	if (ret < 0)
		return ret;
	if (conn->socket.mptcp)
		mptcpinfo_gather(fd);
	got = next.recv(fd, response, CONVERT_MESSAGE_MAX, MSG_PEEK | MSG_DONTWAIT);
	return got < 0 ? -errno : got;
}

/*
 * Takes the response off the stream in a vfork() child, under the lock that all processes share. The child can't claim the conn,
 * which is its parent's, as its descriptors aren't. The parent learns of the step as of any other process's. Returns
 * whether nothing is left to be done here.
 */
static bool take_response(const struct conn *conn, int fd)
{
	struct handshake_step told = { .verdict = HANDSHAKE_NEED_MORE };
	struct handshake_ask ask = attempt_ask_of(conn);
	uint8_t response[CONVERT_MESSAGE_MAX];
	enum silence silence;
	struct tcp_info info;
	bool fallen_back;
	ssize_t got = 0;

	if (!shared_handshake_lock(fd))
		return false;
	info = tcpinfo_of(fd);
	silence = conversion_silence(conn, &info);
	if (silence != SILENCE_NONE)
		got = silence == SILENCE_OPEN ? -EAGAIN : attempt_send_unclaimed(conn, fd);
	else if (shared_handshake_look(conn, fd) == SHARED_HANDSHAKE_PENDING)
		got = response_look(conn, fd, response);
	if (got > 0)
		told = handshake_on_bytes(response, (size_t)got, &conn->call.peer, &ask);
	fallen_back = (told.verdict == HANDSHAKE_DONE || silence == SILENCE_KEPT) && conn->socket.mptcp &&
		      mptcpinfo_has_fallen_back(fd);
	if (told.verdict == HANDSHAKE_DONE && !fallen_back)
		next.recv(fd, response, told.length, MSG_DONTWAIT);
	if (told.verdict == HANDSHAKE_FAIL || fallen_back) {
		attempt_disconnect(fd);
		shared_handshake_give_up(fd);
	}
	shared_handshake_unlock(fd);
	return got == 0 || (got < 0 && got != -EAGAIN) || told.verdict != HANDSHAKE_NEED_MORE;
}

static void finish_in_vfork_child(struct conn *conn, int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	int64_t end = clock_ns() + SHARED_HANDSHAKE_FINISH_MS * CLOCK_NS_PER_MS;

	if (!conn_in(conn, PHASES_PENDING | PHASES_CONFIRMED))
		return;
	shared_handshake_give(conn, fd); /* steps of the parent's other threads take the lock from now on */
	if (!phase_in(phase_soon(conn), PHASE(SYN_SENT) | PHASE(ASKED) | PHASE(BYPASS)))
		return;
	while (!take_response(conn, fd) && clock_ns() < end) {
		next.poll(&ready, 1, (int)(SHARED_HANDSHAKE_STRETCH_NS / CLOCK_NS_PER_MS));
		next.poll(NULL, 0, 1); /* a part of the response is there already, so that the wait above ends at once */
	}
}

static bool finish_given(struct conn *conn, void *arg)
{
	(void)arg;
	if (conn->socket.given && conn_of(conn->fd) == conn)
		conversion_finish(conn, conn->fd, SHARED_HANDSHAKE_FINISH_MS);
	return true;
}

void handover_finish(enum handover_way way)
{
	int saved_errno = errno;

	if (way == HANDOVER_CHANGED && conn_is_owner())
		conn_each_pending(finish_given, NULL);

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		bool ours = conn_is_owner();
		struct conn *conn = ours ? conn_attentive(fd) : conn_named(conn_cookie(fd));

		if (!conn || next.fcntl(fd, F_GETFD) & FD_CLOEXEC)
			continue;
		if (ours)
			conversion_finish(conn, fd, SHARED_HANDSHAKE_FINISH_MS);
		else
			finish_in_vfork_child(conn, fd);
	}
	errno = saved_errno;
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

static struct handover_record record_of(const struct conn *conn, int fd, enum conn_phase phase)
{
	bool asks = phase == CONN_HELD || (phase_in(phase, PHASES_PENDING) && conn->attempt.want_output);
	struct convert_span cookie = attempt_ask_of(conn).cookie;

	return (struct handover_record){
		.numbers = {
			[HANDOVER_PHASE] = phase,
			[HANDOVER_FD] = (uint64_t)fd,
			[HANDOVER_COOKIE] = conn->cookie,
			[HANDOVER_FLAGS] = flags_of(conn),
			[HANDOVER_ERROR] = (uint64_t)conn->error,
			[HANDOVER_SENT] = conn->attempt.message_sent,
			[HANDOVER_SENT_IN_SYN] = conn->attempt.message_in_syn,
			[HANDOVER_RCVLOWAT] = (uint64_t)conn->socket.rcvlowat,
			[HANDOVER_LOCAL_PORT] = shared_handshake_local_port(fd),
			[HANDOVER_STARTED] = (uint64_t)clock_ns_of(&conn->call.started),
			[HANDOVER_DEADLINE] = (uint64_t)liveness_deadline(conn),
		},
		.addresses = { conn->call.peer, conn->attempt.addr },
		.bytes = { { cookie.data, asks ? cookie.len : 0 }, { conn->early.bytes, conn->early.len } },
	};
}

static void list_add(struct list *list, struct conn *conn, int fd)
{
	struct handover_record record;
	size_t len;

	if (list->count == SOCKETS_MAX || list_has(list, conn))
		return;
	shared_handshake_give(conn, fd);
	liveness_show(conn, fd);
	record = record_of(conn, fd, phase_soon(conn));
	len = handover_record_write(&record, list->text, list->len, HANDOVER_TEXT_MAX);
	if (!len)
		return;
	list->len = len;
	list->conns[list->count++] = conn;
}

/* Which ones a walk over the descriptors is about. */
struct choice {
	bool settled; /* nothing is left to be done for them; else the others */
	bool cloexec; /* descriptors that exec() closes, else the others */
};

static bool is_chosen(const struct conn *conn, int fd, struct choice choice)
{
	enum conn_phase phase = conn_phase(conn);
	bool unsettled = phase_in(phase, PHASES_UNFINISHED) || (phase_in(phase, PHASES_FAILED) && atomic_load(&conn->error));
	int flags;

	if (unsettled == choice.settled || phase == CONN_FREE || (choice.settled && fd >= SETTLED_FDS))
		return false;
	flags = next.fcntl(fd, F_GETFD);
	return flags >= 0 && !(flags & FD_CLOEXEC) == !choice.cloexec;
}

static void list_walk(struct list *list, struct choice choice)
{
	struct conn *conn;

	if (!choice.settled && conn_none_attentive())
		return;
	for (int fd = conn_next_fd(0); fd >= 0; fd = conn_next_fd(fd + 1)) {
		if (choice.settled && fd >= SETTLED_FDS)
			break;
		conn = conn_of(fd);
		if (conn && is_chosen(conn, fd, choice))
			list_add(list, conn, fd);
	}
	/* A vfork() child may have rearranged its descriptors, of which the table knows nothing. */
	for (int fd = 0; fd < LOW_FDS && !conn_is_owner(); fd++) {
		conn = conn_of(fd) ? NULL : conn_named(conn_cookie(fd));
		if (conn && is_chosen(conn, fd, choice))
			list_add(list, conn, fd);
	}
}

size_t handover_write(char out[HANDOVER_TEXT_MAX], enum handover_way way)
{
	/* File actions may duplicate a descriptor that exec() closes, and the duplicate stays open. */
	static const struct choice choices[] = {
		{ .settled = false, .cloexec = false },
		{ .settled = true, .cloexec = false },
		{ .settled = false, .cloexec = true },
		{ .settled = true, .cloexec = true },
	};
	struct list list = { .text = out, .len = strlen(HANDOVER_VARIABLE "=") };
	int saved_errno = errno;

	memcpy(out, HANDOVER_VARIABLE "=", list.len);
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		if (!choices[i].cloexec || way == HANDOVER_CHANGED)
			list_walk(&list, choices[i]);
	errno = saved_errno;
	return list.count ? list.len : 0;
}

/* --- adopting --- */

static void conn_fill(struct conn *conn, int fd, const struct handover_record *record)
{
	uint8_t bytes[EARLY_MAX];
	struct iovec early = { bytes, handover_record_bytes(record, HANDOVER_EARLY, bytes, EARLY_MAX) };
	const uint64_t *numbers = record->numbers;

	conn->fd = fd;
	conn->call.peer = record->addresses[HANDOVER_SERVER];
	conn->attempt.addr = record->addresses[HANDOVER_CONVERTER];
	flags_set(conn, numbers[HANDOVER_FLAGS]);
	conn->error = (int)numbers[HANDOVER_ERROR];
	conn->call.tried = 0; /* the other program's indices would mean nothing here */
	conn->attempt.message_sent = (uint16_t)numbers[HANDOVER_SENT];
	conn->attempt.message_in_syn = (uint16_t)numbers[HANDOVER_SENT_IN_SYN];
	conn->socket.rcvlowat = (int)numbers[HANDOVER_RCVLOWAT];
	conn->attempt.local_port = (uint16_t)numbers[HANDOVER_LOCAL_PORT];
	conn->call.started.tv_sec = (time_t)(numbers[HANDOVER_STARTED] / CLOCK_NS_PER_S);
	conn->call.started.tv_nsec = (long)(numbers[HANDOVER_STARTED] % CLOCK_NS_PER_S);
	conn->deadline = conn->attempt.ends = (int64_t)numbers[HANDOVER_DEADLINE];
	if (early.iov_len)
		early_keep(&conn->early, &early, 1);
}

static void adopt(int fd, const struct handover_record *record)
{
	const enum conn_phase phase = (enum conn_phase)record->numbers[HANDOVER_PHASE];
	uint8_t cookie[CACHE_COOKIE_MAX];
	struct convert_span span = { cookie, 0 };
	struct conn *conn;
	char text[SOCKADDR_STRLEN];

	if (record->numbers[HANDOVER_PHASE] >= CONN_PHASE_COUNT || !phase_in(phase, ADOPTED_PHASES))
		return;
	if (record->addresses[HANDOVER_SERVER].sa.sa_family == AF_UNSPEC &&
	    !phase_in(phase, PHASE(IDLE) | PHASE(DIRECT)))
		return;
	conn = conn_add(fd);
	if (!conn)
		return;
	conn_fill(conn, fd, record);
	shared_handshake_unlock(fd); /* a thread of the program before the exec may have been in the middle of a step */
	span.len = handover_record_bytes(record, HANDOVER_CONVERT_COOKIE, cookie, sizeof(cookie));
	if (phase_in(phase, PHASES_UNFINISHED))
		attempt_adopt(conn, span, phase);
	conn_move(conn, CONN_IDLE, phase_in(phase, PHASE(SYN_SENT) | PHASE(ASKED)) ? attempt_phase(&conn->attempt) : phase);
	conn_mark_shared(conn);
	if (phase_in(phase, PHASES_PENDING))
		conn_mark_unseen(conn, true);
	log_line("%s: taken over from the program before",
		 sockaddr_ip_format(&conn->call.peer, text));
}

/* Takes over the socket of @fd, a descriptor of the new program, if there is a record of it. */
static void adopt_fd(int fd, const char *text)
{
	uint64_t cookie = conn_cookie(fd);
	struct handover_record record;

	while (cookie && (text = handover_record_read(&record, text))) {
		struct conn *conn;

		if (record.numbers[HANDOVER_COOKIE] != cookie)
			continue;
		conn = conn_named(cookie);
		if (conn)
			conn_dup(conn->fd, fd);
		else
			adopt(fd, &record);
		return;
	}
}

void handover_adopt(void)
{
	const char *text = getenv(HANDOVER_VARIABLE), *rest = text;
	struct handover_record record;

	if (!text)
		return;
	if (getauxval(AT_SECURE)) { /* the environment is the caller's, who has less rights than this program */
		unsetenv(HANDOVER_VARIABLE);
		return;
	}
	for (int fd = 0; fd < ADOPTED_FDS; fd++)
		adopt_fd(fd, text);
	while ((rest = handover_record_read(&record, rest)))
		if (record.numbers[HANDOVER_FD] >= ADOPTED_FDS &&
		    record.numbers[HANDOVER_FD] <= INT32_MAX)
			adopt_fd((int)record.numbers[HANDOVER_FD], text);
	unsetenv(HANDOVER_VARIABLE);
}
