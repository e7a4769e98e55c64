/* SPDX-License-Identifier: BSD-3-Clause */
/* sockets.h - the supervisor's memory of programs' sockets */
#ifndef SUPERVISE_SOCKETS_H
#define SUPERVISE_SOCKETS_H

#include "common/kernel_socket.h"
#include "engine/dial.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* --- memory: options that MPTCP refuses, and the servers behind converted connections --- */

/*
 * advice_set() - remember an option of socket_advice (common/socket_options.h) for the MPTCP socket @fd
 * Returns 0, or the errno with which TCP refuses the value.
 */
int advice_set(int fd, int index, const void *value, socklen_t len);

/*
 * advice_get() - answer getsockopt(2) as a TCP socket would
 * @len: the room in @value; on return, the bytes used. Returns 0 or an errno.
 */
int advice_get(int fd, int index, void *value, socklen_t *len);

/* Sets the options remembered for the socket @from on the TCP socket @to. */
void advice_copy(int from, int to);

/* Returns whether @fd may connect by Multipath TCP: not if the program set an option that MPTCP lacks and that changes the connection. */
bool advice_allows_mptcp(int fd);

/* Notes that the socket @fd, connected or connecting to @converter, leads to @server, the address that the program gave. */
void peers_note(int fd, const union sockaddr_ip *converter, const union sockaddr_ip *server);

/* Likewise, for the socket with that SO_COOKIE and the local address @local. */
void peers_note_at(const union sockaddr_ip *local, uint64_t cookie, const union sockaddr_ip *converter, const union sockaddr_ip *server);

/* Returns the server of the socket @fd, or NULL if its connection isn't converted. */
const union sockaddr_ip *peers_find(int fd);

#endif
