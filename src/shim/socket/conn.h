/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.h - the shim's knowledge of the application's sockets
 *
 * A conn is one socket, found by any descriptor that refers to it. A table of slots maps descriptors to conns; dup() makes a second slot
 * point to the same conn. SO_COOKIE, the kernel's unique name of a socket, tells whether a slot still belongs to the socket that now has
 * its number, however the old one was closed.
 *
 * There is no lock. The state of a connection is one atomic word: its phase (phase.h), notes on what the application has been told and has
 * done (enum conn_note), and a bit for the claim of a thread. Only the claiming thread may change the phase, the call and the attempt. It
 * has all signals blocked and makes a few system calls that don't block, while others wait for the microseconds that these take.
 * conn_move() may leave a phase that needs no further step (IDLE, DONE, DIRECT, FAILED, DISSOLVED) without a claim.
 *
 * Threads without the claim, such as those in poll(), read the word and the atomic members of struct conn. A thread that was called with a
 * descriptor of the socket may also read the call: it is written in STARTING, when no other thread has a reason to read it (later, under
 * the claim, only `shut` and `fastopen_connect`). A thread that has found the conn in a search of all conns may not read it: another thread
 * may close the socket, and begin another one with the same conn.
 *
 * Conns and slots are never freed, so a stale pointer leads at worst to a conn whose cookie doesn't match.
 */
#ifndef SHIM_CONN_H
#define SHIM_CONN_H

#include "engine/dial.h"
#include "shim/socket/phase.h"
#include "shim/system/next.h"
#include "shim/system/waiting.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* Notes on the application and its connection, beside the phase. IDLE has none. */
enum conn_note {
	CONN_TOLD_WRITABLE = 1 << 9,   /* an epoll_wait() past the hooks may have reported it before the server was reached */
	CONN_TOLD_CONNECTED = 1 << 10, /* a connect() has returned 0, or early data was taken: the next connect() is EISCONN */
	CONN_WROTE = 1 << 11,          /* the application has sent bytes of which we have no copy: we can't ask another converter */
	CONN_TAKEN_BACK = 1 << 12,     /* with ring_may_use: begun anew, or about to be closed: don't begin anew again */
};

#define CONN_PHASE_MASK 0xffu
#define CONN_CLAIMED 0x100u
#define CONN_NOTES (CONN_TOLD_WRITABLE | CONN_TOLD_CONNECTED | CONN_WROTE | CONN_TAKEN_BACK)

#define CONN_WATCHES_MAX 4

/*
 * An epoll registration as the application made it. A thread writes it with the conn claimed, or before the conn is pending. Any waiting
 * thread may read it, to find the conn of an event: hence atomic.
 */
struct conn_watch {
	_Atomic int epfd;    /* -1: unused */
	_Atomic int fd;      /* the descriptor that was registered */
	_Atomic bool masked; /* the kernel has our events instead of these */
	_Atomic bool listed; /* watch_find() finds it */
	_Atomic bool failed; /* one-shot: the kernel will report the end of the failed connection */
	_Atomic bool adopted; /* made past the hooks, and may change past them: watch.c */
	_Atomic bool fired;   /* one-shot: for the response, which isn't the application's; to be armed again: watch_fired() */
	_Atomic bool timed;   /* conn.timer is registered beside it: deadline_timer.c */
	_Atomic int64_t reported; /* the last deadline whose timer event we have seen */
	_Atomic uint32_t events;
	_Atomic uint64_t data; /* epoll_data_t.u64 */
};

#define CONN_ADVICE_MAX 16
#define CONN_LATE_COUNT 3

/* Options that the application has set on a socket: app_options.c. */
struct conn_options {
	_Atomic uint64_t set;        /* a bit for each option in the table of app_options.c */
	_Atomic uint32_t advised;    /* a bit for each of: */
	int values[CONN_ADVICE_MAX]; /* the options that MPTCP refuses, and that a connection can do without */
	_Atomic uint8_t late[CONN_LATE_COUNT]; /* options_note_late(): 0, or the value plus 1 */
};

/*
 * The application's first bytes, until the server was reached. The SYN carries them behind the request. If the converter fails, the next
 * converter or the server itself needs them; so we keep a copy, in pages of its own, since a hook must not call malloc(). Only the thread
 * that has claimed the conn writes it; others check only whether there are bytes.
 */
struct early {
	uint8_t *_Atomic bytes; /* NULL: none */
	_Atomic uint16_t len;
};

