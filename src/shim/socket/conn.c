/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.c - the shim's knowledge of the application's sockets
 *
 * There are two tables, which grow by mmap() in chunks and never shrink. The slots, one for each descriptor, hold the index of a conn plus
 * one; the pool holds the conns. Free conns form a stack. Its head has a tag, which reveals a head that was taken and put back in between
 * (ABA). fork() copies both tables. A vfork() child shares them with its parent, and the descriptors that it closes stay open there: so
 * only the process that owns the tables changes them.
 */
#include "config.h"

#include "shim/socket/conn.h"

#include "common/clock.h"
#include "common/rawcall.h"
#include "shim/system/next.h"
#include "shim/system/rings.h"
#include "shim/system/waiting.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SLOT_CHUNK 1024u /* slots in a mapping */
#define SLOT_CHUNKS 1024u
#define CONN_CHUNK 256u /* conns in a mapping */
#define CONN_CHUNKS 4096u

_Atomic uint32_t conn_handled_count;
static void (*_Atomic lingering)(void);
_Atomic uint32_t conn_unseen;
_Atomic uint32_t conn_deferred;

static _Atomic(_Atomic uint32_t *) slot_chunks[SLOT_CHUNKS];
static _Atomic(struct conn *) conn_chunks[CONN_CHUNKS];
static _Atomic uint32_t conn_count;     /* conns ever taken from the chunks */
static _Atomic uint64_t free_head;      /* tag << 32 | index + 1 */
static pid_t owner;
static const struct conn_observer *observer;
static _Atomic uint32_t generation = 1;

void conn_init(void)
{
	owner = getpid();
}

void conn_observe(const struct conn_observer *kept)
{
	observer = kept;
}

void conn_note_fork(void)
{
	if (atomic_fetch_add(&generation, 1) == UINT32_MAX)
		atomic_store(&generation, 1);
}

/* Returns the slot of @fd, or NULL. @grow: map its chunk if necessary */
static _Atomic uint32_t *slot_of(int fd, bool grow)
{
	unsigned int chunk = (unsigned int)fd / SLOT_CHUNK;
	_Atomic uint32_t *slots, *expected = NULL;

	if (fd < 0 || chunk >= SLOT_CHUNKS)
		return NULL;
	slots = atomic_load_explicit(&slot_chunks[chunk], memory_order_acquire);
	if (!slots && grow) {
		slots = next_map(SLOT_CHUNK * sizeof(*slots));
		if (slots && !atomic_compare_exchange_strong(&slot_chunks[chunk], &expected, slots)) {
			next_unmap(slots, SLOT_CHUNK * sizeof(*slots));
			slots = expected;
		}
	}
	return slots ? &slots[(unsigned int)fd % SLOT_CHUNK] : NULL;
}

struct conn *conn_by_index(uint32_t index)
{
	struct conn *chunk = atomic_load_explicit(&conn_chunks[index / CONN_CHUNK],
						  memory_order_acquire);

	return chunk ? &chunk[index % CONN_CHUNK] : NULL;
}

static struct conn *conn_grow(void)
{
	uint32_t index = atomic_fetch_add(&conn_count, 1);
	struct conn *chunk, *expected = NULL;

	if (index / CONN_CHUNK >= CONN_CHUNKS) {
		atomic_fetch_sub(&conn_count, 1);
		return NULL;
	}
	chunk = atomic_load(&conn_chunks[index / CONN_CHUNK]);
	if (!chunk) {
		chunk = next_map(CONN_CHUNK * sizeof(*chunk));
		if (!chunk)
			return NULL;
		if (!atomic_compare_exchange_strong(&conn_chunks[index / CONN_CHUNK], &expected,
						    chunk)) {
			next_unmap(chunk, CONN_CHUNK * sizeof(*chunk));
			chunk = expected;
		}
	}
	chunk[index % CONN_CHUNK].index = index;
	return &chunk[index % CONN_CHUNK];
}

static struct conn *conn_alloc(void)
{
	uint64_t head = atomic_load(&free_head);

	while ((uint32_t)head) {
		struct conn *conn = conn_by_index((uint32_t)head - 1);
		uint64_t after = ((head >> 32) + 1) << 32 | atomic_load(&conn->next_free);

		if (atomic_compare_exchange_weak(&free_head, &head, after))
			return conn;
	}
	return conn_grow();
}

