/* SPDX-License-Identifier: BSD-3-Clause */
/* follow.h - silent requests that other processes learn the end of, too */
#ifndef SHIM_FOLLOW_H
#define SHIM_FOLLOW_H

#include "shim/socket/conn.h"

/* Will there be a response to a silent request, as far as the kernel tells? */
enum silence {
	SILENCE_NONE, /* there will, as to any request that isn't silent */
	SILENCE_OPEN, /* the SYN+ACK will say */
	SILENCE_KEPT, /* no: the stream is the server's */
};

/* Is @conn on its way with a silent request, all of which was sent? It is claimed. */
bool follow_is_silent(const struct conn *conn);

/* Can another process that has the socket follow it? So it is if @conn is silent, and noted by follow_note(). */
bool follow_is_possible(const struct conn *conn);

/* Notes which SYN of @conn it is that others may follow. */
void follow_note(struct conn *conn, int fd);

/*
 * follow_look() - what the kernel says of a silent request that another process has sent, or that this one has sent
 * SILENCE_NONE: it has come to another end, or was begun anew. In a vfork() child as well.
 */
enum silence follow_look(const struct conn *conn, int fd);

/* follow_adopt() - follow a silent request that another program has sent: sets for how long it is waited for */
void follow_adopt(struct conn *conn);

/* Takes a step of a claimed conn that follows another process. Returns the phase to release it in. */
enum conn_phase follow_step(struct conn *conn, int fd);

/* follow_in_child() - after fork() and conn_repair_in_child(): follow what can be, and have nothing to do with the rest */
void follow_in_child(void);

#endif
