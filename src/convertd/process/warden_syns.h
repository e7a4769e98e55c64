/* SPDX-License-Identifier: BSD-3-Clause */
/* warden_syns.h - the main process's rules and queues for SYNs */
#ifndef CONVERTD_WARDEN_SYNS_H
#define CONVERTD_WARDEN_SYNS_H

#include "convertd/privilege/warden_policy.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct warden_syns;

/*
 * warden_syns_create() - prepare for rules and queues, and make none yet
 * @kept: the descriptor that owns the rules of the convertd before this one, which the new ones are to replace, or -1; it
 * stays the caller's. Returns NULL without memory.
 */
struct warden_syns *warden_syns_create(int kept);

/* Gives up all rules and queues. NULL is fine. */
void warden_syns_destroy(struct warden_syns *syns);

/*
 * warden_syns_answer() - carry out a call about rules or queues that @policy allows
 * @answer: gets the number of the first queue, if the call makes queues; whether rules refuse SYNs, if it makes rules
 * @passed: set to the descriptor to send with the answer, if there is one
 * @ours: set to whether that descriptor stays open here; if not, the caller closes it once it is sent
 * Returns 0 or -errno.
 */
int warden_syns_answer(struct warden_syns *syns, const struct warden_policy *policy,
		       const struct warden_call *call, struct warden_answer *answer, int *passed,
		       bool *ours);

/* Fills @fds with what poll() is to watch for verdicts. Returns the number of entries. */
size_t warden_syns_poll(const struct warden_syns *syns, struct pollfd fds[WARDEN_QUEUES_MAX]);

/* Carries out the verdicts that poll() has found. Returns false for a message that doesn't consist of verdicts. */
bool warden_syns_serve(struct warden_syns *syns, const struct pollfd fds[WARDEN_QUEUES_MAX],
		       const struct warden_policy *policy);

#endif
