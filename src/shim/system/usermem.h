/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usermem.h - accesses the application's memory as the kernel does
 *
 * An application may pass a wrong pointer to a system call: the kernel then says EFAULT, and so must a hook. Hooks use these functions for
 * memory that the kernel hasn't just read or written.
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
 * Return false, perhaps with a part copied, if the kernel would say EFAULT. Async-signal-safe; errno stays as it was.
 */
bool usermem_read(void *to, const void *from, size_t bytes);
bool usermem_write(void *to, const void *from, size_t bytes);

/* Copies @bytes at @from up to the first unreadable page. Returns how many it has copied. */
size_t usermem_read_part(void *to, const void *from, size_t bytes);

/* Are @bytes at @at readable? */
bool usermem_is_readable(const void *at, size_t bytes);

/*
 * The following functions make the checks that the kernel makes before it looks at a socket's state. If one returns false, the kernel
 * refuses the call for certain, so we may ask it for its errno in any state.
 */

/* Is this an address of user space at all? On other machines the upper bits may have another use. */
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
 * usermem_has_vector() - would writev(2) and its like accept these buffers?
 * Checks that the array is readable, its counts are valid and the buffers are in user space; it reads no buffer. True without buffers.
 */
bool usermem_has_vector(const struct iovec *iov, size_t count);

/* Would recvmsg(2) (@sent false), or sendmsg(2), which checks more, accept this message? @copy gets a copy of the header. */
bool usermem_has_message(const struct msghdr *msg, bool sent, struct msghdr *copy);

/* Can sendto(2) and connect(2) read this address? @copy gets a copy of it. */
bool usermem_has_address(const struct sockaddr *addr, socklen_t len, struct sockaddr_storage *copy);

/* usermem_has_strings() - is an array of strings with a NULL at its end, as for exec(2), completely readable? */
bool usermem_has_strings(char *const strings[]);

/*
 * usermem_answer() - store @bytes of @answer, cut to the available room, and a length in @len
 * Returns 0, -EFAULT or -EINVAL.
 */
enum usermem_answer {
	USERMEM_OPTION, /* the stored length, as getsockopt(2) does */
	USERMEM_NAME,   /* @bytes, as getpeername(2) does */
};

int usermem_answer(void *to, socklen_t *len, const void *answer, socklen_t bytes, enum usermem_answer kind);

#endif
