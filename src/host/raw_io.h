/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw_io.h - this folder's system calls, and questions to the kernel by netlink, without the C library's functions
 *
 * Within the shim the C library's functions of these names are hooks and cancellation points, and other preloaded libraries would see the
 * calls. The functions with the prefix raw_ return as the C library's do, and set errno.
 *
 * The netlink functions (nl_) use no allocation and little stack, and keep no descriptor; src/common/netlink.c is for programs with libmnl.
 * The kernel writes its answer within send(), and continues a dump within recv(), so nothing here blocks.
 */
#ifndef HOST_RAW_IO_H
#define HOST_RAW_IO_H

#include "common/rawcall.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* On 32-bit machines fcntl64 is the current call; others have only fcntl. */
#ifdef SYS_fcntl64
#define RAW_SYS_FCNTL SYS_fcntl64
#else
#define RAW_SYS_FCNTL SYS_fcntl
#endif

static inline int raw_socket(int domain, int type, int protocol)
{
	return (int)RAWCALL(SYS_socket, domain, type, protocol);
}

static inline void raw_close(int fd)
{
	RAWCALL(SYS_close, fd);
}

static inline int raw_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	return (int)RAWCALL(SYS_connect, fd, to, len);
}

static inline int raw_bind(int fd, const struct sockaddr *to, socklen_t len)
{
	return (int)RAWCALL(SYS_bind, fd, to, len);
}

static inline int raw_getsockname(int fd, struct sockaddr *name, socklen_t *len)
{
	return (int)RAWCALL(SYS_getsockname, fd, name, len);
}

static inline ssize_t raw_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to, socklen_t to_len)
{
	return (ssize_t)RAWCALL(SYS_sendto, fd, data, len, flags, to, to_len);
}

static inline ssize_t raw_recv(int fd, void *data, size_t len, int flags)
{
	return (ssize_t)RAWCALL(SYS_recvfrom, fd, data, len, flags, NULL, NULL);
}

static inline int raw_ioctl(int fd, unsigned long request, void *arg)
{
	return (int)RAWCALL(SYS_ioctl, fd, request, arg);
}

/* fcntl(2) F_DUPFD_CLOEXEC */
static inline int raw_dup_above(int fd, int lowest)
{
	return (int)RAWCALL(RAW_SYS_FCNTL, fd, F_DUPFD_CLOEXEC, lowest);
}

/* Polls one descriptor without waiting. Returns its pending events, 0 for none. */
static inline short raw_events(int fd, short events)
{
	struct pollfd one = { .fd = fd, .events = events };
	struct timespec now = { 0, 0 };

	return RAWCALL(SYS_WITH_TIME(ppoll), &one, 1, &now, NULL, 0) > 0 ? one.revents : 0;
}

static inline bool raw_get(int fd, int level, int name, void *value, socklen_t len)
{
	return RAWCALL(SYS_getsockopt, fd, level, name, value, &len) == 0;
}

static inline bool raw_set(int fd, int level, int name, const void *value, socklen_t len)
{
	return RAWCALL(SYS_setsockopt, fd, level, name, value, len) == 0;
}

/* Returns the value of an integer option of SOL_SOCKET, or @fallback if the kernel refuses. */
static inline int raw_get_socket(int fd, int name, int fallback)
{
	int value;

	return raw_get(fd, SOL_SOCKET, name, &value, sizeof(value)) ? value : fallback;
}

static inline bool raw_set_int(int fd, int level, int name, int value)
{
	return raw_set(fd, level, name, &value, sizeof(value));
}

/* --- netlink --- */

/* nl_open() - open a socket for @protocol, such as NETLINK_ROUTE. Returns -1 if that fails. Close it by raw_close(). */
int nl_open(int protocol);

/* Gets one answer: its type (RTM_…), and the @len bytes at @body, which follow its header. */
typedef void nl_reader(void *arg, uint16_t type, const uint8_t *body, size_t len);

/*
 * nl_ask() - send @question, and call @read for each answer
 * With NLM_F_ACK or NLM_F_DUMP in the question's flags, the kernel marks the last answer; without them there is one answer. Skips answers
 * with another sequence number. Returns 0, or -errno, which may be the kernel's error.
 */
int nl_ask(int fd, const struct nlmsghdr *question, nl_reader *read, void *arg);

/* nl_ask_briefly() - likewise, for one answer of a few hundred bytes: saves two system calls for a mapped buffer */
int nl_ask_briefly(int fd, const struct nlmsghdr *question, nl_reader *read, void *arg);

typedef void nl_attribute_reader(void *arg, uint16_t type, const uint8_t *value, size_t len);

/* nl_attributes() - call @read for each attribute in the @len bytes at @body, after the family's own header of @skip bytes */
void nl_attributes(const uint8_t *body, size_t len, size_t skip, nl_attribute_reader *read, void *arg);

/* Returns an attribute's number of at most 32 bits, in the machine's byte order. */
uint32_t nl_u32(const uint8_t *value, size_t len);

#endif
