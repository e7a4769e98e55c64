/* SPDX-License-Identifier: BSD-3-Clause */
/* socket_options.h - the options that TCP and MPTCP sockets have in common, for copies of a socket */
#ifndef COMMON_SOCKET_OPTIONS_H
#define COMMON_SOCKET_OPTIONS_H

struct socket_option {
	int level, name;
};

#define SOCKET_OPTIONS_COUNT 46
#define SOCKET_OPTION_BYTES 128 /* the longest: TCP_FASTOPEN_KEY is 32, a device's name 16 */

/*
 * socket_options - those that MPTCP takes as TCP does, in the order in which they have to be copied
 * For all but the sizes of buffers, getsockopt() returns what setsockopt() takes.
 */
extern const struct socket_option socket_options[SOCKET_OPTIONS_COUNT];

/*
 * socket_option_buffer() - the option that tells the size of the buffer which @option sets, 0 if @option isn't about a buffer
 * The kernel doubles what it is given (socket(7)).
 */
int socket_option_buffer(const struct socket_option *option);

#endif