void conn_drop_early(struct conn *conn)
{
	next_unmap(conn->early.bytes, DIAL_EARLY_MAX);
	conn->early.bytes = NULL;
	conn->early.len = 0;
}

static void conn_push_free(struct conn *conn)
{
	uint64_t head = atomic_load(&free_head), mine;

	do {
		atomic_store(&conn->next_free, (uint32_t)head);
		mine = ((head >> 32) + 1) << 32 | (conn->index + 1);
	} while (!atomic_compare_exchange_weak(&free_head, &head, mine));
}

static void conn_unref(struct conn *conn)
{
	if (atomic_fetch_sub(&conn->refs, 1) != 1)
		return;
	conn_end(conn);
	if (observer)
		observer->gone(conn);
	conn_drop_early(conn);
	conn_push_free(conn);
}

static struct conn *slot_conn(int fd)
{
	_Atomic uint32_t *slot = slot_of(fd, false);
	uint32_t index = slot ? atomic_load_explicit(slot, memory_order_acquire) : 0;

	return index ? conn_by_index(index - 1) : NULL;
}

/* Stores @conn, or none, in @slot. The conn that was there is returned, and keeps its reference; NULL: none. */
static struct conn *slot_exchange(_Atomic uint32_t *slot, const struct conn *conn)
{
	uint32_t before = atomic_exchange(slot, conn ? conn->index + 1 : 0);

	return before ? conn_by_index(before - 1) : NULL;
}

static void slot_set(_Atomic uint32_t *slot, struct conn *conn)
{
	struct conn *before = slot_exchange(slot, conn);

	if (before)
		conn_unref(before);
}

void conn_begin(struct conn *conn, int fd, struct conn_call call)
{
	conn_drop_early(conn);
	conn->call = call;
	conn->dial = (struct dial){ .server.sa.sa_family = AF_UNSPEC };
	conn->fd = fd;
	conn->error = 0;
	conn->follows = false;
	conn->hung_up = false;
	conn->ring_may_use = false;
}

struct conn *conn_add(int fd, uint32_t made_in)
{
	_Atomic uint32_t *slot = slot_of(fd, true);
	uint64_t cookie;
	struct conn *conn;

	if (!slot || getpid() != owner)
		return NULL;
	cookie = kernel_cookie(fd);
	if (!cookie) /* any other descriptor without a cookie would look like this socket later */
		return NULL;
	conn = conn_alloc();
	if (!conn)
		return NULL;
	conn->socket = (struct conn_socket){ .mptcp = false };
	conn_begin(conn, fd, (struct conn_call){ .bound = false });
	for (size_t i = 0; i < CONN_WATCHES_MAX; i++)
		conn->watches[i].epfd = -1;
	conn->timer = -1;
	conn->cookie = cookie;
	conn->generation = made_in;
	atomic_store(&conn->refs, 1);
	conn_move(conn, CONN_FREE, CONN_IDLE);
	slot_set(slot, conn);
	return conn;
}

/*
 * Is @fd a descriptor of the socket of @conn? Another thread may be replacing the socket at this moment (replace.c), and have changed the
 * descriptor, but not yet the cookie of the conn. So after a mismatch we compare again once no step is under way.
 */
static bool is_of(const struct conn *conn, int fd)
{
	if (conn->cookie == kernel_cookie(fd))
		return true;
	conn_phase_unclaimed(conn);
	return conn->cookie == kernel_cookie(fd);
}

/*
 * Puts another descriptor into conn->fd in place of @fd, whose slot is empty by now. Another thread may close the new one meanwhile: that
 * thread empties the new one's slot and then reads conn->fd; we write conn->fd and then read the slot. So one of the two threads notices.
 */
static void fd_pass_on(struct conn *conn, int fd)
{
	for (int other = conn_next_fd(0); other >= 0; other = conn_next_fd(other + 1)) {
		if (slot_conn(other) != conn || !is_of(conn, other))
			continue;
		if (!atomic_compare_exchange_strong(&conn->fd, &fd, other) || slot_conn(other) == conn)
			return;
		fd = other;
	}
}

