/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * older_linux.c - preloaded, behind libconvert.so if that is there, too: what Linux 6.1 doesn't do, and this machine's kernel does
 *
 * SO_RCVLOWAT is taken, and not heeded, as by its Multipath TCP sockets, which don't know IP_BIND_ADDRESS_NO_PORT either. The size of
 * /proc/self/fd is 0; since 6.2 it is the number of descriptors.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

typedef int getsockopt_function(int, int, int, void *, socklen_t *);

/* The C library's, and not that of libconvert.so, which is called by whoever calls getsockopt(). */
static getsockopt_function *next_getsockopt(void)
{
	void *found = dlsym(RTLD_NEXT, "getsockopt");
	getsockopt_function *next;

	memcpy(&next, &found, sizeof(next));
	return next;
}

static int is_unknown(int fd, int level, int name)
{
	socklen_t bytes = sizeof(int);
	int protocol;

	return level == IPPROTO_IP && name == IP_BIND_ADDRESS_NO_PORT &&
	       next_getsockopt()(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes) == 0 && protocol == IPPROTO_MPTCP;
}

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict len)
{
	if (!is_unknown(fd, level, name))
		return next_getsockopt()(fd, level, name, value, len);
	errno = EOPNOTSUPP;
	return -1;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int (*next)(int, int, int, const void *, socklen_t);
	void *found = dlsym(RTLD_NEXT, "setsockopt");

	memcpy(&next, &found, sizeof(next));
	if (!is_unknown(fd, level, name))
		return level == SOL_SOCKET && name == SO_RCVLOWAT ? 0 : next(fd, level, name, value, len);
	errno = EOPNOTSUPP;
	return -1;
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
