/* SPDX-License-Identifier: BSD-3-Clause */
/* gate.h - sending and receiving before and after the server's answer, and over Multipath TCP as over TCP */
#ifndef SHIM_GATE_H
#define SHIM_GATE_H

#include "shim/socket/conn.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* --- may the application send or receive now? --- */

/* These functions return GATE_OPEN if the hook shall call the next function; else its result, 0 or -errno. errno stays as it was. */
#define GATE_OPEN 1

/*
 * gate_input() - may the application read from @fd? Not before the response is off the stream
 * @flags: as in recv(2). An MPTCP socket ignores MSG_OOB and would return ordinary data; TCP without urgent data returns EINVAL.
 */
int gate_input(int fd, int flags);

/* May the application write to @fd? Before the server's answer only if told "writable" past the hooks, and behind the request. */
int gate_output(int fd, int flags);

/* Does the kernel say that @fd is writable? */
bool gate_is_writable(int fd);

/* --- the reset of a connection, which may be the fault of its path to the converter --- */

/*
 * reset_told() - note that a call of the application on @fd ends with @error, an errno
 * The reset of a silent connection shows that its path may have lost Multipath TCP: exchange_reset_silently(). The kernel reports it once,
 * to the application's first call.
 */
void reset_told(int fd, int error);

/* --- input --- */

bool input_is_mptcp(int fd);

/*
 * input_has_ended() - is a failed recv(2) on @fd the end of the stream?
 * After a failed connection has reported its error, TCP returns 0 as at the end of a stream, and MPTCP returns ENOTCONN, as if there had
 * never been a connection. Reads errno.
 */
bool input_has_ended(int fd);

/*
 * peek_prepare() - prepare a call with @flags, MSG_PEEK among them, on @fd, with room for @want bytes, to see all that TCP would show
 *
 * On MPTCP, MSG_PEEK doesn't show bytes that come after those that it has shown; with MSG_WAITALL it waits for them in an endless loop in
 * the kernel (Linux 6.12; 6.1 shows the first ones twice; 6.18 shows all). So we bring the bytes together first, and wait for them here.
 * Returns false, with errno set, if the wait has failed: then the call fails, too. Else *@flags are the flags for the call.
 */
bool peek_prepare(int fd, size_t want, int *flags);

/* --- the first output of an application as early data --- */

/* Would output be early data on @fd? This and the functions below leave errno as it was. */
bool output_takes_early(int fd);

/*
 * output_take_early() - are these the first bytes of an application that didn't wait for the server?
 * If so, takes them, and sets @result to the return value for send(2), or -errno. @flags: as in send(2)
 */
bool output_take_early(int fd, const struct iovec *iov, size_t count, int flags, ssize_t *result);

/* Does the same for sendto(MSG_FASTOPEN), which connects to @addr first; false without that flag and an address. */
bool output_connect_fastopen(int fd, const struct iovec *iov, size_t count, int flags, const struct sockaddr *addr, socklen_t addrlen,
			ssize_t *result);

#endif