/* Tells the observer, and takes @fd off its conn: a registration made with @fd can't be changed from then on. */
static void slot_clear(int fd)
{
	struct conn *conn = slot_conn(fd);

	if (conn && observer && atomic_load(&conn->refs) > 1)
		observer->closing(conn, fd);
	conn = slot_exchange(slot_of(fd, false), NULL);
	if (!conn)
		return;
	/* A step that another thread takes by this descriptor ends first. A later one sees the empty slot: conn_claim_of(). */
	atomic_thread_fence(memory_order_seq_cst);
	conn_phase_unclaimed(conn);
	if (conn->fd == fd && atomic_load(&conn->refs) > 1)
		fd_pass_on(conn, fd);
	conn_unref(conn);
}

struct conn *conn_of(int fd)
{
	struct conn *conn = slot_conn(fd);

	return conn && is_of(conn, fd) ? conn : NULL;
}

/* Inlined, since conn_handled() runs in each call of the application while any connection is pending. */
static inline struct conn *of_phase(int fd, uint32_t phases)
{
	struct conn *conn = slot_conn(fd);

	return conn && conn_in(conn, phases) && is_of(conn, fd) ? conn : NULL;
}

struct conn *conn_of_phase(int fd, uint32_t phases)
{
	return of_phase(fd, phases);
}

void conn_linger(void (*look)(void))
{
	void (*before)(void) = atomic_exchange(&lingering, look);

	if (!before != !look)
		atomic_fetch_add(&conn_handled_count, look ? 1 : -1u);
}

struct conn *conn_handled(int fd)
{
	void (*look)(void);

	if (conn_none_handled())
		return NULL;
	look = atomic_load(&lingering);
	if (look && conn_is_owner())
		look();
	return of_phase(fd, PHASES_HANDLED);
}

struct conn *conn_named(uint64_t cookie)
{
	if (cookie)
		EACH_CONN (conn, ~PHASE(FREE))
			if (conn->cookie == cookie)
				return conn;
	return NULL;
}

int conn_next_fd(int fd)
{
	for (; fd < (int)(SLOT_CHUNK * SLOT_CHUNKS); fd++) {
		const _Atomic uint32_t *slot = slot_of(fd, false);

		if (!slot)
			fd |= (int)SLOT_CHUNK - 1; /* nothing in this chunk */
		else if (atomic_load(slot))
			return fd;
	}
	return -1;
}

bool conn_is_owner(void)
{
	return getpid() == owner;
}

struct conn *conn_unverified(int fd)
{
	return slot_conn(fd);
}

bool conn_is_private(const struct conn *conn)
{
	return getpid() == owner && conn->generation == atomic_load(&generation);
}

uint32_t conn_generation(void)
{
	return atomic_load(&generation);
}

void conn_mark_shared(struct conn *conn)
{
	conn->generation = 0;
}

/*
 * Repairs a conn in the child of a fork(). A step that another thread was taking continues only in the parent, so we give up its claim
 * here. A connection that was just beginning (STARTING) counts as begun.
 */
static void repair(struct conn *conn)
{
	uint32_t word = conn_word(conn);
	enum conn_phase phase = conn_phase(conn);

	if (phase == CONN_STARTING)
		phase = conn_phase_asked(conn);
	atomic_store(&conn->word, phase | (word & CONN_NOTES) | (conn->unseen ? CONN_TOLD_WRITABLE : 0));
	conn->unseen = false;
	/* The parent's connections have these timers. */
	if (conn->timer != -1)
		RAWCALL(SYS_close, conn->timer);
	conn->timer = -1;
	for (size_t i = 0; i < CONN_WATCHES_MAX; i++)
		conn->watches[i].timed = false;
	atomic_store(&conn->mode_changes, 0);
}

void conn_repair_in_child(void)
{
	uint32_t handled = 0, deferred = 0;

	owner = getpid();
	conn_note_fork();
	if (conn_none_handled())
		return;
	for (uint32_t i = 0; i < atomic_load(&conn_count); i++) {
		struct conn *conn = conn_by_index(i);

		if (!conn || conn_phase(conn) == CONN_FREE) /* another thread of the parent may be making it, and it has no timer yet */
			continue;
		repair(conn);
		handled += conn_in(conn, PHASES_HANDLED);
		deferred += conn_phase(conn) == CONN_DEFERRED;
	}
	atomic_store(&lingering, NULL);
	atomic_store(&conn_handled_count, handled);
	atomic_store(&conn_deferred, deferred);
	atomic_store(&conn_unseen, 0);
}

