/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_phase.c - the phases of a connection, which of them may follow which, and the atomic word that holds one */
#include "config.h"

#include "shim/socket/conn.h"

#include "client/client_log.h"
#include "common/thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static const char *const names[] = {
	[CONN_FREE] = "FREE",
	[CONN_IDLE] = "IDLE",
	[CONN_STARTING] = "STARTING",
	[CONN_DEFERRED] = "DEFERRED",
	[CONN_RESOLVING] = "RESOLVING",
	[CONN_SYN_SENT] = "SYN_SENT",
	[CONN_ASKED] = "ASKED",
	[CONN_CONFIRMED] = "CONFIRMED",
	[CONN_BYPASS] = "BYPASS",
	[CONN_BYPASSED] = "BYPASSED",
	[CONN_EARLY_DIRECT] = "EARLY_DIRECT",
	[CONN_DIRECT] = "DIRECT",
	[CONN_DONE] = "DONE",
	[CONN_FAILED] = "FAILED",
	[CONN_DISSOLVED] = "DISSOLVED",
};
static_assert(sizeof(names) / sizeof(names[0]) == CONN_PHASE_COUNT, "a name for each phase");
static_assert(CONN_PHASE_COUNT <= 32, "a bit for each phase in a set");

/* After a converter has failed: the next one, or none. */
#define ASKED_ON (PHASE(RESOLVING) | PHASE(SYN_SENT) | PHASE(ASKED) | PHASE(EARLY_DIRECT))
#define GIVEN_UP (PHASE(FAILED) | PHASE(DISSOLVED) | PHASE(FREE))

/* By the phase before. */
static const uint32_t followers[] = {
	[CONN_FREE] = PHASE(IDLE),
	[CONN_IDLE] = PHASE(STARTING) | PHASE(DIRECT) | PHASE(FREE) |
		      /* exec(): the phase in the program before */
		      PHASE(SYN_SENT) | PHASE(DONE) | PHASE(FAILED) | PHASE(DISSOLVED),
	[CONN_STARTING] = PHASE(DEFERRED) | PHASE(RESOLVING) | PHASE(SYN_SENT) | PHASE(ASKED) | PHASE(BYPASS) | PHASE(IDLE) |
			  PHASE(DIRECT) | PHASE(FAILED),
	[CONN_DEFERRED] = ASKED_ON | GIVEN_UP,
	[CONN_RESOLVING] = ASKED_ON | PHASE(DIRECT) | GIVEN_UP,
	[CONN_SYN_SENT] = ASKED_ON | PHASE(CONFIRMED) | PHASE(DIRECT) | PHASE(DONE) | GIVEN_UP,
	[CONN_ASKED] = ASKED_ON | PHASE(DIRECT) | PHASE(DONE) | GIVEN_UP,
	[CONN_CONFIRMED] = PHASE(DONE) | GIVEN_UP,
	[CONN_BYPASS] = PHASE(BYPASSED) | PHASE(DIRECT) | GIVEN_UP,
	[CONN_BYPASSED] = PHASE(DIRECT) | GIVEN_UP,
	[CONN_EARLY_DIRECT] = PHASE(DIRECT) | GIVEN_UP,
	[CONN_DIRECT] = PHASE(IDLE) | PHASE(DISSOLVED) | PHASE(FREE),
	[CONN_DONE] = PHASE(IDLE) | PHASE(DISSOLVED) | PHASE(FREE),
	[CONN_FAILED] = PHASE(IDLE) | PHASE(DISSOLVED) | PHASE(FREE),
	[CONN_DISSOLVED] = PHASE(IDLE) | PHASE(FREE),
};
static_assert(sizeof(followers) / sizeof(followers[0]) == CONN_PHASE_COUNT, "the followers of each phase");

const char *phase_name(enum conn_phase phase)
{
	return phase < CONN_PHASE_COUNT ? names[phase] : "none";
}

bool phase_may_follow(enum conn_phase from, enum conn_phase to)
{
	return from < CONN_PHASE_COUNT && to < CONN_PHASE_COUNT && phase_in(to, followers[from]);
}

/* --- the word of a conn --- */

static void counts_follow(enum conn_phase from, enum conn_phase to)
{
	bool was = phase_in(from, PHASES_HANDLED), is = phase_in(to, PHASES_HANDLED);

	if (was != is)
		atomic_fetch_add(&conn_handled_count, is ? 1 : -1u);
	if ((from == CONN_DEFERRED) != (to == CONN_DEFERRED))
		atomic_fetch_add(&conn_deferred, to == CONN_DEFERRED ? 1 : -1u);
}

