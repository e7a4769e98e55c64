/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rings.c - does this process use io_uring?
 *
 * No interface tells us: liburing, and programs without it, make rings by system calls of their own. Three signs show it, and we remember
 * the first for good.
 *
 * - The program calls io_uring_setup(2) by the C library's syscall(): hooks/syscall.c.
 * - liburing is one of the libraries that the program was started with. It may make a ring at any moment.
 * - A ring is a descriptor, and /proc tells its type. Before a connection begins we check the descriptors, each number once as long as no
 *   hook sees it closed. A new descriptor gets the lowest free number, so all below a new socket's are in use; of those behind it we check
 *   BEHIND. A check costs 0.2 us, and 1 us more for a file without a type.
 *
 * A ring also holds files itself, "registered" ones, which it uses in place of descriptors. These stay the same when another socket takes a
 * socket's place under its descriptors. rings_hold() finds them in /proc, by their inodes (": socket:[N]"). Linux 6.12 and before show only
 * the protocol (": TCP"), or nothing (": "): then any such socket may be the one. We don't find a ring without a descriptor
 * (IORING_SETUP_REGISTERED_FD_ONLY), or with one above FDS.
 *
 * We miss a ring if none of the three signs is there yet during a handshake, or if we had checked its number as another descriptor that was
 * closed past the hooks (fclose()). Without /proc the third sign is missing.
 */
#include "config.h"

#include "shim/system/rings.h"

#include "common/rawcall.h"
#include "shim/system/waiting.h"

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
#define FIRST 128u
#define GAP 64u    /* after so many closed numbers we expect no more open ones */
#define WORD_BITS 64u
#define NEEDLE_MAX 40u

static _Atomic bool in_use;
static _Atomic uint64_t looked_at[FDS / WORD_BITS];
static _Atomic uint64_t are_rings[FDS / WORD_BITS];

void rings_init(void)
{
	atomic_store(&in_use, dlsym(RTLD_DEFAULT, "io_uring_queue_init") != NULL);
}

static uint64_t bit_of(unsigned int fd)
{
	return UINT64_C(1) << fd % WORD_BITS;
}

static bool is_in(_Atomic uint64_t set[static FDS / WORD_BITS], unsigned int fd)
{
	return atomic_load_explicit(&set[fd / WORD_BITS], memory_order_relaxed) & bit_of(fd);
}

static void put_in(_Atomic uint64_t set[static FDS / WORD_BITS], unsigned int fd)
{
	if (fd < FDS)
		atomic_fetch_or(&set[fd / WORD_BITS], bit_of(fd));
}

void rings_forget(int fd)
{
	const unsigned int number = (unsigned int)fd;

	if (number < FDS && is_in(looked_at, number)) {
		atomic_fetch_and(&are_rings[number / WORD_BITS], ~bit_of(number));
		atomic_fetch_and(&looked_at[number / WORD_BITS], ~bit_of(number));
	}
}

enum seen { CLOSED, RING, OTHER };

/*
 * Files of the kernel's own, such as epoll instances and rings, have no type. The descriptor may be another thread's, which opens or closes
 * it at this moment; then either result will do. We bypass the C library, as the thread sanitizer would report this as a fault of the
 * program.
 */
static enum seen look_at_descriptor(unsigned int fd)
{
	static const char ring[] = "anon_inode:[io_uring]";
	char path[32], target[sizeof(ring)];
	struct statx status = { .stx_mode = 0 };

	if (RAWCALL(SYS_statx, (int)fd, "", AT_EMPTY_PATH, STATX_TYPE, &status) != 0)
		return CLOSED;
	put_in(looked_at, fd);
	if (status.stx_mode & S_IFMT)
		return OTHER;
	snprintf(path, sizeof(path), "/proc/self/fd/%u", fd);
	if (readlink(path, target, sizeof(target)) != sizeof(ring) - 1 || memcmp(target, ring, sizeof(ring) - 1) != 0)
		return OTHER;
	put_in(are_rings, fd);
	atomic_store(&in_use, true);
	return RING;
}

bool rings_in_use(int fd)
{
	ERRNO_KEPT;
	const unsigned int end = (unsigned int)fd < FDS - BEHIND ? (unsigned int)fd + BEHIND : FDS;

	put_in(looked_at, (unsigned int)fd);
	for (unsigned int i = 0; i < end && !atomic_load(&in_use); i++)
		if (!is_in(looked_at, i))
			look_at_descriptor(i);
	return atomic_load(&in_use);
}

/*
 * Looks for all rings. Those of other threads may be above a new socket, whose number is the lowest free one. We check the FIRST numbers
 * each time: while a program of several threads makes its rings, our own short-lived descriptors may have had a ring's number at a check.
 */
static void look_for_all(void)
{
	for (unsigned int i = 0, closed = 0; i < FDS && closed < GAP; i++)
		closed = (i < FIRST || !is_in(looked_at, i)) && look_at_descriptor(i) == CLOSED ? closed + 1 : 0;
}

/*
 * Is one of @needles in a ring's text in /proc? The text may be long. The kernel leaves out the list of files while another thread is in a
 * call on the ring: then the answer is yes.
 */
static bool is_said_of(unsigned int ring, const char *const needles[], int count)
{
	static const char files[] = "UserFiles:";
	char path[40], text[2048 + NEEDLE_MAX];
	size_t kept = 0, len;
	bool listed = false, found = false;
	long got = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%u", ring);
	fd = (int)RAWCALL(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && !found && (got = RAWCALL(SYS_read, fd, text + kept, sizeof(text) - kept)) > 0) {
		len = kept + (size_t)got;
		listed |= memmem(text, len, files, strlen(files)) != NULL;
		for (int i = 0; i < count; i++)
			found |= memmem(text, len, needles[i], strlen(needles[i])) != NULL;
		kept = len < NEEDLE_MAX ? len : NEEDLE_MAX;
		memmove(text, text + len - kept, kept);
	}
	if (fd >= 0)
		RAWCALL(SYS_close, fd);
	return found || (fd >= 0 && !listed);
}

bool rings_hold(int fd)
{
	ERRNO_KEPT;
	struct statx status = { .stx_ino = 0 };
	char name[NEEDLE_MAX];
	const char *const needles[] = { name, ": \n", ": TCP\n", ": TCPv6\n", ": MPTCP\n", ": MPTCPv6\n" };
	bool held = false;

	look_for_all();
	if (RAWCALL(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &status) == 0) {
		snprintf(name, sizeof(name), ": socket:[%llu]\n", (unsigned long long)status.stx_ino);
		for (unsigned int i = 0; i < FDS && !held; i++)
			held = is_in(are_rings, i) && look_at_descriptor(i) == RING && is_said_of(i, needles, sizeof(needles) / sizeof(needles[0]));
	}
	return held;
}

bool rings_note_setup(int fd, const void *caller)
{
	Dl_info info;

	put_in(looked_at, (unsigned int)fd);
	if (dladdr(caller, &info) && info.dli_sname && strncmp(info.dli_sname, "uv_", strlen("uv_")) == 0)
		return false;
	put_in(are_rings, (unsigned int)fd);
	atomic_store(&in_use, true);
	return true;
}
