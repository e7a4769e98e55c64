/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.c - what the shim knows of the application's sockets
 *
 * Two tables, grown by mmap() in chunks and never shrunk: slots, by descriptor, hold
 * the index of a conn plus one; the pool holds the conns. Free conns form a stack
 * whose head carries a tag against ABA. fork() copies both tables; a vfork() child
 * shares them with its parent, so nothing here changes in a process that isn't
 * the one that the tables belong to (its closing of a descriptor is not the parent's).
 */
#include "config.h"

#include "shim/conn.h"

#include "shim/next.h"
#include "shim/watch.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOT_CHUNK 1024u /* descriptors */
#define SLOT_CHUNKS 1024u
#define CONN_CHUNK 256u /* conns */
#define CONN_CHUNKS 4096u

_Atomic uint32_t conn_attention;
_Atomic uint32_t conn_unseen;

static _Atomic(_Atomic uint32_t *) slot_chunks[SLOT_CHUNKS];
static _Atomic(struct conn *) conn_chunks[CONN_CHUNKS];
static _Atomic uint32_t conn_count;     /* conns ever taken from the chunks */
static _Atomic uint64_t free_head;      /* tag << 32 | index + 1 */
static pid_t owner;

static const bool attentive[] = {
	[CONN_FREE] = false,   [CONN_IDLE] = false, [CONN_DIRECT] = false, [CONN_PENDING] = true,
	[CONN_CLAIMED] = true, [CONN_DONE] = false, [CONN_FAILED] = true,
};
static_assert(sizeof(attentive) / sizeof(attentive[0]) == CONN_STATE_COUNT, "an entry a state");

static void *map_zeroed(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

__attribute__((constructor)) static void conn_init(void)
{
	owner = getpid();
}

static void conn_adopt_in_child(void)
{
	owner = getpid();
}

__attribute__((constructor)) static void conn_watch_forks(void)
{
	pthread_atfork(NULL, NULL, conn_adopt_in_child);
}

/* The slot of @fd, or NULL; @grow makes its chunk. */
static _Atomic uint32_t *slot_of(int fd, bool grow)
{
	unsigned int chunk = (unsigned int)fd / SLOT_CHUNK;
	_Atomic uint32_t *slots, *expected = NULL;

	if (fd < 0 || chunk >= SLOT_CHUNKS)
		return NULL;
	slots = atomic_load_explicit(&slot_chunks[chunk], memory_order_acquire);
	if (!slots && grow) {
		slots = map_zeroed(SLOT_CHUNK * sizeof(*slots));
		if (slots && !atomic_compare_exchange_strong(&slot_chunks[chunk], &expected, slots)) {
			munmap(slots, SLOT_CHUNK * sizeof(*slots));
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
		chunk = map_zeroed(CONN_CHUNK * sizeof(*chunk));
		if (!chunk)
			return NULL;
		if (!atomic_compare_exchange_strong(&conn_chunks[index / CONN_CHUNK], &expected,
						    chunk)) {
			munmap(chunk, CONN_CHUNK * sizeof(*chunk));
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

static void conn_push_free(struct conn *conn)
{
	uint64_t head = atomic_load(&free_head), mine;

	do {
		atomic_store(&conn->next_free, (uint32_t)head);
		mine = ((head >> 32) + 1) << 32 | (conn->index + 1);
	} while (!atomic_compare_exchange_weak(&free_head, &head, mine));
}

static void attention_follow(enum conn_state from, enum conn_state to)
{
	if (attentive[from] != attentive[to])
		atomic_fetch_add(&conn_attention, attentive[to] ? 1 : -1u);
}

void conn_mark_unseen(struct conn *conn, bool unseen)
{
	if (atomic_exchange(&conn->unseen, unseen) != unseen)
		atomic_fetch_add(&conn_unseen, unseen ? 1 : -1u);
	if (unseen && !conn_is_pending(conn)) /* settled by another thread meanwhile */
		conn_mark_unseen(conn, false);
}

bool conn_move(struct conn *conn, enum conn_state from, enum conn_state to)
{
	uint32_t expected = from;

	if (!atomic_compare_exchange_strong(&conn->state, &expected, to))
		return false;
	attention_follow(from, to);
	if (attentive[from] && (!attentive[to] || to == CONN_FAILED))
		conn_mark_unseen(conn, false);
	return true;
}

static void conn_unref(struct conn *conn)
{
	uint32_t state;

	if (atomic_fetch_sub(&conn->refs, 1) != 1)
		return;
	state = atomic_load(&conn->state);
	/* A thread may be in the middle of a step for a descriptor that another closes. */
	while (state == CONN_CLAIMED || !atomic_compare_exchange_weak(&conn->state, &state, CONN_FREE)) {
		sched_yield();
		state = atomic_load(&conn->state);
	}
	attention_follow((enum conn_state)state, CONN_FREE);
	conn_mark_unseen(conn, false);
	watch_forget(conn);
	conn_push_free(conn);
}

static void slot_set(_Atomic uint32_t *slot, struct conn *conn)
{
	uint32_t before = atomic_exchange(slot, conn ? conn->index + 1 : 0);

	if (before)
		conn_unref(conn_by_index(before - 1));
}

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return next.getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

struct conn *conn_add(int fd)
{
	_Atomic uint32_t *slot = slot_of(fd, true);
	struct conn *conn;

	if (!slot || getpid() != owner)
		return NULL;
	conn = conn_alloc();
	if (!conn)
		return NULL;
	memset(&conn->peer, 0, sizeof(conn->peer));
	conn->connect_told = conn->wrote = conn->syn_data = conn->want_output = false;
	conn->request_sent = 0;
	conn->rcvlowat = 0;
	for (size_t i = 0; i < CONN_WATCHES_MAX; i++)
		conn->watches[i].epfd = -1;
	conn->cookie = cookie_of(fd);
	atomic_store(&conn->error, 0);
	atomic_store(&conn->refs, 1);
	conn_move(conn, CONN_FREE, CONN_IDLE);
	slot_set(slot, conn);
	return conn;
}

static struct conn *slot_conn(int fd)
{
	_Atomic uint32_t *slot = slot_of(fd, false);
	uint32_t index = slot ? atomic_load_explicit(slot, memory_order_acquire) : 0;

	return index ? conn_by_index(index - 1) : NULL;
}

struct conn *conn_of(int fd)
{
	struct conn *conn = slot_conn(fd);

	return conn && conn->cookie == cookie_of(fd) ? conn : NULL;
}

struct conn *conn_attentive(int fd)
{
	struct conn *conn;

	if (conn_none_attentive())
		return NULL;
	conn = slot_conn(fd);
	return conn && attentive[conn_state(conn)] && conn->cookie == cookie_of(fd) ? conn : NULL;
}

struct conn *conn_unsettled(int fd)
{
	struct conn *conn = slot_conn(fd);
	enum conn_state state = conn ? conn_state(conn) : CONN_FREE;

	if (state != CONN_IDLE && state != CONN_PENDING && state != CONN_CLAIMED)
		return NULL;
	return conn->cookie == cookie_of(fd) ? conn : NULL;
}

bool conn_maybe(int fd)
{
	return slot_conn(fd) != NULL;
}

void conn_dup(int from, int to)
{
	struct conn *conn = conn_maybe(from) ? conn_of(from) : NULL;
	_Atomic uint32_t *slot;

	if (from == to || (!conn && !conn_maybe(to)) || getpid() != owner)
		return;
	slot = slot_of(to, conn != NULL);
	if (!slot)
		return;
	if (conn)
		atomic_fetch_add(&conn->refs, 1);
	slot_set(slot, conn);
}

void conn_forget(int fd)
{
	if (conn_maybe(fd) && getpid() == owner)
		slot_set(slot_of(fd, false), NULL);
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

static void claim_end(const struct conn_claim *claim)
{
	pthread_sigmask(SIG_SETMASK, &claim->mask, NULL);
	pthread_setcancelstate(claim->cancel_state, NULL);
}

bool conn_claim(struct conn *conn, enum conn_state from, struct conn_claim *claim)
{
	sigset_t all;

	sigfillset(&all);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &claim->cancel_state);
	pthread_sigmask(SIG_SETMASK, &all, &claim->mask);
	while (!conn_move(conn, from, CONN_CLAIMED)) {
		if (conn_state(conn) != from && conn_state(conn) != CONN_CLAIMED) {
			claim_end(claim);
			return false;
		}
		sched_yield();
	}
	return true;
}

enum conn_state conn_state_unclaimed(const struct conn *conn)
{
	enum conn_state state;

	while ((state = conn_state(conn)) == CONN_CLAIMED)
		sched_yield();
	return state;
}

void conn_release(struct conn *conn, enum conn_state state, const struct conn_claim *claim)
{
	conn_move(conn, CONN_CLAIMED, state);
	claim_end(claim);
}

void conn_each_pending(bool (*visit)(struct conn *conn, void *arg), void *arg)
{
	uint32_t count = atomic_load(&conn_count);

	for (uint32_t i = 0; i < count; i++) {
		struct conn *conn = conn_by_index(i);

		if (conn && conn_is_pending(conn) && !visit(conn, arg))
			return;
	}
}
