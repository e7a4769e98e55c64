/* SPDX-License-Identifier: BSD-3-Clause */
/* bypass.h - connections over Multipath TCP to a server that speaks it, without a converter */
#ifndef SHIM_BYPASS_H
#define SHIM_BYPASS_H

#include "shim/socket/conn.h"

/* bypass_begin() - connect the claimed @conn to its server. Returns 0 with @conn to be in CONN_BYPASS, 1 with nothing sent if that can't be, or -errno. */
int bypass_begin(struct conn *conn, int fd);

/*
 * bypass_step() - take a step of such a connection, which is claimed
 * The SYN+ACK says whether the server speaks Multipath TCP, and the server's first bytes show whether the path has kept it behind the
 * handshake. Returns the phase to release it in.
 */
enum conn_phase bypass_step(struct conn *conn, int fd);

#endif
