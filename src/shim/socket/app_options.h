/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * app_options.h - the options that an application has set on a socket, while the kernel has another socket, or other values
 *
 * An MPTCP socket refuses many options that TCP accepts (Linux 6.18: tests/lab/test_platform.py). Some of them are advice, without which
 * the connection is the same: while the socket is an MPTCP one we remember them, return them when asked, and they have no effect. Each of
 * the others keeps a connection on plain TCP.
 */
#ifndef SHIM_APP_OPTIONS_H
#define SHIM_APP_OPTIONS_H

#include "shim/socket/conn.h"

#include <stddef.h>
#include <sys/socket.h>

/* Notes that the application has set this option on the socket of @conn, and that the kernel has accepted the value. */
void options_note(struct conn *conn, int level, int name, const void *value, socklen_t len);

/* Has the application set keys for its peer's address (TCP_MD5SIG, TCP-AO), or TCP_REPAIR? They make no sense to a converter. */
bool options_are_for_the_peer(const struct conn *conn);

/* Can we copy all of the application's options to another socket? */
bool options_can_copy(const struct conn *conn);

/* Does a Multipath TCP socket suffice? False if the application has set an unknown option, or one that matters and that MPTCP lacks. */
bool options_allow_mptcp(const struct conn *conn);

/*
 * options_copy() - copy the application's options from @from, the socket of @conn, to @to
 * @to_mptcp: @to is a Multipath TCP socket, for which we remember advice instead
 * Returns false if an option can't be copied: @to is useless then.
 */
bool options_copy(struct conn *conn, int from, int to, bool to_mptcp);

/* Sets only the remembered advice of @conn on the TCP socket @to. */
void options_copy_advice(const struct conn *conn, int to);

/*
 * options_is_late() - does MPTCP accept the option only before a connection begins, and TCP at any time?
 * (Linux 6.18: EINVAL; 6.1 never accepts one of them: EOPNOTSUPP.) It concerns bind(2), so a connection is the same without it.
 */
bool options_is_late(int level, int name);

/* Notes that the application has set such an option to @value, which MPTCP hasn't stored. */
void options_note_late(struct conn *conn, int level, int name, int value);

/* Has the application set such an option? Sets *@value to its value. */
bool options_late(const struct conn *conn, int level, int name, int *value);

/* Have we remembered this option as advice? */
bool options_is_advice_noted(const struct conn *conn, int level, int name);

/* Remembers an option as advice, with the @value of @len bytes that setsockopt(2) was called with. */
void options_advise(struct conn *conn, int level, int name, const void *value, socklen_t len);

/* --- TCP's keepalive, which probes a converter that is silent after its SYN+ACK --- */

/*
 * The engine's values (kernel_keepalive_set()) are in force while a connection is pending and its converter has been silent for a while.
 * Meanwhile we keep the application's values, report them when it asks, and restore them when the socket becomes the application's again.
 */

/* Call it after the application has set an option. Keeps the value of an option of keepalive, and sets ours again. */
void keepalive_note(struct conn *conn, int fd, int level, int name);

/* Gets the application's value if ours is in force instead. Returns false if it isn't, or for another option. */
bool keepalive_kept(struct conn *conn, int level, int name, int *value);

/* --- SO_RCVLOWAT: the application's value and ours --- */

/*
 * SO_RCVLOWAT sets how many bytes make a socket readable. While a connection is pending our value is in force, so that the response wakes
 * us, and only when it is complete. We keep the application's value in conn.socket.rcvlowat, and restore it when the socket becomes the
 * application's again.
 */

/* Makes the socket readable from the first byte of the response on. Call it before a request is sent. @conn is claimed, as below. */
void lowat_hold(struct conn *conn, int fd);

/* Makes the socket readable only once @bytes bytes have come: the length of the response. */
void lowat_raise(struct conn *conn, int fd, size_t bytes);

/* Restores the application's value. */
void lowat_restore(struct conn *conn, int fd);

/*
 * lowat_keep() - keep the application's value of SO_RCVLOWAT for later while the connection is unfinished
 * @value, @len: as in setsockopt(2)
 * Returns whether it did; if not, the caller must call the kernel.
 */
bool lowat_keep(struct conn *conn, const void *value, socklen_t len);

#endif
