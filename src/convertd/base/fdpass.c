/* SPDX-License-Identifier: BSD-3-Clause */
/* fdpass.c - messages between processes that take a descriptor along: SCM_RIGHTS of unix(7) */
#include "config.h"

#include "convertd/base/fdpass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Descriptors of one message that are looked at, only to be closed again: the kernel passes 253 at most. */
#define PASSED_MAX 253

/* Takes the descriptors of a message; returns how many there were, the first of them in @passed. */
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
