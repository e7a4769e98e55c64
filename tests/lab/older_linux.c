/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * older_linux.c - preloaded, behind libconvert.so if that is there, too: what Linux 6.1 doesn't do, and this machine's kernel does
 *
 * SO_RCVLOWAT is taken, and not heeded, as by its Multipath TCP sockets. The size of /proc/self/fd is 0; since 6.2 it is the number of descriptors.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int (*next)(int, int, int, const void *, socklen_t);
	void *found = dlsym(RTLD_NEXT, "setsockopt");

	memcpy(&next, &found, sizeof(next));
	return level == SOL_SOCKET && name == SO_RCVLOWAT ? 0 : next(fd, level, name, value, len);
}

int stat(const char *restrict path, struct stat *restrict status)
{
	int (*next)(const char *, struct stat *);
	void *found = dlsym(RTLD_NEXT, "stat");
	int ret;

	memcpy(&next, &found, sizeof(next));
	ret = next(path, status);
	if (!ret && !strcmp(path, "/proc/self/fd"))
		status->st_size = 0;
	return ret;
}
