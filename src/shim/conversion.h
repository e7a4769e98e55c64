/* SPDX-License-Identifier: BSD-3-Clause */
/* conversion.h - from connect() to the end of the Convert response, on one socket */
#ifndef SHIM_CONVERSION_H
#define SHIM_CONVERSION_H

#include "client/settings.h"
#include "shim/conn.h"

/* @settings: kept, must stay. Once, before any other call. */
void conversion_init(const struct settings *settings);

/* Are connections converted at all in this process? */
bool conversion_enabled(void);

/*
 * conversion_start() - ask a converter for @server instead of connecting to it
 * @conn: in CONN_IDLE, of @fd. Never blocks.
 * Returns 0 with @conn PENDING (or further); CONVERSION_DIRECT with nothing changed if this
 * connection is to be made directly, the log says why; or -errno if it may not be
 * (settings.fail_closed).
 */
#define CONVERSION_DIRECT 1
int conversion_start(struct conn *conn, int fd, const union sockaddr_ip *server);

/* Has something happened on the socket that conversion_progress() would act upon? */
bool conversion_is_ripe(const struct conn *conn, int fd);

/*
 * conversion_progress() - take every step that is possible without waiting
 * Returns the state reached, never CONN_CLAIMED: a step that another thread is taking is
 * waited for, since only after it can be said what the application may see or send.
 * CONN_DIRECT: the converter failed and a direct
 * connection to the server is under way on the same socket, without us.
 */
enum conn_state conversion_progress(struct conn *conn, int fd);

/*
 * conversion_wait() - as a blocking connect(2) waits
 * Returns 0 when @conn is no longer pending, else -errno: -EINTR (a signal handler
 * without SA_RESTART ran), -EINPROGRESS (SO_SNDTIMEO is over). The connection goes
 * on after both, as it does in the kernel.
 */
int conversion_wait(struct conn *conn, int fd);

/* What to wait for in poll(2) while @conn is pending. */
short conversion_poll_events(const struct conn *conn);

/* The error of a FAILED conn as SO_ERROR has it: told once, positive, then 0. */
int conversion_take_error(struct conn *conn);

#endif
