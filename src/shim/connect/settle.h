/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settle.h - how an attempt to reach a server ends, and what follows from it
 *
 * All of these are for a claimed conn, never block, and return the phase to release it in.
 */
#ifndef SHIM_SETTLE_H
#define SHIM_SETTLE_H

#include "client/handshake.h"
#include "client/paths.h"
#include "client/settings.h"
#include "shim/socket/conn.h"

struct tcp_info;

/* @settings: kept, must stay. */
void settle_init(const struct settings *settings);

/*
 * settle_let_go() - the socket is the application's from now on
 * Its own options and epoll registrations are in force again; a shutdown() that it called before is made up for.
 */
void settle_let_go(struct conn *conn, int fd);

/*
 * settle_anew() - Multipath TCP was lost on the way to the converter, or would be
 * The same converter is asked anew by @ride, as long as the application has done nothing with the connection
 * that can't be done again; it fails otherwise, since a socket that has fallen back to TCP loses bytes.
 */
enum conn_phase settle_anew(struct conn *conn, int fd, enum ride ride);

/* Resets the connection and asks the same converter again, on the same descriptor, as the attempt says by now. */
enum conn_phase settle_again(struct conn *conn, int fd);
/* Begins anew on another path, or on the same one without data in the SYN: @what is what attempt_look() has said. */
enum conn_phase settle_path(struct conn *conn, int fd, enum paths_do what);

/* Connects over TCP to a server that was asked itself over Multipath TCP and doesn't speak it. */
enum conn_phase settle_bypass_lost(struct conn *conn, int fd);

/* Takes the complete response, @told, off the stream: the server was reached. */
enum conn_phase settle_done(struct conn *conn, int fd, const struct handshake_step *told);

/*
 * settle_blind() - a blind request has come to nothing
 * It is made again by @ride, and not blindly, where the application hasn't used the connection and waits for it now (unattended.h). If
 * it was reset or refused when CONVERT_TIMEOUT is over, or another socket can't take its place, the connection is made directly. Otherwise
 * the application has @error, and the next request is one by which a failure of the converter's shows as one.
 */
enum conn_phase settle_blind(struct conn *conn, int fd, enum ride ride, int error, const char *reason);

/*
 * settle_unfinished() - the handshake isn't over, and nobody will be there to go on with it
 * Connects directly, or fails, where that is what the user wants.
 */
enum conn_phase settle_unfinished(struct conn *conn, int fd);

/*
 * settle_silent() - the server was reached, as the SYN+ACK has said, and no response follows: the connection is the application's
 * @info: what the kernel has told of the connection since
 */
enum conn_phase settle_silent(struct conn *conn, int fd, const struct tcp_info *info);

/* Tells the application that it is connected, as the SYN+ACK has said; the response is still to come. @info: likewise */
enum conn_phase settle_confirmed(struct conn *conn, int fd, const struct tcp_info *info);

/* Disconnects a socket whose server was not reached: @error is the errno for the application. */
enum conn_phase settle_failed(struct conn *conn, int fd, int error, const char *reason);

/*
 * settle_unreached() - the connection ends after the application was told of it
 * That is what a server looks like that is gone. @told: what came in the place of the response.
 */
enum conn_phase settle_unreached(struct conn *conn, int fd, const struct handshake_step *told);

/* Asks the next converter, or connects without one. @error and @reason: why the last one failed, for fail-closed. */
enum conn_phase settle_go_on(struct conn *conn, int fd, int error, const char *reason);

/* Goes on without a converter that has failed, as @why says, and leaves it alone for a while. */
enum conn_phase settle_converter_failed(struct conn *conn, int fd, const struct handshake_step *why);

/* Goes on after the kernel has reported @error, a positive errno, for the socket: the request may have a remedy, too. */
enum conn_phase settle_on_error(struct conn *conn, int fd, int error);

/* The server was reached, as the SYN+ACK has said, by the request of another process. */
enum conn_phase settle_followed(struct conn *conn, int fd);

/*
 * settle_severed() - have nothing more to do with a handshake that is another process's
 * Its socket stays as it is. Here an unconnected one takes its place, which has ECONNREFUSED to tell.
 */
enum conn_phase settle_severed(struct conn *conn);

#endif
