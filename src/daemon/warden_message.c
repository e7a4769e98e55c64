/* SPDX-License-Identifier: BSD-3-Clause */
/* warden_message.c - the messages between the main process and the serving one */
#include "config.h"

#include "daemon/warden_message.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* The contents of a call of each kind. */
static const struct {
	bool addresses;
	enum { NO_DESCRIPTOR, A_DESCRIPTOR, ANY_DESCRIPTOR } passed;
	uint32_t least, most; /* of count */
	uint32_t index_max, flag_max;
	bool name, text;
} kinds[] = {
	[WARDEN_CALL_RULES] = { .addresses = true, .least = 1, .most = LISTEN_ADDRESSES_MAX, .flag_max = 1 },
	[WARDEN_CALL_QUEUES] = { .most = WARDEN_QUEUES_MAX },
	[WARDEN_CALL_QUEUE] = { .index_max = WARDEN_QUEUES_MAX - 1 },
	[WARDEN_CALL_VERDICTS] = { .index_max = WARDEN_QUEUES_MAX - 1 },
	[WARDEN_CALL_BIND] = { .addresses = true, .passed = A_DESCRIPTOR, .least = 1, .most = 1 },
	[WARDEN_CALL_TRANSPARENT] = { .passed = A_DESCRIPTOR, .flag_max = 1 },
	[WARDEN_CALL_CONGESTION] = { .passed = A_DESCRIPTOR, .name = true },
	[WARDEN_CALL_IN_FORCE] = { .least = 0 },
	[WARDEN_CALL_NOTICE] = { .passed = ANY_DESCRIPTOR, .text = true },
	[WARDEN_CALL_LEAVE] = { .least = 0 },
};
static_assert(sizeof(kinds) / sizeof(kinds[0]) == WARDEN_CALL_KIND_COUNT, "a line for each kind");

static bool address_is_right(const struct listen_address *listen)
{
	int family = listen->address.sa.sa_family;

	return (family == AF_INET || family == AF_INET6) &&
	       memchr(listen->device, '\0', sizeof(listen->device));
}

bool warden_call_is_right(const struct warden_call *call, size_t len, bool passed)
{
	if (len != sizeof(*call) || call->kind >= WARDEN_CALL_KIND_COUNT)
		return false;
	if (call->count < kinds[call->kind].least || call->count > kinds[call->kind].most ||
	    call->index > kinds[call->kind].index_max || call->queues > kinds[call->kind].flag_max ||
	    call->v4 > kinds[call->kind].flag_max ||
	    (kinds[call->kind].passed != ANY_DESCRIPTOR && passed != (kinds[call->kind].passed == A_DESCRIPTOR)))
		return false;
	for (uint32_t i = 0; kinds[call->kind].addresses && i < call->count; i++)
		if (!address_is_right(&call->listen[i]))
			return false;
	if (kinds[call->kind].text && !memchr(call->text, '\0', sizeof(call->text)))
		return false;
	return !kinds[call->kind].name ||
	       (call->congestion[0] && memchr(call->congestion, '\0', sizeof(call->congestion)));
}

bool warden_verdict_next(const uint8_t *message, size_t len, size_t *at,
			 struct warden_verdict *verdict, const uint8_t **packet)
{
	struct warden_verdict next;

	if (len < *at || len - *at < sizeof(next))
		return false;
	memcpy(&next, message + *at, sizeof(next));
	if (next.len > len - *at - sizeof(next) || next.accept > 1 || next.zero ||
	    (next.len && !next.accept))
		return false;
	*verdict = next;
	*packet = next.len ? message + *at + sizeof(next) : NULL;
	*at += sizeof(next) + next.len;
	return true;
}

/* ----- messages between processes that take a descriptor along: SCM_RIGHTS of unix(7) ----- */

/* The most descriptors of one message that are read, only to be closed again: the kernel passes 253 at most. */
#define PASSED_MAX 253

/* Takes the descriptors of a message. Returns their number, and the first of them in @passed. */
static size_t take_passed(struct msghdr *message, int *passed)
{
	size_t count = 0;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
	     header = CMSG_NXTHDR(message, header)) {
		size_t here = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < here; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
			if (count++ == 0)
				*passed = fd;
			else
				close(fd);
		}
	}
	return count;
}

ssize_t fdpass_receive(int fd, void *buf, size_t size, bool wait, int *passed)
{
	char control[CMSG_SPACE(sizeof(int) * PASSED_MAX)]
		__attribute__((aligned(__alignof__(struct cmsghdr))));
	struct iovec bytes = { .iov_base = buf, .iov_len = size };
	struct msghdr message = { .msg_iov = &bytes,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	ssize_t len;

	do
		len = recvmsg(fd, &message, (wait ? 0 : MSG_DONTWAIT) | MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	*passed = -1;
	if (len < 0)
		return -errno;
	if (take_passed(&message, passed) <= 1 && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return len;
	if (*passed >= 0)
		close(*passed);
	*passed = -1;
	return -EMSGSIZE;
}

ssize_t fdpass_send(int fd, const void *buf, size_t len, int passed)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(__alignof__(struct cmsghdr)))) = {
		0
	};
	struct iovec bytes = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };
	ssize_t sent;

	if (passed >= 0) {
		struct cmsghdr *header;

		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(passed));
		memcpy(CMSG_DATA(header), &passed, sizeof(passed));
	}
	do
		sent = sendmsg(fd, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}
