/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared_handshake.h - unfinished handshakes that other processes have, too
 *
 * After a fork(), and when a socket was handed to another program, several processes know of
 * the same handshake. What one of them has done the others learn from the kernel,
 * and only one at a time takes a step.
 */
#ifndef SHIM_SHARED_HANDSHAKE_H
#define SHIM_SHARED_HANDSHAKE_H

#include "common/clock.h"
#include "shim/socket/conn.h"

/* What has become of a pending socket in the hands of another process. */
enum shared_handshake_news {
	SHARED_HANDSHAKE_PENDING, /* nothing: the next step may be taken here */
	SHARED_HANDSHAKE_DONE,    /* the response was taken off the stream */
	SHARED_HANDSHAKE_DIRECT,  /* it was connected to the server without a converter */
	SHARED_HANDSHAKE_FAILED,  /* it was given up and disconnected */
	SHARED_HANDSHAKE_MOVED,   /* it was given up for another socket, which the other process has alone */
	SHARED_HANDSHAKE_LEFT,    /* it was disconnected by a process that ended before it could connect it again */
};

/*
 * shared_handshake_lock(), shared_handshake_unlock() - keep other processes from taking a step on the socket
 * Returns false, after a millisecond, if one is in the middle of one. The kernel unlocks for a
 * process that ends.
 */
bool shared_handshake_lock(int fd);
void shared_handshake_unlock(int fd);

/*
 * shared_handshake_look() - ask the kernel what another process has done to the socket
 * Only with the lock does the answer stay true, so that a step can rest on it.
 */
enum shared_handshake_news shared_handshake_look(const struct conn *conn, int fd);

/* Has another process sent a new SYN since the last shared_handshake_note(), while the connection is still pending? */
bool shared_handshake_is_new(const struct conn *conn, int fd);

/* Is the SYN still held back, waiting for early data? */
bool shared_handshake_is_held(int fd);

/* Has no byte of a request been sent yet, not even in the SYN? */
bool shared_handshake_has_sent_nothing(int fd);

/*
 * shared_handshake_move() - tell the other processes that this one goes on over another socket, which it has alone
 * To be called once the old one is disconnected, and before its place is taken. Each of the other processes
 * has to begin one of its own: SHARED_HANDSHAKE_MOVED.
 */
void shared_handshake_move(int fd);

/*
 * shared_handshake_give() - another process is about to get @fd, a descriptor of the socket of @conn
 * Also in a vfork() child, with the parent's conn.
 */
void shared_handshake_give(struct conn *conn, int fd);

/* Does what shared_handshake_give() does for all unfinished conns, before a fork(). */
void shared_handshake_give_all(void);

/* Returns the local port in network byte order, 0 if there is none. It tells one SYN of a socket from the next. */
uint16_t shared_handshake_local_port(int fd);

/* Brings attempt.message_sent up to date, and notes CONN_WROTE if all of it was sent, and more behind it. */
void shared_handshake_follow(struct conn *conn, int fd);

/* Tells the other processes that the socket was disconnected for good: they see SHARED_HANDSHAKE_FAILED from now on. */
void shared_handshake_give_up(int fd);

/* Notes at the end of a step which SYN it was about: another process that sends one from now on is noticed. */
void shared_handshake_note(struct conn *conn, int fd);

/*
 * A process that gets the descriptor may not know what to do with the response. Then its giver waits for the end of the handshake,
 * for so many milliseconds at most; as a rule it takes one round trip.
 */
#define SHARED_HANDSHAKE_FINISH_MS 5000

/*
 * What another process does to a shared socket wakes nobody who waits for it here, so waits
 * are cut into stretches. shared_handshake_stretch(): how much of @left_ms (-1: for ever) to wait at once.
 */
#define SHARED_HANDSHAKE_STRETCH_NS (20 * CLOCK_NS_PER_MS)
int shared_handshake_stretch(const struct conn *conn, int left_ms);

#endif
