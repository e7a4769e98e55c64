/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settle.h - how an attempt to reach a server ends, and what follows from it
 *
 * All of these are for a claimed conn, never block, and return the phase to release it in.
 */
#ifndef SHIM_SETTLE_H
#define SHIM_SETTLE_H

#include "client/handshake.h"
#include "client/settings.h"
#include "shim/socket/conn.h"
#include "shim/connect/others.h"

/* @settings: kept, must stay. */
void settle_init(const struct settings *settings);

/* The connection is the application's from now on, but for what it did too early. */
void settle_let_go(struct conn *conn, int fd);

/*
 * settle_anew() - Multipath TCP was lost on the way to the converter, or would be
 * The same converter is asked anew by @ride, as long as the application has done nothing with the connection
 * that can't be done again; it fails otherwise, since a socket that has fallen back to TCP loses bytes.
 */
enum conn_phase settle_anew(struct conn *conn, int fd, enum ride ride);

/* The server itself was asked over Multipath TCP, which it turns out not to speak: over TCP, then. */
enum conn_phase settle_bypass_lost(struct conn *conn, int fd);

/* The response, @told, is complete: it is taken off the stream. */
enum conn_phase settle_done(struct conn *conn, int fd, const struct handshake_step *told);

/* The SYN+ACK has said that the server was reached; the response is still to come. */
enum conn_phase settle_confirmed(struct conn *conn, int fd);

/* The server was not reached: @error is the application's errno. */
enum conn_phase settle_failed(struct conn *conn, int fd, int error, const char *reason);

/*
 * settle_unreached() - the connection ends after the application was told of it
 * That is what a server looks like that is gone. @told: what came in the place of the response.
 */
enum conn_phase settle_unreached(struct conn *conn, int fd, const struct handshake_step *told);

/* The next converter, or none: @error and @reason are the last one's. */
enum conn_phase settle_go_on(struct conn *conn, int fd, int error, const char *reason);

/* The converter is of no use: it is left alone, and on the same socket it goes on without it. */
enum conn_phase settle_converter_failed(struct conn *conn, int fd, const struct handshake_step *why);

/* The kernel says @error of the socket, positive. */
enum conn_phase settle_on_error(struct conn *conn, int fd, int error);

/* Another process goes on with a socket of its own, and so does this one: with a direct connection. */
enum conn_phase settle_moved(struct conn *conn, int fd);

/* Another process was first: what is left is to see it as it is. */
enum conn_phase settle_as_told(struct conn *conn, int fd, enum others_news news);

#endif
