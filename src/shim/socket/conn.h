/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.h - what the shim knows of the application's sockets
 *
 * A conn is one socket, found by any descriptor that refers to it. Descriptors
 * map to conns through a table of slots; dup() makes a second slot point to the
 * same conn. SO_COOKIE, the kernel's unique name of a socket, tells whether a slot
 * is still about the socket that now has its number, however the old one was closed.
 *
 * There is no lock. What has become of a connection is one atomic word: its phase (phase.h), what the application has been told
 * and has done (enum conn_note), and a bit that says that a thread has claimed it. Only that thread may change the phase,
 * the call and the attempt; it has all signals blocked and does a few system calls that don't block, while others wait for
 * the microseconds that these take. A phase that nobody is to take a step from (IDLE, DONE, DIRECT, FAILED, DISSOLVED) may be
 * left by conn_move() without a claim.
 *
 * Threads without the claim, such as those in poll(), look at the word, and at what is atomic in struct conn. They may read
 * the call as well, which is written in STARTING only, when nobody has a reason to.
 *
 * Conns and slots are never given back to the system, so that a stale pointer is at worst a conn whose cookie doesn't match.
 */
#ifndef SHIM_CONN_H
#define SHIM_CONN_H

#include "engine/dial.h"
#include "shim/socket/early.h"
#include "shim/socket/phase.h"
#include "shim/system/waiting.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* What passes between the application and a connection, beside the phase. All of it is forgotten in IDLE. */
enum conn_note {
	CONN_TOLD_WRITABLE = 1 << 9,   /* an epoll_wait() past the hooks may have said so before the server was reached */
	CONN_TOLD_CONNECTED = 1 << 10, /* a connect() has returned 0, or early data was taken: the next connect() is EISCONN */
	CONN_WROTE = 1 << 11,          /* the application has sent bytes of which there is no copy: nobody else can be asked */
	CONN_TAKEN_BACK = 1 << 12,     /* ring_may_use is set: it was begun anew, or is about to be closed: not once more */
};

#define CONN_PHASE_MASK 0xffu
#define CONN_CLAIMED 0x100u
#define CONN_NOTES (CONN_TOLD_WRITABLE | CONN_TOLD_CONNECTED | CONN_WROTE | CONN_TAKEN_BACK)

#define CONN_WATCHES_MAX 4

/*
 * An epoll registration as the application made it. Written with the conn claimed, or before it
 * is pending; read by any thread that waits, to find out whose an event is: hence atomic.
 */
struct conn_watch {
	_Atomic int epfd;    /* -1: unused */
	_Atomic int fd;      /* the descriptor that was registered */
	_Atomic bool masked; /* the kernel has our events instead of these */
	_Atomic bool listed; /* watch_find() finds it */
	_Atomic bool failed; /* one-shot: the kernel has been asked to report the end of a connection that has failed */
	_Atomic bool adopted; /* it was made past the hooks, and may be changed so: unseen_watches.c */
	_Atomic uint32_t events;
	_Atomic uint64_t data; /* epoll_data_t.u64 */
};

#define CONN_ADVICE_MAX 16
#define CONN_LATE_COUNT 3

/* What the application has set on a socket: options.c. */
struct conn_options {
	_Atomic uint64_t set;        /* a bit for each option in the table there */
	_Atomic uint32_t advised;    /* a bit for each of: */
	int values[CONN_ADVICE_MAX]; /* what MPTCP refuses, and what isn't missed */
	_Atomic uint8_t late[CONN_LATE_COUNT]; /* options_note_late(): 0, or the value and 1 */
};

#define CONN_KEEPALIVE_COUNT 4

/* While our keepalive is in force (liveness.c): what the application has set meanwhile. */
struct conn_keepalive {
	_Atomic bool on;
	_Atomic int kept[CONN_KEEPALIVE_COUNT];
	int interval; /* ours, in seconds */
};

