/* SPDX-License-Identifier: BSD-3-Clause */
/* reset.h - what an application's connection that was reset says of the path to its converter */
#ifndef SHIM_RESET_H
#define SHIM_RESET_H

#include <errno.h>

/* The part of reset_told() for sockets that need a closer look. */
void reset_told_slow(int fd);

/*
 * reset_told() - a call of the application on @fd ends with @error, an errno
 * By a reset a silent connection tells that its path may have lost Multipath TCP: exchange_reset_silently(). An application is told
 * of it once, by whatever call comes first.
 */
static inline void reset_told(int fd, int error)
{
	if (error == ECONNRESET)
		reset_told_slow(fd);
}

#endif
