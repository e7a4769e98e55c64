/* SPDX-License-Identifier: BSD-3-Clause */
/* hooks_stdio.h - sockets that the C library's streams read and write, past the hooks */
#ifndef SHIM_HOOKS_STDIO_H
#define SHIM_HOOKS_STDIO_H

/*
 * stdio_opened() - a stream is on @fd, or will be: it has been given to fdopen(3), or is descriptor 0
 * Waits for OTHERS_FINISH_MS at most until the Convert response of a connection that the application
 * takes for connected is off the stream. One that isn't connected yet won't be called so before.
 * Any descriptor may be given. Keeps errno.
 */
void stdio_opened(int fd);

#endif