void conn_mark_unseen(struct conn *conn, bool unseen)
{
	if (unseen) {
		atomic_store(&conn->unseen_by, (uintptr_t)pthread_self());
		atomic_store(&conn->looks[false], 0);
		atomic_store(&conn->looks[true], 0);
	}
	if (atomic_exchange(&conn->unseen, unseen) != unseen)
		atomic_fetch_add(&conn_unseen, unseen ? 1 : -1u);
	if (unseen && !conn_is_pending(conn)) /* settled by another thread meanwhile */
		conn_mark_unseen(conn, false);
}

static enum conn_phase phase_of(uint32_t word)
{
	return (enum conn_phase)(word & CONN_PHASE_MASK);
}

/* Reports a fault of this library: a developer shall see it at once, while other people's programs continue. */
static void phase_forbidden(enum conn_phase from, enum conn_phase to)
{
	log_line("a fault of libconvert: phase %s after %s; please report it", phase_name(to), phase_name(from));
#if defined(WITH_ASSERTIONS) || defined(WITH_SANITIZERS)
	abort();
#endif
}

/* Makes the changes that depend on the phase. */
static void phase_follow(struct conn *conn, enum conn_phase from, enum conn_phase to)
{
	if (from == to)
		return;
	if (!phase_may_follow(from, to))
		phase_forbidden(from, to);
	if (phase_in(from, PHASES_HANDLED) && !phase_in(to, PHASES_PENDING | PHASE(DEFERRED)))
		conn_mark_unseen(conn, false);
}

/*
 * Replaces @before, the word of @conn, by one with the phase @to and the claim bit @claimed. Returns false, with the word in @before, if
 * another thread has changed it.
 */
static bool word_replace(struct conn *conn, uint32_t *before, enum conn_phase to, uint32_t claimed)
{
	enum conn_phase from = phase_of(*before);
	uint32_t after = to | claimed | (to == CONN_IDLE ? 0 : *before & CONN_NOTES);
	bool rises = phase_in(to, PHASES_HANDLED);

	/* After its last phase the conn may belong to another socket at once, so set this first. */
	if (from != to && phase_in(to, PHASE(DIRECT) | PHASE(DONE)))
		conn->socket.watches_lost = true; /* epoll_ctl() isn't followed there */
	/* Increase before and decrease after: a fork() in between copies a count that is too high, never too low. */
	if (rises)
		counts_follow(from, to);
	if (!atomic_compare_exchange_strong(&conn->word, before, after)) {
		if (rises)
			counts_follow(to, from);
		return false;
	}
	if (!rises)
		counts_follow(from, to);
	phase_follow(conn, from, to);
	return true;
}

bool conn_move(struct conn *conn, enum conn_phase from, enum conn_phase to)
{
	uint32_t word = conn_word(conn);

	do {
		if ((word & (CONN_PHASE_MASK | CONN_CLAIMED)) != from)
			return false;
	} while (!word_replace(conn, &word, to, 0));
	return true;
}

int conn_take_error(struct conn *conn)
{
	int error = atomic_exchange(&conn->error, 0);

	conn_move(conn, CONN_DISSOLVED, CONN_IDLE);
	return error;
}

void conn_end(struct conn *conn)
{
	unsigned int turn = 0;
	uint32_t word = conn_word(conn);

	while ((word & CONN_CLAIMED) || !word_replace(conn, &word, CONN_FREE, 0)) {
		patience(&turn);
		word = conn_word(conn);
	}
}

bool conn_claim(struct conn *conn, uint32_t phases, struct conn_claim *claim)
{
	unsigned int turn = 0;
	uint32_t word;

	quiet_all(&claim->quiet);
	for (;;) {
		word = conn_word(conn);
		if (word & CONN_CLAIMED) {
			patience(&turn);
		} else if (!phase_in(phase_of(word), phases)) {
			quiet_end(&claim->quiet);
			return false;
		} else {
			claim->from = phase_of(word);
			if (word_replace(conn, &word, claim->from == CONN_IDLE ? CONN_STARTING : claim->from, CONN_CLAIMED))
				return true;
		}
	}
}

bool conn_claim_of(struct conn *conn, int fd, uint32_t phases, struct conn_claim *claim)
{
	if (!conn_claim(conn, phases, claim))
		return false;
	atomic_thread_fence(memory_order_seq_cst); /* slot_clear() empties the slot, and then waits for our claim */
	if ((conn_unverified(fd) == conn || !conn_is_owner()) && conn->cookie == kernel_cookie(fd))
		return true;
	conn_release(conn, claim->from, claim);
	return false;
}

void conn_release(struct conn *conn, enum conn_phase to, const struct conn_claim *claim)
{
	uint32_t word = conn_word(conn);

	while (!word_replace(conn, &word, to, 0)) /* a note was made */
		;
	quiet_end(&claim->quiet);
}

enum conn_phase conn_phase_unclaimed(const struct conn *conn)
{
	unsigned int turn = 0;
	uint32_t word;

	while ((word = conn_word(conn)) & CONN_CLAIMED)
		patience(&turn);
	return phase_of(word);
}
