/* SPDX-License-Identifier: BSD-3-Clause */
/* advice.h - remembers socket options that MPTCP refuses, for programs that take their socket for a TCP socket */
#ifndef SUPERVISE_ADVICE_H
#define SUPERVISE_ADVICE_H

#include <stdbool.h>
#include <sys/socket.h>

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

#endif
