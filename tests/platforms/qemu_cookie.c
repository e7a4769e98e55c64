/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qemu_cookie.c - SO_COOKIE for programs under qemu's user-mode emulation, which has no such option
 *
 * libconvert.so tells sockets apart by their cookies, and leaves one alone that has none. The number of a socket's inode is as good here:
 * the kernel gives each socket another one. This library is preloaded behind libconvert.so, which so finds it in place of the C library.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SO_COOKIE_NUMBER 57

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	static int (*next)(int, int, int, void *, socklen_t *);
	struct stat found;
	void *symbol;

	if (level == SOL_SOCKET && name == SO_COOKIE_NUMBER && *len >= sizeof(uint64_t) && fstat(fd, &found) == 0 && S_ISSOCK(found.st_mode)) {
		*(uint64_t *)value = found.st_ino;
		*len = sizeof(uint64_t);
		return 0;
	}
	if (!next) {
		symbol = dlsym(RTLD_NEXT, "getsockopt");
		memcpy(&next, &symbol, sizeof(next));
	}
	return next(fd, level, name, value, len);
}
