/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usermem.h - the application's memory, looked at as the kernel does
 *
 * A pointer that an application passes to a system call may be wrong: the kernel then says EFAULT, and so must
 * a hook. What was not read or written by the kernel a moment ago is read and written by these.
 */
#ifndef SHIM_USERMEM_H
#define SHIM_USERMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

/*
 * usermem_read(), usermem_write() - copy from and to the application's memory
 * Return false, perhaps with a part copied, where the kernel would say EFAULT. Async-signal-safe; errno stays as it was.
 */
bool usermem_read(void *to, const void *from, size_t bytes);
bool usermem_write(void *to, const void *from, size_t bytes);

/* How many of @bytes at @from were copied: all in front of the first page that can't be read. */
size_t usermem_read_part(void *to, const void *from, size_t bytes);

/* May @bytes at @at be read? */
bool usermem_is_readable(const void *at, size_t bytes);

/*
 * What follows is about what the kernel looks at before it asks for the state of a socket. Where it says false the call
 * is refused for certain, so that the kernel may be asked for its errno whatever the state is.
 */

/* Is this an address of user space at all? Elsewhere than here the upper bits may be something else's. */
static inline bool usermem_is_address(const void *at)
{
#if defined(__x86_64__) && defined(__LP64__)
	return (intptr_t)at >= 0;
#else
	(void)at;
	return true;
#endif
}

/*
 * usermem_has_vector() - are these buffers that writev(2) and its like take?
 * That is, the array can be read, and there is nothing wrong with the counts; not that the buffers are there. With
 * no buffers at all, true.
 */
bool usermem_has_vector(const struct iovec *iov, size_t count);

/* Is this a message that recvmsg(2) (@sent false) or sendmsg(2), which looks at more, would take? @copy gets a copy of the header. */
bool usermem_has_message(const struct msghdr *msg, bool sent, struct msghdr *copy);

/* Is this an address that sendto(2) and connect(2) can read? @copy gets a copy of it. */
bool usermem_has_address(const struct sockaddr *addr, socklen_t len, struct sockaddr_storage *copy);

/* usermem_has_strings() - an array of strings with a NULL at its end, as exec(2) has them: all there? */
bool usermem_has_strings(char *const strings[]);

/*
 * usermem_answer() - as getsockopt(2) returns a value: cut to what there is room for, and @len says how much that is
 * Returns 0, -EFAULT or -EINVAL.
 */
int usermem_answer(void *value, socklen_t *len, const void *answer, socklen_t bytes);

/* usermem_answer_name() - as getpeername(2) returns an address: cut, but @len says how long it is in full */
int usermem_answer_name(struct sockaddr *addr, socklen_t *len, const void *name, socklen_t bytes);

#endif
