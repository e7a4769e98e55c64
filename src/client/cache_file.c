/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache_file.c - find, check, make and map the cache's file, and copy from and to the mapping
 *
 * Whoever can write the file can mislead its readers, so that it and its directory (user_cache.c) must be this
 * user's and nobody else's. What has the name of our file but isn't a file of ours is left alone.
 *
 * The header must be what this process would write itself. A file of ours for which that doesn't
 * hold (damaged, cut, another boot's) is never repaired, since others may have it mapped: a new
 * one is renamed over it. A new file gets its name when it is complete, so that none is ever seen
 * half made: by link(2) where there was none, which one of several processes wins, and then the
 * name is opened again. If two replace a file at the same time, one may be left alone with what
 * it made, until it ends. A process that is killed meanwhile leaves a file CACHE_FILE.N of a page.
 */
#include "config.h"

#include "client/cache_file.h"

#include "client/cache_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define ATTEMPTS 4 /* each fails only if another process makes or replaces the file meanwhile */

/* In the shim close() is a hook, and it is a cancellation point. */
static void fd_close(int fd)
{
	syscall(SYS_close, fd);
}

static int boot_id_read(char boot[CACHE_BOOT_ID_LEN])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = pread(fd, boot, CACHE_BOOT_ID_LEN, 0);
	fd_close(fd);
	return len == CACHE_BOOT_ID_LEN ? 0 : -EIO;
}

/* Opens the file with all that says whether it may be ours. Returns a descriptor, or -errno. */
static int file_open(int directory)
{
	/* O_NONBLOCK: whatever it is, nobody waits for it */
	const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int fd = openat(directory, CACHE_FILE, flags), ret = 0;
	struct stat st;

	if (fd < 0) /* a symbolic link, a directory, a socket */
		return errno == ELOOP || errno == EISDIR || errno == ENXIO ? -EEXIST : -errno;
	if (fstat(fd, &st) < 0)
		ret = -errno;
	else if (!S_ISREG(st.st_mode))
		ret = -EEXIST;
	else if (st.st_uid != geteuid() || (st.st_mode & (S_IRWXG | S_IRWXO)))
		ret = -EPERM;
	if (ret == 0)
		return fd;
	fd_close(fd);
	return ret;
}

static bool file_is_usable(int fd, const struct cache_header *header)
{
	struct cache_header found;
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size == (off_t)header->size &&
	       pread(fd, &found, sizeof(found), 0) == (ssize_t)sizeof(found) &&
	       memcmp(&found, header, sizeof(found)) == 0;
}

/* An empty cache: a header and a hole. */
static int file_fill(int fd, const struct cache_header *header)
{
	ssize_t len;

	if (fchmod(fd, S_IRUSR | S_IWUSR) < 0 || /* whatever the umask is */
	    ftruncate(fd, (off_t)header->size) < 0)
		return -errno;
	len = pwrite(fd, header, sizeof(*header), 0);
	if (len < 0)
		return -errno;
	return len == (ssize_t)sizeof(*header) ? 0 : -ENOSPC;
}

/*
 * Makes a file and gives it the name. Returns 0, or -errno: -EEXIST if there is one already
 * (unless it is to @replace it), or if its temporary name was taken.
 */
static int file_make(int directory, const struct cache_header *header, bool replace)
{
	char name[sizeof(CACHE_FILE) + sizeof(".2147483647")];
	int fd, ret;

	snprintf(name, sizeof(name), CACHE_FILE ".%ld", syscall(SYS_gettid));
	fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    S_IRUSR | S_IWUSR);
	if (fd < 0) {
		ret = -errno;
		if (ret == -EEXIST) /* left by a process that was killed */
			unlinkat(directory, name, 0);
		return ret;
	}
	ret = file_fill(fd, header);
	fd_close(fd);
	if (ret == 0) {
		ret = replace ? renameat(directory, name, directory, CACHE_FILE) :
				linkat(directory, name, directory, CACHE_FILE, 0);
		ret = ret < 0 ? -errno : 0;
	}
	if (ret < 0 || !replace)
		unlinkat(directory, name, 0);
	return ret;
}

/* Returns a descriptor of a file that can be used, or -errno. */
static int file_get(int directory, const struct cache_header *header)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		int fd = file_open(directory), ret;

		if (fd < 0 && fd != -ENOENT)
			return fd;
		if (fd >= 0) {
			if (file_is_usable(fd, header))
				return fd;
			fd_close(fd);
		}
		ret = file_make(directory, header, fd >= 0);
		if (ret < 0 && ret != -EEXIST && ret != -ENOENT)
			return ret;
	}
	return -EAGAIN;
}

static int file_map(int fd, size_t size, uint8_t **out)
{
	void *file = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (file == MAP_FAILED)
		return -errno;
	madvise(file, size, MADV_DONTDUMP); /* cookies are credentials: not into core dumps */
	*out = file;
	return 0;
}

static int map(int directory, uint8_t **out)
{
	char boot[CACHE_BOOT_ID_LEN];
	struct cache_header header;
	int fd, ret;

	if (getauxval(AT_SECURE))
		return -EPERM;
	ret = boot_id_read(boot);
	if (ret < 0)
		return ret;
	cache_header_set(&header, boot);
	fd = file_get(directory, &header);
	if (fd < 0)
		return fd;
	ret = file_map(fd, header.size, out);
	fd_close(fd);
	return ret;
}

int cache_file_map(int directory, uint8_t **out)
{
	int saved = errno, ret;

	ret = map(directory, out);
	errno = saved;
	return ret;
}

void cache_file_unmap(uint8_t *file)
{
	int saved = errno;

	munmap(file, cache_file_size());
	errno = saved;
}

typedef ssize_t copy(pid_t pid, const struct iovec *local, unsigned long locals,
		     const struct iovec *remote, unsigned long remotes, unsigned long flags);

/* Why in this way: cache.c. */
static int guarded_copy(copy *function, uint8_t *file, uint32_t offset, void *buf, size_t len)
{
	struct iovec local = { buf, len }, remote = { file + offset, len };
	int saved = errno, ret = 0;
	ssize_t done;

	/* The thread's id: that of the process is unknown here once its main thread has ended. */
	done = function((pid_t)syscall(SYS_gettid), &local, 1, &remote, 1, 0);
	if (done < 0)
		ret = -errno;
	else if ((size_t)done != len)
		ret = -EFAULT;
	errno = saved;
	return ret;
}

int cache_file_read(uint8_t *file, uint32_t offset, void *buf, size_t len)
{
	return guarded_copy(process_vm_readv, file, offset, buf, len);
}

int cache_file_write(uint8_t *file, uint32_t offset, const void *buf, size_t len)
{
	return guarded_copy(process_vm_writev, file, offset, (void *)(uintptr_t)buf, len);
}
