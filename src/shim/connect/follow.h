/* SPDX-License-Identifier: BSD-3-Clause */
/* follow.h - silent requests whose end other processes learn, too */
#ifndef SHIM_FOLLOW_H
#define SHIM_FOLLOW_H

#include "shim/socket/conn.h"

/* Does a silent request get a response, by the kernel's facts? */
enum silence {
	SILENCE_NONE, /* it does, like any request that isn't silent */
	SILENCE_OPEN, /* the SYN+ACK will show it */
	SILENCE_KEPT, /* it doesn't: the stream is the server's */
};

/* Has @conn, which is claimed, sent the whole of a silent request that waits for its SYN+ACK? */
bool follow_is_silent(const struct conn *conn);

/* Can another process that has the socket follow it? It can if the request is silent, and follow_note() has noted its SYN. */
bool follow_is_possible(const struct conn *conn);

/* Notes the SYN of @conn that others may follow. */
void follow_note(struct conn *conn, int fd);

/*
 * follow_look() - return the kernel's facts about a silent request that this process or another one has sent
 * SILENCE_NONE: it had another end, or was begun anew. Works in a vfork() child as well.
 */
enum silence follow_look(const struct conn *conn, int fd);

/* follow_adopt() - follow a silent request that another program has sent: sets its deadlines */
void follow_adopt(struct conn *conn);

/* Takes a step of a claimed conn that follows another process. Returns the phase to release it in. */
enum conn_phase follow_step(struct conn *conn, int fd);

/* follow_in_child() - after fork() and conn_repair_in_child(): follow the handshakes that can be followed, and give the others up */
void follow_in_child(void);

#endif