/* Properties of the socket for its whole life, whatever it is connected to. conn_add() resets them. */
struct conn_socket {
	_Atomic bool mptcp;        /* an MPTCP socket in place of the application's TCP one: replace.c */
	_Atomic bool shown_ipv4;   /* an IPv6 socket in place of the application's IPv4 one */
	_Atomic bool was_mapped;   /* an IPv6 socket that was connected to a v4-mapped address */
	_Atomic bool shut_for_reading; /* shut for reading before it was connected, so it can read no response */
	_Atomic bool streamed;     /* the C library reads or writes the socket as a stream, or may: hooks/io.c */
	_Atomic bool given;        /* the program about to be started gets a descriptor of it */
	_Atomic bool watches_lost; /* it has epoll registrations that we can't make again */
	_Atomic bool suspended;    /* its epoll registrations are removed: watch_suspend() */
	union sockaddr_ip left;    /* the address that an attempt has left; AF_UNSPEC: none: replace_note_address() */
	_Atomic int rcvlowat;      /* the application's SO_RCVLOWAT while ours is set, in bytes; 0: ours isn't */
	struct kernel_keepalive keepalive; /* the application's, while the engine probes the converter */
	struct conn_options options;
};

/* Properties of one connect() call, beside its dial. conn_begin() resets them in one assignment, under the claim. */
struct conn_call {
	bool bound;              /* the application has bound the socket to an address before */
	bool fastopen_connect;   /* TCP_FASTOPEN_CONNECT is set on the socket */
	bool ring_holds;         /* a ring holds the socket itself, so we can't replace it */
	bool wants_signals;      /* O_ASYNC is set on the socket: Multipath TCP sends no signal when it is connected */
	bool uses_io_uring;      /* the process uses io_uring: it may read the stream past us once it is connected */
	bool at_once;            /* connect() returns before the connection, which the ring may use, is made: ring_use_may_return() */
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

	/* Read by other threads without the claim. */
	_Atomic int error;         /* positive errno: the reason of FAILED, until the application gets it; or an error seen while pending */
	_Atomic int fd;            /* the one that connect() was called with; after its end another of the socket's */
	_Atomic int64_t deadline;  /* CLOCK_MONOTONIC in ns, when to check the converter; 0: never */
	_Atomic int64_t deadline_over; /* the last deadline that was over when we replaced it */
	_Atomic int timer;         /* a timerfd with @deadline, for threads that sleep in epoll_wait() already; -1: none */
	_Atomic bool follows;        /* another process has asked the converter, this one observes the result: follow.c */
	_Atomic bool hung_up;        /* pending: we disconnected the socket to begin the connection anew */
	_Atomic bool ring_may_use;   /* the process uses io_uring, and the socket is non-blocking: it may read before it calls any hook */
	_Atomic bool unseen;         /* pending: counted in conn_unseen */
	_Atomic uintptr_t unseen_by; /* pthread_self() of the thread that has counted it there */
	_Atomic uint8_t looks[2];    /* how often other threads, and that thread, looked for the conn's registration: watch.c */
	_Atomic uint32_t mode_changes; /* odd: we have set O_NONBLOCK on a blocking socket for a moment; counts each begin and end */
	_Atomic int64_t path_serial; /* dial.start.serial, for threads that want to know whether the survey's connection still waits */
	struct early early;
	struct conn_watch watches[CONN_WATCHES_MAX];

	struct conn_socket socket;
	struct conn_call call;
	struct dial dial; /* only for the claiming thread, except the server, which is written in STARTING */
};

/* Number of conns in PHASES_HANDLED, plus one while conn_linger() is in force. While it is zero, every hook takes its fast path. */
extern _Atomic uint32_t conn_handled_count;

/*
 * Number of pending conns of a non-blocking connect() that have no known epoll registration. While there are any, each wait with epoll also
 * checks them, since their registrations may have been made past the hooks (by a raw system call, or io_uring).
 */
extern _Atomic uint32_t conn_unseen;

/*
 * conn_linger() - make hooks call @look, even while no conn is in PHASES_HANDLED; NULL: no longer
 * For work that a connection has begun and that remains when it is settled. Called with whatever the calling hook has claimed, and
 * not in a vfork() child, since the descriptors that it would close stay open in its parent.
 */
void conn_linger(void (*look)(void));