/* What belongs to the socket for as long as it is there, whatever it is connected to. Reset by conn_add(). */
struct conn_socket {
	_Atomic bool mptcp;        /* it is an MPTCP one, in the place of the application's TCP one: replace.c */
	_Atomic bool shown_ipv4;   /* it is an IPv6 one, in the place of the application's IPv4 one */
	_Atomic bool was_mapped;   /* it is an IPv6 one that was connected to a v4-mapped address */
	_Atomic bool shut_for_reading; /* it was shut for reading before it was connected, so that no response could be read */
	_Atomic bool streamed;     /* the C library reads or writes it, or may: hooks/io.c */
	_Atomic bool given;        /* the program that is about to be started gets a descriptor of it */
	_Atomic bool watches_lost; /* it has epoll registrations that can't be made again */
	_Atomic bool suspended;    /* its epoll registrations are taken out: watch_suspend() */
	_Atomic int rcvlowat;      /* the application's SO_RCVLOWAT while ours is set, in bytes; 0: ours isn't set */
	struct conn_keepalive keepalive;
	struct conn_options options;
};

/* What belongs to one connect() call, beside its dial. Reset by conn_begin() in one assignment, under the claim. */
struct conn_call {
	bool bound;              /* the application has bound the socket to an address before */
	bool fastopen_connect;   /* TCP_FASTOPEN_CONNECT is set on the socket */
	bool held;               /* a ring holds the socket itself: it can't be replaced */
	bool uses_io_uring;             /* the process uses io_uring: it may read the stream past us as soon as it is connected */
	bool at_once;            /* connect() returns before the connection, which the ring may use, is there: ring_use_may_return() */
	bool follows;            /* another process has asked the converter, this one learns what becomes of it: follow.c */
	uint8_t shut;            /* shutdown() is to follow early data; bit 0 reading, bit 1 writing */
};

struct conn {
	/* The pool's and the table's. */
	_Atomic uint32_t word;  /* enum conn_phase, enum conn_note, CONN_CLAIMED */
	_Atomic uint32_t refs;  /* slots that point here */
	_Atomic uint32_t next_free;
	uint32_t index;              /* in the pool, for ever */
	_Atomic uint64_t cookie;     /* SO_COOKIE */
	_Atomic uint32_t generation; /* conn_generation() before the socket was made; 0: another process may have it */

	/* What other threads look at without the claim. */
	_Atomic int error;         /* positive errno: why FAILED, 0 once it was told; or seen while pending */
	_Atomic int fd;            /* the descriptor that connect() was called with */
	_Atomic int64_t deadline;  /* CLOCK_MONOTONIC in ns, when the converter is to be looked at; 0: never */
	_Atomic bool hung_up;        /* pending: the connection was begun anew, so that the socket was disconnected by us */
	_Atomic bool ring_may_use;     /* the process uses io_uring, and didn't wait in connect(): it may read before it has asked us anything */
	_Atomic bool unseen;         /* pending: counted in conn_unseen */
	_Atomic uint8_t looks;       /* how often a registration of it was looked for: unseen_watches.c */
	_Atomic uint32_t mode_changes; /* odd: we have set O_NONBLOCK on a blocking socket for a moment; counts when that begins and ends */
	struct early early;          /* the application's first bytes, until the server was reached */
	struct conn_watch watches[CONN_WATCHES_MAX];

	struct conn_socket socket;
	struct conn_call call;
	struct dial dial; /* only the thread that has claimed the conn reads or writes it, but for the server, which is written in STARTING */
	int dial_fd;      /* the descriptor by which a step of that is taken */
};

/* How many conns are in PHASES_ATTENTIVE. Zero is the fast path of every hook. */
extern _Atomic uint32_t conn_attention;

/*
 * How many pending conns a non-blocking connect() has left behind that have no known epoll
 * registration. A wait with epoll looks after them while there are any, since their registrations
 * may have been made past the hooks (by a raw system call, or io_uring).
 */
extern _Atomic uint32_t conn_unseen;

/*
 * conn_linger() - have @look called by hooks, also while no conn is in PHASES_ATTENTIVE; NULL: no longer
 * For what was begun by a connection and is to be looked at when that is settled. Called with whatever the calling hook has claimed.
 */
void conn_linger(void (*look)(void));

/* How many conns are HELD: a wait may have to let their SYNs go first. */
extern _Atomic uint32_t conn_held;

static inline bool conn_none_attentive(void)
{
	return atomic_load_explicit(&conn_attention, memory_order_acquire) == 0;
}

static inline uint32_t conn_word(const struct conn *conn)
{
	return atomic_load_explicit(&conn->word, memory_order_acquire);
}

/* The phase, claimed or not. */
static inline enum conn_phase conn_phase(const struct conn *conn)
{
	return (enum conn_phase)(conn_word(conn) & CONN_PHASE_MASK);
}

