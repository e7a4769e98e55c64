/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * others.h - unfinished handshakes that other processes have, too
 *
 * After a fork(), and when a socket was handed to another program, several processes know of
 * the same handshake. What one of them has done the others learn from the kernel,
 * and only one at a time takes a step.
 */
#ifndef SHIM_OTHERS_H
#define SHIM_OTHERS_H

#include "common/clock.h"
#include "shim/socket/conn.h"

/* What has become of a pending socket in the hands of another process. */
enum others_news {
	OTHERS_PENDING, /* nothing: the next step may be taken here */
	OTHERS_DONE,    /* the response was taken off the stream */
	OTHERS_DIRECT,  /* it was connected to the server without a converter */
	OTHERS_FAILED,  /* it was given up and disconnected */
	OTHERS_MOVED,   /* it was given up for another socket, which the other process has alone */
	OTHERS_LEFT,    /* it was disconnected by a process that ended before it could connect it again */
};

/*
 * others_lock(), others_unlock() - keep other processes from taking a step on the socket
 * Returns false, after a millisecond, if one is in the middle of one. The kernel unlocks for a
 * process that ends.
 */
bool others_lock(int fd);
void others_unlock(int fd);

/* others_look() - without the lock no more than a glance, which a step must not rest on */
enum others_news others_look(const struct conn *conn, int fd);

/* Still pending, but has another process begun anew since the last others_note()? */
bool others_is_new(const struct conn *conn, int fd);

/* Does the SYN still wait for early data? */
bool others_is_held(int fd);

/* Has no byte of a request left for the converter yet, in the SYN neither? */
bool others_has_sent_nothing(int fd);

/*
 * others_move() - the connection goes on over another socket, which this process has alone
 * To be called once the old one is disconnected, and before its place is taken. Each of the other processes
 * has to begin one of its own: OTHERS_MOVED.
 */
void others_move(int fd);

/*
 * others_give() - another process is about to get @fd, a descriptor of the socket of @conn
 * Also in a vfork() child, with the parent's conn.
 */
void others_give(struct conn *conn, int fd);

/* The same for all that are not finished yet: before a fork(). */
void others_give_all(void);

/* The local port, in network byte order; 0: none. It tells one SYN of a socket from the next. */
uint16_t others_local_port(int fd);

/* Brings attempt.message_sent up to date, and notes CONN_WROTE if all of it was sent, and more behind it. */
void others_follow(struct conn *conn, int fd);

/* The socket was disconnected for good: OTHERS_FAILED from now on. */
void others_give_up(int fd);

/* Notes at the end of a step which SYN it was about: another process that sends one from now on is noticed. */
void others_note(struct conn *conn, int fd);

/*
 * How long the giver of a descriptor may be kept until the handshake is over, where who gets it
 * wouldn't know what to do with the response. As a rule it is a round trip.
 */
#define OTHERS_FINISH_MS 5000

/*
 * What another process does to a shared socket wakes nobody who waits for it here, so waits
 * are cut into stretches. others_stretch(): how much of @left_ms (-1: for ever) to wait at once.
 */
#define OTHERS_STRETCH_NS (20 * CLOCK_NS_PER_MS)
int others_stretch(const struct conn *conn, int left_ms);

#endif
