/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deaf_lowat.c - preloaded behind libconvert.so: SO_RCVLOWAT is taken, and not heeded, as by Multipath TCP sockets of Linux 6.1
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int (*next)(int, int, int, const void *, socklen_t);
	void *found = dlsym(RTLD_NEXT, "setsockopt");

	memcpy(&next, &found, sizeof(next));
	return level == SOL_SOCKET && name == SO_RCVLOWAT ? 0 : next(fd, level, name, value, len);
}
