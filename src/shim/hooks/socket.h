/* SPDX-License-Identifier: BSD-3-Clause */
/* socket.h - sockets that the application makes */
#ifndef SHIM_HOOKS_SOCKET_H
#define SHIM_HOOKS_SOCKET_H

#include <stdint.h>

/*
 * socket_made() - socket(2) has returned @fd to the application, which is remembered if it is a TCP socket
 * @domain, @type, @protocol: what was asked for; @generation: conn_generation() before that
 * Returns @fd, which is -1 if the call has failed. errno stays as it was.
 */
int socket_made(int fd, int domain, int type, int protocol, uint32_t generation);

#endif