/* Is the phase one of @set? */
static inline bool conn_in(const struct conn *conn, uint32_t set)
{
	return phase_in(conn_phase(conn), set);
}

static inline bool conn_is_pending(const struct conn *conn)
{
	return conn_in(conn, PHASES_PENDING);
}

static inline bool conn_is_confirmed(const struct conn *conn)
{
	return conn_in(conn, PHASES_CONFIRMED);
}

static inline bool conn_has_failed(const struct conn *conn)
{
	return conn_in(conn, PHASES_FAILED);
}

/* Is a thread in the middle of a step? */
static inline bool conn_is_claimed(const struct conn *conn)
{
	return conn_word(conn) & CONN_CLAIMED;
}

static inline bool conn_has(const struct conn *conn, enum conn_note note)
{
	return conn_word(conn) & note;
}

/* Notes @note, with or without the claim. */
static inline void conn_note(struct conn *conn, enum conn_note note)
{
	if (!conn_has(conn, note))
		atomic_fetch_or(&conn->word, note);
}

/* May the application use the connection past us before it has asked us anything? */
static inline bool conn_ring_may_use(const struct conn *conn)
{
	return atomic_load(&conn->ring_may_use) && !conn_has(conn, CONN_TAKEN_BACK);
}

/* Returns the server as the application has named it; its family is AF_UNSPEC if there is none yet. */
static inline const union sockaddr_ip *conn_peer(const struct conn *conn)
{
	return &conn->dial.server;
}

/* Returns the phase of a conn that waits for the response. It is claimed. */
static inline enum conn_phase conn_phase_asked(const struct conn *conn)
{
	return dial_wants_output(&conn->dial) ? CONN_SYN_SENT : CONN_ASKED;
}

/*
 * conn_add() - make a conn in CONN_IDLE for the new socket @fd
 * What the slot knew of an older socket with this number is forgotten.
 * Returns NULL if memory or conns ran out: the socket then stays unconverted.
 */
struct conn *conn_add(int fd);

/*
 * conn_begin() - reset @conn for the connect() call @call, which was made with @fd
 * Nothing is left of an earlier call and its attempts. @conn is claimed, or no other thread knows of it.
 */
void conn_begin(struct conn *conn, int fd, struct conn_call call);

/* conn_of() - return the conn of @fd in any phase, with its cookie verified; NULL if there is none */
struct conn *conn_of(int fd);

/* conn_attentive() - as conn_of(), but only if the conn is in PHASES_ATTENTIVE; cheap if none is */
struct conn *conn_attentive(int fd);

/* conn_unsettled() - as conn_of(), but only if the conn is in IDLE or PHASES_UNFINISHED; cheap once it is connected */
struct conn *conn_unsettled(int fd);

/* conn_idle() - as conn_of(), but only if the conn is IDLE; cheap otherwise */
struct conn *conn_idle(int fd);

/* conn_unverified() - return the conn that @fd belonged to when the shim last saw it; no system call verifies it */
struct conn *conn_unverified(int fd);

/*
 * conn_named() - search all conns for the one with this SO_COOKIE; NULL if there is none
 * For a descriptor that a vfork() child has made, which has no slot.
 */
struct conn *conn_named(uint64_t cookie);

/* Returns the next descriptor from @fd on that has a conn, -1 if there is none. */
int conn_next_fd(int fd);

/* Returns SO_COOKIE of @fd, 0 if it is no socket. */
uint64_t conn_cookie(int fd);

/* Is this the process that the tables belong to, and not a vfork() child? */
bool conn_is_owner(void);

/* conn_maybe() - may @fd have a conn? A check without a system call, before conn_of(). */
bool conn_maybe(int fd);

/*
 * conn_is_private() - has no other process a descriptor of the socket?
 * False for a socket that is older than the last fork(), in parent and child, and for one that
 * conn_mark_made() wasn't called for. A vfork() isn't noticed, whose child has no
 * use for a socket that is not connected yet.
 */
bool conn_is_private(const struct conn *conn);

/* Returns a number that changes at each fork(), in parent and child; never 0. */
uint32_t conn_generation(void);

/* Notes that this process has made the socket. @generation: conn_generation() before that */
void conn_mark_made(struct conn *conn, uint32_t generation);

/* Notes that another process has the socket: it isn't private from now on. */
void conn_mark_shared(struct conn *conn);