void conn_renew(struct conn *conn, uint64_t cookie)
{
	conn->cookie = cookie;
	conn->generation = conn_generation();
}

void conn_dup(int from, int to)
{
	struct conn *conn = conn_of(from);
	_Atomic uint32_t *slot;

	rings_forget(to);
	if (from == to || (!conn && !conn_unverified(to)) || getpid() != owner)
		return;
	slot = slot_of(to, conn != NULL);
	if (!slot)
		return;
	if (conn)
		atomic_fetch_add(&conn->refs, 1);
	slot_clear(to);
	slot_set(slot, conn);
}

void conn_forget(int fd)
{
	rings_forget(fd);
	if (slot_conn(fd) && getpid() == owner)
		slot_clear(fd);
}

void conn_forget_range(unsigned int first, unsigned int last)
{
	const unsigned int end = SLOT_CHUNK * SLOT_CHUNKS - 1;

	for (uint64_t fd = first; fd <= (last < end ? last : end); fd++) {
		if (!slot_of((int)fd, false))
			fd |= SLOT_CHUNK - 1; /* nothing in this chunk */
		else
			conn_forget((int)fd);
	}
}

struct conn *conn_next_in(uint32_t set, uint32_t index)
{
	const uint32_t count = atomic_load(&conn_count);

	for (; index < count; index++) {
		struct conn *conn = conn_by_index(index);

		if (conn && conn_in(conn, set))
			return conn;
	}
	return NULL;
}

/* --- when to look at the converters and paths of pending conns again --- */

/*
 * No deadline is earlier than the time in the upper bits. It may belong to a conn that has been settled since, until a wait ends at it and
 * calls conn_renew_deadlines(). The lower bits count the changes, so that the call doesn't miss one that another thread sets.
 */
static _Atomic int64_t first_deadline;

#define CHANGES_MASK 1023 /* so times are rounded down to a microsecond */

static int64_t deadline_changed(int64_t word, int64_t at)
{
	return (at & ~(int64_t)CHANGES_MASK) | ((word + 1) & CHANGES_MASK);
}

static int64_t deadline_of(int64_t word)
{
	return word & ~(int64_t)CHANGES_MASK;
}

static void deadline_lower(int64_t at)
{
	int64_t word = atomic_load(&first_deadline), first;

	do
		first = deadline_of(word);
	while (!atomic_compare_exchange_weak(&first_deadline, &word, deadline_changed(word, !first || at < first ? at : first)));
}

static void timer_set(int fd, int64_t at)
{
	ERRNO_KEPT;
	const struct itimerspec when = { .it_value = { .tv_sec = (time_t)(at / CLOCK_NS_PER_S), .tv_nsec = (long)(at % CLOCK_NS_PER_S) } };

	timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void conn_set_deadline(struct conn *conn, int64_t at)
{
	int timer = atomic_load(&conn->timer);

	if (conn_look_is_due(conn))
		atomic_store(&conn->deadline_over, atomic_load(&conn->deadline));
	atomic_store(&conn->deadline, at);
	if (at)
		deadline_lower(at);
	if (timer != -1)
		timer_set(timer, at);
}

bool conn_look_is_due(const struct conn *conn)
{
	int64_t at = atomic_load(&conn->deadline);

	return at && clock_ns() >= at;
}

int64_t conn_first_deadline(void)
{
	return deadline_of(atomic_load(&first_deadline));
}

void conn_renew_deadlines(int64_t checked)
{
	int64_t word = atomic_load(&first_deadline), first;

	do {
		first = 0;
		EACH_CONN (conn, PHASES_PENDING) {
			int64_t at = atomic_load(&conn->deadline);

			if (at > checked && (!first || at < first))
				first = at;
		}
	} while (!atomic_compare_exchange_strong(&first_deadline, &word, deadline_changed(word, first)));
}
