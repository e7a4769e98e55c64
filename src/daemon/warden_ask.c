/* SPDX-License-Identifier: BSD-3-Clause */
/* warden_ask.c - carries out calls that need a right by asking the main process, which has the rights */
#include "config.h"

#include "daemon/warden_message.h"

#include "common/os.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static int calls = -1;  /* -1: none; guarded by asking, except in rights_bind() */
static bool had_calls; /* guarded by asking */

void rights_init(int fd)
{
	pthread_mutex_lock(&asking);
	calls = fd;
	had_calls |= fd >= 0;
	pthread_mutex_unlock(&asking);
}

/*
 * Sends a call, and waits for the answer. @given: set to the descriptor in the answer, or -1. Returns 0 or -errno; -EPERM: no main process;
 * -EAGAIN: it has ended, and clients that try again reach the next one.
 */
static int ask(const struct warden_call *call, int passed, struct warden_answer *answer, int *given)
{
	ssize_t len = -EBADF;
	bool had;

	*given = -1;
	pthread_mutex_lock(&asking);
	if (calls >= 0)
		len = fdpass_send(calls, call, sizeof(*call), passed);
	if (len >= 0)
		len = fdpass_receive(calls, answer, sizeof(*answer), true, given);
	had = had_calls;
	pthread_mutex_unlock(&asking);
	if (len == (ssize_t)sizeof(*answer))
		return answer->error;
	return had ? -EAGAIN : -EPERM;
}

/* Likewise, for an answer without a descriptor; closes one that comes nevertheless. */
static int ask_plainly(const struct warden_call *call, int passed, struct warden_answer *answer)
{
	int given, error = ask(call, passed, answer, &given);

	if (given >= 0)
		close(given);
	return error;
}

static struct warden_call make_call(enum warden_call_kind kind)
{
	struct warden_call call;

	memset(&call, 0, sizeof(call));
	call.kind = kind;
	return call;
}

int rights_set_rules(const struct listen_address *listen, size_t count, bool to_queues, bool *refuses,
		     int *fd)
{
	struct warden_call call = make_call(WARDEN_CALL_RULES);
	struct warden_answer answer;
	int error;

	memcpy(call.listen, listen, count * sizeof(*listen));
	call.count = (uint32_t)count;
	call.queues = to_queues;
	error = ask(&call, -1, &answer, fd);
	*refuses = !error && answer.number;
	return error;
}

int rights_own_queues(size_t count, uint16_t *first)
{
	struct warden_call call = make_call(WARDEN_CALL_QUEUES);
	struct warden_answer answer;
	int error;

	call.count = (uint32_t)count;
	error = ask_plainly(&call, -1, &answer);
	if (!error)
		*first = (uint16_t)answer.number;
	return error;
}

int rights_get_queue(size_t index, int *packets, int *verdicts)
{
	struct warden_call call = make_call(WARDEN_CALL_QUEUE);
	struct warden_answer answer;
	int error;

	call.index = (uint32_t)index;
	error = ask(&call, -1, &answer, packets);
	if (error)
		return error;
	call.kind = WARDEN_CALL_VERDICTS;
	error = ask(&call, -1, &answer, verdicts);
	if (!error && (*packets < 0 || *verdicts < 0))
		/* This process had no room for the descriptors. */
		error = -EMFILE;
	if (!error)
		return 0;
	if (*packets >= 0)
		close(*packets);
	if (*verdicts >= 0)
		close(*verdicts);
	return error;
}

bool rights_give_verdicts(size_t index, int fd, const uint8_t *verdicts, size_t len)
{
	(void)index;
	return fdpass_send(fd, verdicts, len, -1) >= 0;
}

void rights_give_queue_up(size_t index, int fd)
{
	char end;

	(void)index;
	shutdown(fd, SHUT_WR);
	while (recv(fd, &end, sizeof(end), 0) < 0 && errno == EINTR)
		;
	close(fd);
}

int rights_bind(int fd, const union sockaddr_ip *address)
{
	struct warden_call call;
	struct warden_answer answer;

	if (bind(fd, &address->sa, sockaddr_ip_len(address)) == 0)
		return 0;
	if (errno != EACCES || calls < 0)
		return -errno;
	call = make_call(WARDEN_CALL_BIND);
	call.count = 1;
	call.listen[0].address = *address;
	return ask_plainly(&call, fd, &answer);
}

int rights_set_transparent(int fd, bool v4)
{
	struct warden_call call = make_call(WARDEN_CALL_TRANSPARENT);
	struct warden_answer answer;

	call.v4 = v4;
	return ask_plainly(&call, fd, &answer);
}

static void tell(enum warden_call_kind kind, const char *text, int fd)
{
	struct warden_call call = make_call(kind);
	struct warden_answer answer;

	memcpy(call.text, text, strnlen(text, sizeof(call.text) - 1));
	ask_plainly(&call, fd, &answer);
}

void rights_settings_in_force(void)
{
	tell(WARDEN_CALL_IN_FORCE, "", -1);
}

void rights_notify(const char *text, int fd)
{
	tell(WARDEN_CALL_NOTICE, text, fd);
}

void rights_leave(void)
{
	tell(WARDEN_CALL_LEAVE, "", -1);
}

/*
 * ----- the congestion control of TCP and MPTCP sockets, by the kernel's names -----
 *
 * A name is checked by trying it on a socket: the kernel may have to load a module that
 * no list shows, and may forbid an algorithm that it lists.
 */

/* Reads the first line of a file to @buf, without the newline; "" if it can't be read. */
static void read_line(const char *path, char *buf, size_t size)
{
	file_read_text(path, buf, size);
	buf[strcspn(buf, "\n")] = '\0';
}

int congestion_set(int fd, const char *name)
{
	struct warden_call call = make_call(WARDEN_CALL_CONGESTION);
	char preset[CONGESTION_NAME_MAX + 1];
	struct warden_answer answer;

	if (!*name) {
		read_line("/proc/sys/net/ipv4/tcp_congestion_control", preset, sizeof(preset));
		name = preset;
	}
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0)
		return 0;
	if (errno != EPERM)
		return -errno;
	/* net.ipv4.tcp_allowed_congestion_control forbids the name. */
	memcpy(call.congestion, name, strnlen(name, sizeof(call.congestion) - 1));
	return ask_plainly(&call, fd, &answer);
}

int congestion_check(const char *name)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), error;

	if (fd < 0)
		return -errno;
	error = congestion_set(fd, name);
	close(fd);
	return error;
}

const char *congestion_available(char buf[static CONGESTION_LIST_MAX])
{
	read_line("/proc/sys/net/ipv4/tcp_available_congestion_control", buf, CONGESTION_LIST_MAX);
	return buf;
}
