/* SPDX-License-Identifier: BSD-3-Clause */
/* sysctl.c - integers under /proc/sys */
#include "config.h"

#include "common/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int sysctl_read(const char *name)
{
	char path[128], text[32];
	int fd, error, value;
	ssize_t n;

	n = snprintf(path, sizeof(path), "/proc/sys/%s", name);
	if (n >= (ssize_t)sizeof(path))
		return -ENAMETOOLONG;
	for (char *p = path; *p; p++)
		if (*p == '.')
			*p = '/';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	error = errno;
	close(fd);
	if (n <= 0)
		return n < 0 ? -error : -EINVAL;
	text[n] = '\0';
	value = atoi(text);
	return value < 0 ? -ERANGE : value;
}