/* Number of conns in DEFERRED: a wait may have to send their SYNs first. */
extern _Atomic uint32_t conn_deferred;

static inline bool conn_none_handled(void)
{
	return atomic_load_explicit(&conn_handled_count, memory_order_acquire) == 0;
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

/* May the application use the connection past us before it calls any hook? */
static inline bool conn_ring_may_use(const struct conn *conn)
{
	return atomic_load(&conn->ring_may_use) && !conn_has(conn, CONN_TAKEN_BACK);
}

/* Returns the server that the application has named; AF_UNSPEC if there is none yet. */
static inline const union sockaddr_ip *conn_peer(const struct conn *conn)
{
	return &conn->dial.server;
}

/* Returns the phase of a claimed conn that waits for the response. */
static inline enum conn_phase conn_phase_asked(const struct conn *conn)
{
	return dial_wants_output(&conn->dial) ? CONN_SYN_SENT : CONN_ASKED;
}

/*
 * conn_add() - make a conn in CONN_IDLE for the new socket @fd
 * @generation: conn_generation() before this process made the socket; 0: another process may have it
 * Forgets an older socket with this number. Returns NULL if memory or conns ran out: the socket then stays unconverted.
 */
struct conn *conn_add(int fd, uint32_t generation);

/*
 * conn_begin() - reset @conn for the connect() call @call, which was made with @fd
 * Clears all of an earlier call and its attempts. The caller has claimed @conn, or no other thread knows it.
 */
void conn_begin(struct conn *conn, int fd, struct conn_call call);

/* Frees the memory of the kept early data; there is none afterwards. */
void conn_drop_early(struct conn *conn);

/* conn_of() - return the conn of @fd in any phase, with its cookie verified by a system call; NULL, without one, if there is none */
struct conn *conn_of(int fd);

/* conn_handled() - as conn_of(), but only if the conn is in PHASES_HANDLED; cheap if none is */
struct conn *conn_handled(int fd);

/* conn_of_phase() - as conn_of(), but only if the conn is in one of @phases; cheap otherwise */
struct conn *conn_of_phase(int fd, uint32_t phases);

/* conn_unverified() - return the conn that @fd belonged to at our last look, without a system call to verify it */
struct conn *conn_unverified(int fd);

/*
 * conn_named() - search all conns for the one with this SO_COOKIE; NULL if there is none
 * For a descriptor that a vfork() child has made, which has no slot.
 */
struct conn *conn_named(uint64_t cookie);

/* Returns the next descriptor from @fd on that has a conn, -1 if there is none. */
int conn_next_fd(int fd);

/* Is this the process that the tables belong to, and not a vfork() child? */
bool conn_is_owner(void);

/*
 * conn_is_private() - is this the only process with a descriptor of the socket?
 * False for a socket that is older than the last fork(), in parent and child, or without a generation. Ignores vfork(), whose child has no
 * use for an unconnected socket.
 */
bool conn_is_private(const struct conn *conn);

/* Returns a number that changes at each fork(), in parent and child; never 0. */
uint32_t conn_generation(void);

/* Notes that another process has the socket: it isn't private from now on. */
void conn_mark_shared(struct conn *conn);

/* Notes that the descriptors of @conn now refer to another socket, with this SO_COOKIE, which this process has made. */
void conn_renew(struct conn *conn, uint64_t cookie);

/* Notes that the tables belong to this process. Call once, before any other function here. */
void conn_init(void);

/* Functions of watch.c to call when descriptors of a conn are closed, since epoll registrations depend on them. */
struct conn_observer {
	void (*closing)(struct conn *conn, int fd); /* @fd, one of several descriptors, is no longer one of @conn's */
	void (*gone)(struct conn *conn);            /* its last descriptor is closed */
};

/* conn_observe() - call @observer, which must stay, from now on; once, before conns are made */
void conn_observe(const struct conn_observer *observer);

/*
 * Notes a fork: call it before a fork(), and after it in the parent. A socket that another thread makes in between may be in the child,
 * too.
 */
void conn_note_fork(void);

/*
 * conn_repair_in_child() - make the copied tables the child's own, after a fork()
 * The child has none of the other threads. A step that one of them was taking continues only in the parent, so no conn is claimed here any
 * more; and no thread of the child waits for a conn yet.
 */
void conn_repair_in_child(void);

/* Makes @to, after a dup(), belong to the same conn as @from, or to none if @from has none. */
void conn_dup(int from, int to);

/* Forgets @fd, which is about to be closed, or to become another file's. */
void conn_forget(int fd);

/* Does the same for all descriptors from @first to @last. */
void conn_forget_range(unsigned int first, unsigned int last);

/*
 * conn_move() - change the phase @from to @to without a claim, unless another thread was first
 * This function, conn_claim(), conn_release() and conn_end() make all changes of the phase but those of conn_repair_in_child(), and check
 * them against the table in conn_phase.c. A change that isn't there is our fault: it aborts a developer's program (configure
 * --enable-werror, --enable-sanitizers); any other program logs a line and continues. Returns false, with nothing changed, if @conn is
 * claimed or in another phase.
 */
bool conn_move(struct conn *conn, enum conn_phase from, enum conn_phase to);

/* Waits until no thread is taking a step of @conn, whose last descriptor is closed, and makes it FREE. */
void conn_end(struct conn *conn);

/* Returns the error of a FAILED or DISSOLVED conn as SO_ERROR does: positive once, then 0. DISSOLVED becomes IDLE. */
int conn_take_error(struct conn *conn);

/* Counts @conn in conn_unseen, and notes the calling thread; or stops counting it. Never counts a conn that isn't pending. */
void conn_mark_unseen(struct conn *conn, bool unseen);

/* The signal mask and cancellation state that the thread had before it claimed a conn, and the phase that the conn was in. */
struct conn_claim {
	struct quiet quiet;
	enum conn_phase from;
};

/*
 * conn_claim(), conn_release() - become the only thread that takes the next step, and stop being it
 * In between, signals are blocked, cancellation is off, and only non-blocking system calls are allowed. conn_claim() waits while another
 * thread has the claim. If the phase then isn't one of @phases (another thread has taken the step), it returns false, with nothing changed;
 * else it stores the phase in @claim->from. The phase stays, but IDLE becomes STARTING at the same moment, so that no thread sees an idle
 * socket which has just sent its SYN. conn_release() changes the phase to @to, and gives up the claim at the same
 * moment. Only IDLE and PHASES_UNFINISHED need steps.
 */
bool conn_claim(struct conn *conn, uint32_t phases, struct conn_claim *claim);
void conn_release(struct conn *conn, enum conn_phase to, const struct conn_claim *claim);

/*
 * conn_claim_of() - claim @conn, but only if @fd is still a descriptor of its socket
 * For a conn that was found in a search of all, and not by its descriptor. Before the claim its socket may be closed, and conn and number
 * may both go to other sockets; a claim prevents this.
 */
bool conn_claim_of(struct conn *conn, int fd, uint32_t phases, struct conn_claim *claim);

/* Waits until no other thread is taking a step, and returns the phase. */
enum conn_phase conn_phase_unclaimed(const struct conn *conn);

/* Returns the conn with this index, in any phase, for tables that store indices. */
struct conn *conn_by_index(uint32_t index);

/* Returns the first conn from @index on that is in one of the phases of @set; NULL: there is none. */
struct conn *conn_next_in(uint32_t set, uint32_t index);

/* Executes the statement behind it for each conn in the phases of @set. */
#define EACH_CONN(each, set) for (struct conn *each = conn_next_in(set, 0); each; each = conn_next_in(set, each->index + 1))

/* --- when to look at the converters and paths of pending conns again --- */

/*
 * No thread of ours waits for these deadlines; for application threads that sleep in epoll_wait() already, deadline_timer.c has timers. A
 * wait that doesn't check its conns now and then, such as epoll_wait(), must end at conn_first_deadline() at the latest, and then call
 * conversion_look(). conn_first_deadline() is never too late. It may be too early, since a settled conn leaves its deadline behind.
 */

/* Sets the deadline of @conn. @at: clock_ns() of the next look at its converter or path; 0: never */
void conn_set_deadline(struct conn *conn, int64_t at);

/* Is the next look at the converter or path of @conn due? */
bool conn_look_is_due(const struct conn *conn);

/* Returns a time of clock_ns() before which no deadline ends; 0: there is none. */
int64_t conn_first_deadline(void);

/*
 * Determines conn_first_deadline() anew, from the deadlines after @checked: the time, by clock_ns(), at which the caller began to take the
 * steps of all earlier ones. A deadline that such a step has set counts, even if it is over by now, as on a busy machine.
 */
void conn_renew_deadlines(int64_t checked);

#endif
