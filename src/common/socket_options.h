/* SPDX-License-Identifier: BSD-3-Clause */
/* socket_options.h - the options that TCP and MPTCP sockets have in common, for copies of a socket; and those that MPTCP lacks */
#ifndef COMMON_SOCKET_OPTIONS_H
#define COMMON_SOCKET_OPTIONS_H

#include <stdbool.h>

struct socket_option {
	int level, name;
};

#define SOCKET_OPTIONS_COUNT 46
#define SOCKET_OPTION_BYTES 128 /* the longest: TCP_FASTOPEN_KEY is 32, a device's name 16 */

/*
 * socket_options - the options that MPTCP accepts as TCP does, in the order in which to copy them
 * For all but the sizes of buffers, getsockopt() returns the value that setsockopt() takes.
 */
extern const struct socket_option socket_options[SOCKET_OPTIONS_COUNT];

/*
 * socket_option_buffer() - return the option that reads the size of the buffer which @option sets, 0 if @option isn't about a buffer
 * The kernel doubles the size that it is given (socket(7)).
 */
int socket_option_buffer(const struct socket_option *option);

/*
 * Advice: options of TCP that MPTCP refuses (Linux 6.18: tests/lab/test_platform.py). Most change nothing that an application sees.
 * @before_connect: it changes the connection if it is set before that begins: how far packets go, urgent data.
 */
struct socket_advice {
	struct socket_option option;
	bool before_connect;
};

#define SOCKET_ADVICE_COUNT 16

/* Options of one level are adjacent. */
extern const struct socket_advice socket_advice[SOCKET_ADVICE_COUNT];

/* Returns the index of an option in socket_advice, -1 if it isn't there. */
int socket_advice_index(int level, int name);

/*
 * socket_advice_is_default() - is this value the default, which some programs always set?
 * The default is -1 for how far packets go (ip(7), ipv6(7); nmap sets it), 0 for urgent data.
 */
bool socket_advice_is_default(int index, int value);

#endif
