/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.h - what the shim knows of the application's sockets
 *
 * A conn is one socket, found by any descriptor that refers to it. Descriptors
 * map to conns through a table of slots; dup() makes a second slot point to the
 * same conn. SO_COOKIE, the kernel's unique name of a socket, tells whether a slot
 * is still about the socket that now has its number, however the old one was closed.
 *
 * There is no lock. A conn's state is one atomic word; whoever moves it to CLAIMED by
 * compare-and-swap, with all signals blocked, is alone in doing the (non-blocking)
 * system calls of the next step, and others wait for the few microseconds that they
 * take. Conns and slots are never given back to the
 * system, so that a stale pointer is at worst a conn whose cookie doesn't match.
 */
#ifndef SHIM_CONN_H
#define SHIM_CONN_H

#include "common/sockaddr.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>

enum conn_state {
	CONN_FREE,    /* not in use */
	CONN_IDLE,    /* made by socket(), not connected: epoll registrations are noted */
	CONN_DIRECT,  /* the kernel connects it, or has: nothing is asked of us any more */
	CONN_PENDING, /* the converter was asked; the application sees a connection in SYN_SENT */
	CONN_CLAIMED, /* as PENDING; one thread is taking the next step */
	CONN_DONE,    /* the server was reached: only the peer's address is remembered */
	CONN_FAILED,  /* conn.error waits for SO_ERROR or the first I/O, as the kernel's sk_err */
	CONN_STATE_COUNT
};

#define CONN_WATCHES_MAX 4

/*
 * An epoll registration as the application made it. Written with the conn claimed, or before it
 * is pending; read by any thread that waits, to find out whose an event is: hence atomic.
 */
struct conn_watch {
	_Atomic int epfd;    /* -1: unused */
	_Atomic int fd;      /* the descriptor that was registered */
	_Atomic bool masked; /* the kernel has our events instead of these */
	_Atomic uint32_t events;
	_Atomic uint64_t data; /* epoll_data_t.u64 */
};

struct conn {
	_Atomic uint32_t state; /* enum conn_state */
	_Atomic uint32_t refs;  /* slots that point here */
	_Atomic uint32_t next_free;
	uint32_t index;          /* in the pool, for ever */
	_Atomic int error;       /* positive errno: why FAILED, 0 once it was told; or seen while PENDING */
	_Atomic uint64_t cookie; /* SO_COOKIE */
	_Atomic int fd;          /* PENDING: the descriptor that connect() was called with */
	union sockaddr_ip peer;  /* the server, as the application named it */
	bool connect_told;       /* CONN_DONE: a connect() has returned 0 (then EISCONN) */
	bool wrote;              /* PENDING: the application has sent bytes behind the request */
	bool syn_data;           /* the request was put into the SYN */
	uint8_t converter;       /* index of the converter that was asked */
	uint8_t cookie_number;   /* of the cookie in the request: converters_cookie() */
	bool cookie_asked;       /* the converter wanted a cookie once: not a second time */
	union sockaddr_ip converter_addr; /* where the SYN went */
	uint16_t request_sent;   /* bytes of the request that the kernel has taken */
	_Atomic bool unseen;      /* PENDING: counted in conn_unseen */
	_Atomic bool want_output; /* PENDING: a part of the request is still unsent */
	int rcvlowat;            /* the application's SO_RCVLOWAT while ours is set; 0: not set */
	struct timespec started; /* CLOCK_MONOTONIC, connect() */
	struct conn_watch watches[CONN_WATCHES_MAX];
};

/*
 * How many conns need more of a hook than the next function: those that are
 * PENDING, CLAIMED or FAILED. Zero is the fast path of every hook.
 */
extern _Atomic uint32_t conn_attention;

/*
 * How many PENDING conns were left to themselves by a non-blocking connect() and have no epoll
 * registration that we know of. Whoever waits with epoll while there are any looks after them,
 * since theirs may have gone past us (a raw system call, io_uring).
 */
extern _Atomic uint32_t conn_unseen;

static inline bool conn_none_attentive(void)
{
	return atomic_load_explicit(&conn_attention, memory_order_acquire) == 0;
}

static inline enum conn_state conn_state(const struct conn *conn)
{
	return (enum conn_state)atomic_load_explicit(&conn->state, memory_order_acquire);
}

static inline bool conn_is_pending(const struct conn *conn)
{
	enum conn_state state = conn_state(conn);

	return state == CONN_PENDING || state == CONN_CLAIMED;
}

/*
 * conn_add() - a conn in CONN_IDLE for the new socket @fd
 * Whatever the slot knew of an older socket with this number is forgotten.
 * Returns NULL if memory or conns ran out: the socket then stays unconverted.
 */
struct conn *conn_add(int fd);

/* conn_of() - the conn of @fd in any state, its cookie verified; NULL if there is none. */
struct conn *conn_of(int fd);

/* conn_attentive() - as conn_of(), but only if PENDING, CLAIMED or FAILED: cheap if none is. */
struct conn *conn_attentive(int fd);

/* conn_unsettled() - as conn_of(), but only if IDLE, PENDING or CLAIMED: cheap once connected. */
struct conn *conn_unsettled(int fd);

/* conn_maybe() - is there a slot for @fd? No system call: a pre-check before conn_of(). */
bool conn_maybe(int fd);

/* The slot of @to refers to the same conn as @from's from now on, or to none. */
void conn_dup(int from, int to);

/* @fd is being closed, or overwritten. */
void conn_forget(int fd);

/* The same for all descriptors from @first to @last. */
void conn_forget_range(unsigned int first, unsigned int last);

/*
 * conn_move() - from one state to another, unless another thread was first
 * Returns whether @conn was in @from. Keeps conn_attention right.
 */
bool conn_move(struct conn *conn, enum conn_state from, enum conn_state to);

/* Counts @conn in conn_unseen, or no more. A conn that is no longer pending is not counted. */
void conn_mark_unseen(struct conn *conn, bool unseen);

/* What the thread was before it claimed a conn. */
struct conn_claim {
	sigset_t mask;
	int cancel_state;
};

/*
 * conn_claim(), conn_release() - be the only one to take the next step
 * Signals are blocked and cancellation is off in between, and only non-blocking
 * system calls are allowed. conn_claim() moves it from @from, PENDING or IDLE, at once to
 * CLAIMED: nobody sees it pending before its SYN was sent. It returns false, with nothing
 * changed, if the conn is neither there nor claimed (somebody else has gone on with it).
 * conn_release() moves it to @state: PENDING, DONE, FAILED, DIRECT or IDLE.
 */
bool conn_claim(struct conn *conn, enum conn_state from, struct conn_claim *claim);
void conn_release(struct conn *conn, enum conn_state state, const struct conn_claim *claim);

/* The state once no other thread is in the middle of a step. */
enum conn_state conn_state_unclaimed(const struct conn *conn);

/* The conn with this index in whatever state, for tables that store indices. */
struct conn *conn_by_index(uint32_t index);

/* Calls @visit for each pending conn until it returns false. */
void conn_each_pending(bool (*visit)(struct conn *conn, void *arg), void *arg);

#endif
