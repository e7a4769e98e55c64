/* SPDX-License-Identifier: BSD-3-Clause */
/* advice.h - socket options that MPTCP refuses, and that a program sets on a socket which it takes for TCP's */
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
 * advice_get() - what getsockopt(2) would say of the option, if the socket were TCP's
 * @len: the room in @value, then how much of it was used. Returns 0 or an errno.
 */
int advice_get(int fd, int index, void *value, socklen_t *len);

/* Sets what is remembered for the socket @from on the TCP socket @to. */
void advice_copy(int from, int to);

/* Would Multipath TCP do for a connection of @fd? False where an option that it lacks changes what the connection is. */
bool advice_allows_mptcp(int fd);

#endif
