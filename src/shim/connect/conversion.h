/* SPDX-License-Identifier: BSD-3-Clause */
/* conversion.h - from connect() to the end of the Convert response, on one socket */
#ifndef SHIM_CONVERSION_H
#define SHIM_CONVERSION_H

#include "client/settings.h"
#include "shim/socket/conn.h"

#include <sys/uio.h>

/* Call it once, before all other functions. @settings: must stay */
void conversion_init(const struct settings *settings);

/* Does this process convert connections at all? */
bool conversion_enabled(void);

/*
 * conversion_start() - ask a converter for @server instead of connecting to it
 * If the server is known to speak Multipath TCP, asks the server itself. Blocks for the resolver if CONVERT_ADDR has a name; and up to
 * CONVERT_TIMEOUT for the handshake if a ring may use the connection and the request isn't blind, or for signals (conn.call.wants_signals).
 * @conn: the conn of @fd, in CONN_IDLE
 * @fastopen: MSG_FASTOPEN. With it, CONVERT_EARLY_DATA or TCP_FASTOPEN_CONNECT, the SYN may wait for the application's first bytes
 * Returns 0 with @conn pending or DEFERRED (or further: DIRECT or FAILED if it connects directly a socket that an attempt has changed);
 * CONVERSION_DIRECT with @conn IDLE if the caller must connect directly, for a reason that the log has; or -errno if a direct connection
 * isn't allowed (settings.fail_closed, CONVERT_PATHS) or none is (rights_ask()).
 */
#define CONVERSION_DIRECT 1
int conversion_start(struct conn *conn, int fd, const union sockaddr_ip *server, bool fastopen);

/*
 * conversion_send_early() - take the first bytes of an application that doesn't wait for the server
 * The application was told that it is connected, or it waits where the shim can't see it. The SYN of a DEFERRED conn carries the bytes. If
 * the SYN was sent before, since another thread waits, the bytes follow the request: a socket that looks connected takes some output.
 * @syn_sent: set if this call has sent the SYN
 * Returns the number of bytes taken; 0 if it is too late, or the bytes can't be read.
 */
size_t conversion_send_early(struct conn *conn, int fd, const struct iovec *iov, size_t count, bool *syn_sent);

/* Would conversion_send_early() take any bytes? */
bool conversion_takes_early(const struct conn *conn);

/* Sends the SYN of a DEFERRED conn without early data, since the application waits for the server to speak first. */
void conversion_send_deferred(struct conn *conn, int fd);

/* Does the same for all DEFERRED conns that the application may be waiting for in @epfd (-1: anywhere). */
void conversion_send_all_deferred(int epfd);

/* Has something happened on the socket that conversion_progress() would handle? */
bool conversion_can_step(const struct conn *conn, int fd);

/*
 * conversion_progress() - take all steps that are possible without waiting
 * If another thread takes a step it waits for the end of that, which decides what the application may see or send. Returns the phase
 * reached. CONN_DIRECT: the converter has failed, and the kernel makes a direct connection to the server on the same socket.
 */
enum conn_phase conversion_progress(struct conn *conn, int fd);

/* --- waits: conversion_wait.c --- */

/*
 * conversion_wait() - wait as a blocking connect(2) does
 * Returns 0 when @conn is no longer pending, else -errno: -EINTR (a signal handler without SA_RESTART ran), -EINPROGRESS (SO_SNDTIMEO is
 * over). After both the connection continues, as in the kernel.
 */
int conversion_wait(struct conn *conn, int fd);

/*
 * conversion_wait_for() - wait as a blocking recv(2) or send(2) does
 * @option: SO_RCVTIMEO or SO_SNDTIMEO, which limits the wait: -EAGAIN. Input also waits for the response of a CONFIRMED conn.
 */
int conversion_wait_for(struct conn *conn, int fd, int option);

/*
 * conversion_finish() - wait for the end of the handshake before code that doesn't know of it gets @fd
 * Waits for at most @ms milliseconds, whatever the mode of the descriptor.
 */
#define CONVERSION_FINISH_MS 5000
void conversion_finish(struct conn *conn, int fd, int ms);

/*
 * conversion_finish_all() - wait for the end of all handshakes that @concerns selects, together
 * It waits for each until CONVERT_TIMEOUT after its connect(), so that a slow one doesn't delay each call. It resolves no name. Signals and
 * cancellation are blocked meanwhile.
 */
void conversion_finish_all(bool (*concerns)(const struct conn *conn));

/* --- ends, forks and signals: conversion.c --- */

/* conversion_before_fork() - finish, within CONVERT_TIMEOUT, handshakes that others can't follow, and note the rest (follow.c) */
void conversion_before_fork(void);

/*
 * conversion_conclude() - end the handshake, which nobody could continue later
 * Waits for CONVERT_TIMEOUT at most, and then connects directly. conversion_conclude_all() does so for all that @concerns selects,
 * together. conversion_conclude_now() then waits for the direct connection, for as long again.
 */
void conversion_conclude(struct conn *conn, int fd);
void conversion_conclude_now(struct conn *conn, int fd);
void conversion_conclude_all(bool (*concerns)(const struct conn *conn));

/*
 * conversion_abandoned() - note that the application closes a @conn that its ring may use, before anything has come
 * If it has waited for longer than CONVERT_TIMEOUT, the converter must prove itself again: a blind request doesn't show whether the
 * converter or the server is silent.
 */
void conversion_abandoned(const struct conn *conn);

/*
 * conversion_before_signals() - the application is about to ask for signals about @fd (O_ASYNC)
 * Multipath TCP sends none when it is connected. So a pending connection that the application doesn't use yet begins anew, directly, unless
 * direct connections aren't allowed.
 */
void conversion_before_signals(int fd);

/* Gives a BYPASSED connection to the application, without waiting for the server's first bytes. */
void conversion_hand_over(struct conn *conn, int fd);

/* Returns the events to wait for in poll(2) while @conn is pending. */
short conversion_poll_events(const struct conn *conn);

/* Takes the next step of each pending conn whose deadline is over: conn_look_is_due(). */
void conversion_look(void);

#endif
