/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usermem.c - accesses the application's memory as the kernel does
 *
 * The kernel does the copying: process_vm_readv(2) and process_vm_writev(2), called for our own process, fail with EFAULT where an
 * instruction would raise SIGSEGV. In a sandbox that forbids them (seccomp(2), old containers) we test each page by a harmless system call,
 * and then copy by instructions. For reading this is rt_sigprocmask(2), which every hook that waits needs anyway: it reads a signal mask
 * before it checks its command, which doesn't exist, and says EFAULT or EINVAL. For writing it is getrandom(2) of one byte, which we
 * overwrite afterwards. This fails only if another thread unmaps the memory in between.
 */
#include "config.h"

#include "shim/system/usermem.h"

#include "common/rawcall.h"
#include "shim/system/waiting.h"

#include <limits.h>
#include <string.h>

#define PAGE 4096u /* pages are of this size or a multiple of it */
#define MASK_BYTES 8u
#define NO_COMMAND (-1)
#define VECTORS_MAX 1024 /* UIO_MAXIOV */

static size_t page_left(uintptr_t at)
{
	return PAGE - (at & (PAGE - 1));
}

/* Is the page of @at readable? */
static bool page_is_readable(const void *at)
{
	uintptr_t mask = (uintptr_t)at & ~(uintptr_t)(MASK_BYTES - 1);

	if (!mask) /* NULL would mean no mask */
		mask = MASK_BYTES;
	return RAWCALL(SYS_rt_sigprocmask, NO_COMMAND, mask, NULL, MASK_BYTES) == 0 || errno == EINVAL;
}

static bool page_is_writable(void *at)
{
	return RAWCALL(SYS_getrandom, at, 1, 0) == 1 || errno != EFAULT;
}

static bool is_forbidden(int error)
{
	return error == ENOSYS || error == EPERM || error == EACCES;
}

static size_t read_without_call(void *to, const void *from, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		const char *at = (const char *)from + done;
		size_t left = page_left((uintptr_t)at), part = left < bytes - done ? left : bytes - done;

		if (!page_is_readable(at))
			break;
		memcpy((char *)to + done, at, part);
		done += part;
	}
	return done;
}

static size_t write_without_call(void *to, const void *from, size_t bytes)
{
	for (size_t done = 0; done < bytes; done += page_left((uintptr_t)to + done))
		if (!page_is_writable((char *)to + done))
			return 0;
	memcpy(to, from, bytes);
	return bytes;
}

static long copy_by_call(long number, void *own, const void *theirs, size_t bytes)
{
	struct iovec local = { own, bytes }, remote = { (void *)(uintptr_t)theirs, bytes };

	/* The thread's id: the process's id is invalid here once its main thread has ended. */
	return RAWCALL(number, RAWCALL(SYS_gettid), &local, 1, &remote, 1, 0);
}

size_t usermem_read_part(void *to, const void *from, size_t bytes)
{
	ERRNO_KEPT;
	size_t done = 0;
	long ret = 0;

	/* A call stops at a missing page. */
	while (done < bytes && (ret = copy_by_call(SYS_process_vm_readv, (char *)to + done,
						   (const char *)from + done, bytes - done)) > 0)
		done += (size_t)ret;
	if (ret < 0 && is_forbidden(errno))
		done = read_without_call(to, from, bytes);
	return done;
}

bool usermem_read(void *to, const void *from, size_t bytes)
{
	return usermem_read_part(to, from, bytes) == bytes;
}

bool usermem_write(void *to, const void *from, size_t bytes)
{
	ERRNO_KEPT;
	long ret = bytes ? copy_by_call(SYS_process_vm_writev, (void *)(uintptr_t)from, to, bytes) : 0;

	if (ret < 0 && is_forbidden(errno))
		ret = (long)write_without_call(to, from, bytes);
	return ret >= 0 && (size_t)ret == bytes;
}

/* Reads a byte of each page: addresses and arrays take one or two. */
bool usermem_is_readable(const void *at, size_t bytes)
{
	const uintptr_t end = (uintptr_t)at + bytes; /* may overflow */
	char seen;

	for (uintptr_t page = (uintptr_t)at; page < end; page += page_left(page))
		if (!usermem_read(&seen, (const void *)page, sizeof(seen)))
			return false;
	return end >= (uintptr_t)at;
}

bool usermem_has_vector(const struct iovec *iov, size_t count)
{
	if (!count)
		return true;
	if (count > VECTORS_MAX || !usermem_is_readable(iov, count * sizeof(*iov)))
		return false;
	for (size_t i = 0; i < count; i++)
		if (iov[i].iov_len > SSIZE_MAX || !usermem_is_address(iov[i].iov_base))
			return false;
	return true;
}

bool usermem_has_address(const struct sockaddr *addr, socklen_t len, struct sockaddr_storage *copy)
{
	return len <= sizeof(*copy) && usermem_read(copy, addr, len);
}

/* Is the name readable? The kernel cuts a longer one. */
static bool has_name(const struct msghdr *msg)
{
	socklen_t len = msg->msg_namelen;

	return len <= INT_MAX &&
	       usermem_is_readable(msg->msg_name, len < sizeof(struct sockaddr_storage) ? len : sizeof(struct sockaddr_storage));
}

bool usermem_has_message(const struct msghdr *msg, bool sent, struct msghdr *copy)
{
	if (!usermem_read(copy, msg, sizeof(*copy)) || !usermem_has_vector(copy->msg_iov, copy->msg_iovlen))
		return false;
	if (!sent)
		return !copy->msg_name || copy->msg_namelen <= INT_MAX;
	return (!copy->msg_name || has_name(copy)) && copy->msg_controllen <= INT_MAX &&
	       usermem_is_readable(copy->msg_control, copy->msg_controllen);
}

/* Is the string readable up to its end? @page: a page that is known to be readable, usually that of the string before; updated */
static bool has_string(const char *string, const char **page)
{
	for (;;) {
		const char *start = (const char *)((uintptr_t)string & ~(uintptr_t)(PAGE - 1));
		size_t left = page_left((uintptr_t)string);

		if (start != *page && !usermem_is_readable(string, 1))
			return false;
		*page = start;
		if (memchr(string, '\0', left))
			return true;
		string += left;
	}
}

bool usermem_has_strings(char *const strings[])
{
	const char *page = (const char *)1; /* no page begins there */

	if (!strings)
		return true;
	for (size_t checked = 0;; strings++, checked -= sizeof(*strings)) {
		if (!checked) {
			/* to the end of the page, or one pointer that two pages share */
			checked = page_left((uintptr_t)strings) / sizeof(*strings) * sizeof(*strings);
			checked = checked ? checked : sizeof(*strings);
			if (!usermem_is_readable(strings, checked))
				return false;
		}
		if (!*strings)
			return true;
		if (!has_string(*strings, &page))
			return false;
	}
}

int usermem_answer(void *to, socklen_t *len, const void *answer, socklen_t bytes, enum usermem_answer kind)
{
	const bool full = kind == USERMEM_NAME;
	socklen_t room, told;

	if (!usermem_read(&room, len, sizeof(room)))
		return -EFAULT;
	if (room > INT_MAX)
		return -EINVAL;
	room = room < bytes ? room : bytes;
	told = full ? bytes : room;
	if (full && !usermem_write(len, &told, sizeof(told))) /* the kernel has this order */
		return -EFAULT;
	return usermem_write(to, answer, room) && (full || usermem_write(len, &told, sizeof(told))) ? 0 : -EFAULT;
}