/* Notes that the descriptors of @conn now refer to another socket, with this SO_COOKIE, which this process has made. */
void conn_renew(struct conn *conn, uint64_t cookie);

/* Notes that the tables belong to this process. To be called once, before any other function here. */
void conn_init(void);

/* What watch.c has called when descriptors of a conn are closed, since epoll registrations depend on them. */
struct conn_observer {
	void (*closing)(struct conn *conn, int fd); /* @fd, one of several descriptors, is no longer one of @conn's */
	void (*gone)(struct conn *conn);            /* its last descriptor is closed */
};

/* conn_observe() - call @observer, which must stay, from now on; once, before conns are made */
void conn_observe(const struct conn_observer *observer);

/* Called before a fork(), and after it in the parent: a socket that another thread makes in between may be in the child, too. */
void conn_note_fork(void);

/*
 * conn_repair_in_child() - make the copied tables the child's own, after a fork()
 * The child has none of the other threads. A step that one of them was taking goes on in the parent alone, so that here no
 * conn is claimed any more; and no conn is waited for in the child yet.
 */
void conn_repair_in_child(void);

/* Has @to, after a dup(), belong to the same conn as @from, or to none if @from has none. */
void conn_dup(int from, int to);

/* Forgets @fd, which is about to be closed, or to become another file's. */
void conn_forget(int fd);

/* Does the same for all descriptors from @first to @last. */
void conn_forget_range(unsigned int first, unsigned int last);

/*
 * conn_move() - leave the phase @from for @to without a claim, unless another thread was first
 * Returns false, with nothing changed, if @conn is claimed or in another phase.
 */
bool conn_move(struct conn *conn, enum conn_phase from, enum conn_phase to);

/*
 * conn_set_phase() - move the claimed @conn on to @to
 * All changes of the phase come to this one and conn_move(), which hold them to the table in phase.h: one that isn't
 * there is a fault of ours. It aborts a developer's program (configure --enable-werror, --enable-sanitizers), and is a
 * line in the log of any other, which goes on.
 */
void conn_set_phase(struct conn *conn, enum conn_phase to);

/* Returns the error of a FAILED or DISSOLVED conn as SO_ERROR does: positive once, then 0. DISSOLVED becomes IDLE. */
int conn_take_error(struct conn *conn);

/* Counts @conn in conn_unseen, or no longer. A conn that isn't pending is never counted. */
void conn_mark_unseen(struct conn *conn, bool unseen);

/* The signal mask and cancellation state that the thread had before it claimed a conn, and the phase that the conn was in. */
struct conn_claim {
	struct quiet quiet;
	enum conn_phase from;
};

/*
 * conn_claim(), conn_release() - be the only thread that takes the next step
 * Signals are blocked and cancellation is off in between, and only non-blocking system calls are allowed. conn_claim()
 * waits while another thread has the claim, and returns false, with nothing changed, if the phase then isn't one of @phases
 * (somebody else has gone on with it); else @claim->from is the phase. It stays, but IDLE becomes STARTING in the same moment, so
 * that nobody sees an idle socket which has just sent its SYN. conn_release() goes on to @to as conn_set_phase() does, and
 * gives up the claim at once. Only in IDLE and PHASES_UNFINISHED is there a step to be taken.
 */
bool conn_claim(struct conn *conn, uint32_t phases, struct conn_claim *claim);
void conn_release(struct conn *conn, enum conn_phase to, const struct conn_claim *claim);

/*
 * conn_claim_of() - claim @conn, but only if @fd is still a descriptor of its socket
 * For a conn that was found by going through all of them, and not by its descriptor. Before the claim its socket may be closed,
 * and conn and number may both be given to other sockets; while it is claimed neither can happen.
 */
bool conn_claim_of(struct conn *conn, int fd, uint32_t phases, struct conn_claim *claim);

/* Returns the phase once no other thread is in the middle of a step, for which it waits. */
enum conn_phase conn_phase_unclaimed(const struct conn *conn);

/* Returns the conn with this index, in whatever phase, for tables that store indices. */
struct conn *conn_by_index(uint32_t index);

/* Calls @visit for each conn in the phases of @set until it returns false. */
void conn_each_in(uint32_t set, bool (*visit)(struct conn *conn, void *arg), void *arg);

/* Calls @visit for each conn in PHASES_UNFINISHED until it returns false. */
void conn_each_pending(bool (*visit)(struct conn *conn, void *arg), void *arg);

#endif
