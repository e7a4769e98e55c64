/* SPDX-License-Identifier: BSD-3-Clause */
/* conversion.h - from connect() to the end of the Convert response, on one socket */
#ifndef SHIM_CONVERSION_H
#define SHIM_CONVERSION_H

#include "client/settings.h"
#include "shim/socket/conn.h"

#include <sys/uio.h>

/* @settings: kept, must stay. Once, before any other call. */
void conversion_init(const struct settings *settings);

/* Are connections converted at all in this process? */
bool conversion_enabled(void);

/* Does the user, or the application by TCP_FASTOPEN_CONNECT, want early data from @fd? */
bool conversion_wants_early_data(int fd);

/*
 * conversion_start() - ask a converter for @server instead of connecting to it
 * A server that is known to speak Multipath TCP is asked itself.
 * @conn: in CONN_IDLE, of @fd. Never blocks, but for the resolver if CONVERT_ADDR has a name.
 * @early_data: the SYN may wait for the application's first bytes
 * Returns 0 with @conn pending or HELD (or further); CONVERSION_DIRECT with nothing changed if this
 * connection is to be made directly, the log says why; or -errno if it may not be
 * (settings.fail_closed).
 */
#define CONVERSION_DIRECT 1
int conversion_start(struct conn *conn, int fd, const union sockaddr_ip *server, bool early_data);

/*
 * conversion_send_early() - take the first bytes of an application that doesn't wait for the server
 * It was told that it is connected, or waits where the shim can't see it. The SYN of a HELD conn goes with them. If the SYN
 * went before, since another thread has waited, they follow the request: what looks like a connected socket takes some output.
 * @went: set if this call has let the SYN go
 * Returns how many of them were taken; 0 if it is too late, or they can't be read.
 */
size_t conversion_send_early(struct conn *conn, int fd, const struct iovec *iov, size_t count, bool *went);

/* Would conversion_send_early() take any bytes? */
bool conversion_takes_early(const struct conn *conn);

/* Sends the SYN of a HELD conn without early data, since the application waits for the server to speak first. */
void conversion_send_held(struct conn *conn, int fd);

/* Does the same for all HELD conns that the application may be waiting for in @epfd (-1: anywhere). */
void conversion_send_all_held(int epfd);

/* Has something happened on the socket that conversion_progress() would act upon? */
bool conversion_can_step(const struct conn *conn, int fd);

/*
 * conversion_progress() - take every step that is possible without waiting
 * Returns the phase reached. A step that another thread is taking is waited for, since only after it can be said what
 * the application may see or send. CONN_DIRECT: the converter has failed, and a direct connection to the server is under
 * way on the same socket, which is the kernel's.
 */
enum conn_phase conversion_progress(struct conn *conn, int fd);

/*
 * conversion_wait() - wait as a blocking connect(2) does
 * Returns 0 when @conn is no longer pending, else -errno: -EINTR (a signal handler
 * without SA_RESTART ran), -EINPROGRESS (SO_SNDTIMEO is over). The connection goes
 * on after both, as it does in the kernel.
 */
int conversion_wait(struct conn *conn, int fd);

/*
 * conversion_wait_for() - wait as a blocking recv(2) or send(2) does
 * @option: SO_RCVTIMEO or SO_SNDTIMEO, which is -EAGAIN when it is over. Input waits for the response of
 * a CONFIRMED conn as well.
 */
int conversion_wait_for(struct conn *conn, int fd, int option);

/*
 * conversion_finish() - wait for the end of the handshake before somebody who doesn't know of it gets @fd
 * Waits for @ms milliseconds at most, whatever the mode of the descriptor.
 */
#define CONVERSION_FINISH_MS 5000
void conversion_finish(struct conn *conn, int fd, int ms);

/*
 * conversion_finish_all() - wait for the end of those handshakes that @concerns chooses, of all together
 * None is waited for once its connect() is @ms milliseconds ago, so that one which takes its time doesn't hold up every call; and no name
 * is resolved. Signals and cancellation wait meanwhile.
 */
void conversion_finish_all(bool (*concerns)(const struct conn *conn), unsigned int ms);

/* conversion_before_fork() - finish what can't be followed by other processes, within CONVERT_TIMEOUT, and note the rest: follow.c */
void conversion_before_fork(void);

/*
 * conversion_conclude() - have no handshake any more: nobody will be there to go on with it
 * Waits for CONVERT_TIMEOUT at most, and then connects directly. conversion_conclude_all(): those that @concerns chooses, together.
 * conversion_conclude_now(): waits for a direct connection, too, for as long again.
 */
void conversion_conclude(struct conn *conn, int fd);
void conversion_conclude_now(struct conn *conn, int fd);
void conversion_conclude_all(bool (*concerns)(const struct conn *conn));

/*
 * conversion_abandoned() - the application closes a @conn that its ring may use, before anything has come
 * If it has waited for longer than CONVERT_TIMEOUT the converter has to prove itself again: a blind request can't tell its
 * silence from a server's.
 */
void conversion_abandoned(const struct conn *conn);

/* Gives a BYPASSED connection to the application, without waiting for the server's first bytes. */
void conversion_let_go(struct conn *conn, int fd);

/* Returns the events to wait for in poll(2) while @conn is pending. */
short conversion_poll_events(const struct conn *conn);

/* Has every conn whose converter has been silent for too long go on without it. */
void conversion_expire(void);

#endif
