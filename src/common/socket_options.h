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
 * socket_options - those that MPTCP takes as TCP does, in the order in which they have to be copied
 * For all but the sizes of buffers, getsockopt() returns what setsockopt() takes.
 */
extern const struct socket_option socket_options[SOCKET_OPTIONS_COUNT];

/*
 * socket_option_buffer() - the option that tells the size of the buffer which @option sets, 0 if @option isn't about a buffer
 * The kernel doubles what it is given (socket(7)).
 */
int socket_option_buffer(const struct socket_option *option);

/*
 * Advice: options that MPTCP refuses (Linux 6.18: tests/lab/test_platform.py), and without which a connection is the same.
 * @early: it matters if it is set before the connection is begun: how far its packets go, urgent data.
 */
struct socket_advice {
	struct socket_option option;
	bool early;
};

#define SOCKET_ADVICE_COUNT 16

/* Those of one level stand together. */
extern const struct socket_advice socket_advice[SOCKET_ADVICE_COUNT];

/* Returns the index of an option in socket_advice, -1 if it isn't there. */
int socket_advice_index(int level, int name);

/*
 * socket_advice_is_default() - does a program that sets this value in any case ask for the default?
 * -1 is that for how far packets go (ip(7), ipv6(7); nmap sets it), 0 for urgent data.
 */
bool socket_advice_is_default(int index, int value);

#endif
