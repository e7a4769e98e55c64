/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - what an application has set on a socket, and how it gets to another one
 *
 * An MPTCP socket refuses a good part of what TCP takes (Linux 6.18: tests/lab/test_platform.py).
 * Some of that is advice, without which the connection is the same: while the socket is an MPTCP one it is
 * remembered, told when asked for, and has no effect. The rest keeps a connection on plain TCP.
 */
#ifndef SHIM_OPTIONS_H
#define SHIM_OPTIONS_H

#include "shim/socket/conn.h"

#include <sys/socket.h>

/* Notes that the application has set this option on the socket of @conn, and that the kernel has taken the value. */
void options_note(struct conn *conn, int level, int name, const void *value, socklen_t len);

/* Has the application set this option, and was it noted? */
bool options_is_set(const struct conn *conn, int level, int name);

/* Can all that the application has set be set on another socket? */
bool options_can_copy(const struct conn *conn);

/* Would a Multipath TCP socket do? False if the application has set an option that matters and that Multipath TCP lacks. */
bool options_allow_mptcp(const struct conn *conn);

/*
 * options_copy() - set on the socket @to what the application has set on @from, the one that @conn has
 * @to_mptcp: @to is a Multipath TCP socket, where advice is remembered instead
 * Returns false if anything of it can't be: @to is of no use then.
 */
bool options_copy(struct conn *conn, int from, int to, bool to_mptcp);

/* Sets only the advice that was remembered for @conn on the TCP socket @to. */
void options_copy_advice(const struct conn *conn, int to);

/* What it means for a connection that MPTCP refuses an option which TCP takes. */
enum option_weight {
	OPTION_MATTERS,     /* a connection without it isn't what the application asked for */
	OPTION_ADVICE_LATE, /* it matters if it is set before the connection is begun, and is advice afterwards */
	OPTION_ADVICE,
};

/* Returns that for one option, which may be any. */
enum option_weight options_weight(int level, int name);

/*
 * options_is_late() - is it one that MPTCP takes only before a connection is begun, and TCP at any time?
 * (Linux 6.18: EINVAL; 6.1 knows one of them at no time: EOPNOTSUPP.) It is about binding, so that the connection is the same with it.
 */
bool options_is_late(int level, int name);

/* Notes that such an option was set to @value, where MPTCP has kept no value of its own. */
void options_note_late(struct conn *conn, int level, int name, int value);

/* Has it been, and to which *@value? */
bool options_late(const struct conn *conn, int level, int name, int *value);

/* Was this option set as advice, and remembered? */
bool options_is_advice_noted(const struct conn *conn, int level, int name);

/* Remembers an option as advice, with the @value of @len bytes that setsockopt(2) was called with. */
void options_advise(struct conn *conn, int level, int name, const void *value, socklen_t len);

#endif
