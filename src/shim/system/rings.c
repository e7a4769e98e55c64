/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rings.c - does this process use io_uring?
 *
 * There is no way to be told: liburing, and programs without it, make rings by system calls of their own. Three things show it. The
 * first that does is remembered for good.
 *
 * - io_uring_setup(2) by the C library's syscall() comes by: hooks/syscall.c.
 * - liburing is one of the libraries that the program was started with. It may make a ring at any moment.
 * - A ring is a descriptor, and /proc says of which. Before a connection is begun the descriptors are looked at, each number once as
 *   long as nobody closes it by a hook. A new descriptor gets the lowest free number, so that all below a new socket's are in
 *   use; those behind it are looked at as far as BEHIND. A look costs 0.2 us, and 1 us more for what has no type.
 *
 * It is missed where none of the three holds yet while a handshake goes on, or where the ring's number had been looked at as another
 * descriptor that was closed past the hooks (fclose()). Without /proc the third one shows nothing.
 */
#include "config.h"

#include "shim/system/rings.h"

#include "common/rawcall.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#ifndef STATX_TYPE
#include <linux/stat.h> /* musl has statx(2) since 1.2.5 */
#endif
#include <unistd.h>

#define FDS 1024u /* rings are made early */
#define BEHIND 3
#define WORD_BITS 64u

static _Atomic bool in_use;
static _Atomic uint64_t looked_at[FDS / WORD_BITS];

void rings_init(void)
{
	atomic_store(&in_use, dlsym(RTLD_DEFAULT, "io_uring_queue_init") != NULL);
}

static uint64_t bit_of(unsigned int fd)
{
	return UINT64_C(1) << fd % WORD_BITS;
}

static void mark(unsigned int fd)
{
	if (fd < FDS)
		atomic_fetch_or(&looked_at[fd / WORD_BITS], bit_of(fd));
}

void rings_forget(int fd)
{
	const unsigned int number = (unsigned int)fd;

	if (number < FDS && (atomic_load_explicit(&looked_at[number / WORD_BITS], memory_order_relaxed) & bit_of(number)))
		atomic_fetch_and(&looked_at[number / WORD_BITS], ~bit_of(number));
}

/*
 * Files of the kernel's own, such as epoll instances and rings, have no type. The descriptor may be another thread's, who opens or
 * closes it at this moment: no matter what is seen of it then. It is asked past the C library, in which the thread sanitizer would take
 * that for a fault of the program.
 */
static bool is_ring(unsigned int fd)
{
	static const char ring[] = "anon_inode:[io_uring]";
	char path[32], target[sizeof(ring)];
	struct statx status = { .stx_mode = 0 };

	if (RAWCALL(SYS_statx, (int)fd, "", AT_EMPTY_PATH, STATX_TYPE, &status) != 0)
		return false;
	mark(fd);
	if (status.stx_mode & S_IFMT)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%u", fd);
	return readlink(path, target, sizeof(target)) == sizeof(ring) - 1 && memcmp(target, ring, sizeof(ring) - 1) == 0;
}

bool rings_in_use(int fd)
{
	const unsigned int end = (unsigned int)fd < FDS - BEHIND ? (unsigned int)fd + BEHIND : FDS;
	int saved_errno = errno;

	mark((unsigned int)fd);
	for (unsigned int i = 0; i < end && !atomic_load(&in_use); i++)
		if (!(atomic_load_explicit(&looked_at[i / WORD_BITS], memory_order_relaxed) & bit_of(i)) && is_ring(i))
			atomic_store(&in_use, true);
	errno = saved_errno;
	return atomic_load(&in_use);
}

bool rings_note_setup(int fd, const void *caller)
{
	Dl_info info;

	if (dladdr(caller, &info) && info.dli_sname && strncmp(info.dli_sname, "uv_", strlen("uv_")) == 0) {
		mark((unsigned int)fd);
		return false;
	}
	atomic_store(&in_use, true);
	return true;
}
