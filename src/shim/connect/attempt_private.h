/* SPDX-License-Identifier: BSD-3-Clause */
/* attempt_private.h - what attempt.c and attempt_choice.c have of each other */
#ifndef SHIM_ATTEMPT_PRIVATE_H
#define SHIM_ATTEMPT_PRIVATE_H

#include "client/settings.h"
#include "shim/socket/conn.h"

/* @settings: kept, must stay. */
void attempt_choice_init(const struct settings *settings);

/*
 * attempt_socket_fit() - make the socket fit for @to, which is put into its form
 * IPv4 and IPv6 converters serve applications of either family, over Multipath TCP (@mptcp, which may turn out not to be had) or
 * plain TCP. Returns 0, with watch_resume() to be called once the socket connects, or -errno.
 */
int attempt_socket_fit(struct conn *conn, int fd, union sockaddr_ip *to, bool mptcp);

/* May the request go into the SYN: ride_syn_data()? Whether there may be several paths is looked at where that matters only. */
bool attempt_wants_syn_data(const struct conn *conn, int fd);

/*
 * attempt_hold() - have the SYN to the converter of @conn wait for early data
 * Returns 0 if it does, 1 if the kernel has sent it at once (attempt.want_output is set) or refuses, or -errno.
 */
int attempt_hold(struct conn *conn, int fd);

#endif
