/* SPDX-License-Identifier: BSD-3-Clause */
/* attempt.h - ask one converter after the other (attempt_choice.c), and send what is to be sent (attempt.c) */
#ifndef SHIM_ATTEMPT_H
#define SHIM_ATTEMPT_H

#include "client/handshake.h"
#include "client/paths.h"
#include "client/policy.h"
#include "shim/socket/conn.h"

struct tcp_info;

/* @settings: kept, must stay. */
void attempt_init(const struct settings *settings);

/* Why no converter could be asked. */
struct attempt_refusal {
	enum policy_verdict verdict; /* POLICY_CONVERT: it should have been one */
	int error;                   /* positive: of the last one that was tried here */
	const char *reason;          /* static */
};

/*
 * attempt_resolve() - look for a converter for @server, resolving names where that is due
 * @tried: a bit for each that is out of the question
 * The only function here that may block, so that @conn must not be claimed. Returns whether there is a converter.
 */
bool attempt_resolve(const struct conn *conn, int fd, const union sockaddr_ip *server, uint32_t tried,
		     struct attempt_refusal *refusal);

/*
 * attempt_next() - ask the next converter, in order, that can be asked
 * @hold: let the SYN wait for the application's first bytes, if the kernel can
 * Returns the phase for conn_release(): CONN_HELD, CONN_SYN_SENT or CONN_ASKED; CONN_RESOLVING if a name is to be resolved
 * first; or CONN_IDLE with @refusal set if there is none.
 *
 * This and all below: @conn is claimed, nothing blocks.
 */
enum conn_phase attempt_next(struct conn *conn, int fd, bool hold, struct attempt_refusal *refusal);

/* Asks the same converter again. Returns 0 or -errno. */
int attempt_again(struct conn *conn, int fd);

/* Lets a held SYN go, with request and early data. Returns 0 or -errno. */
int attempt_send_held(struct conn *conn, int fd);

/* Sends the rest of request and early data, once the handshake allows. Returns 0, -EAGAIN or -errno. */
int attempt_send_rest(struct conn *conn, int fd);

/*
 * attempt_anew() - ask the same converter in a safer way, over another socket where that takes one
 * After attempt_disconnect(). The converter's deadline goes on. Returns 0 or -errno.
 */
int attempt_anew(struct conn *conn, int fd, enum ride ride);

/* The attempt is over: what was changed on the socket for it is put back, and nobody looks after its path any more. */
void attempt_end(struct conn *conn, int fd);

/*
 * attempt_look() - look after the path of an unanswered SYN, now that path_look_due()
 * PATHS_MOVE: the attempt has ended, and the next one, by attempt_move() after attempt_disconnect(), will be on another path.
 * PATHS_BEHIND: the path loses SYNs that have data. Else there is nothing to be done.
 */
enum paths_do attempt_look(struct conn *conn, int fd);
int attempt_move(struct conn *conn, int fd);

/*
 * attempt_leave() - the network has refused the SYN with @error: is there another one?
 * Returns whether there is: as PATHS_MOVE of attempt_look().
 */
bool attempt_leave(struct conn *conn, int fd, int error);

/*
 * attempt_bypass() - connect to the server itself over Multipath TCP, which it is known to speak
 * Returns 0 with @conn to be in CONN_BYPASS, 1 with nothing sent if that can't be, or -errno.
 */
int attempt_bypass(struct conn *conn, int fd);

/*
 * attempt_directly() - connect to the server itself, over plain TCP
 * If early data is to be sent, or the application takes itself for connected, @conn goes on in CONN_EARLY_DIRECT, with
 * attempt.want_output set. Otherwise the socket is the kernel's. Returns 0 or -errno.
 */
int attempt_directly(struct conn *conn, int fd);

/* Disconnects the socket, by a reset if it is connected, so that it can be connected again, with nothing left of the attempt's errors. */
void attempt_disconnect(int fd);

/* Will there be a response to the request of @conn? */
enum silence {
	SILENCE_NONE, /* as to any request that isn't silent */
	SILENCE_OPEN, /* the SYN+ACK will say */
	SILENCE_KEPT, /* no: the stream is the server's */
};

/* attempt_silence() - @info: what tcpinfo_of() says now */
enum silence attempt_silence(const struct conn *conn, const struct tcp_info *info);

/* attempt_adopt() - follow a silent request that another program has sent: sets how long it is waited for */
void attempt_adopt(struct conn *conn);

/* Returns what the request of @conn says. */
struct handshake_ask attempt_ask_of(const struct conn *conn);

#endif
