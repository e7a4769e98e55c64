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
 * warden_syns_create() - prepares for rules and queues, and makes none yet
 * @kept: the descriptor of a process before this one whose rules these are to replace, or -1; it
 * stays the caller's. Returns NULL without memory.
 */
struct warden_syns *warden_syns_create(int kept);

/* Gives up all rules and queues. NULL is fine. */
void warden_syns_destroy(struct warden_syns *syns);

/*
 * warden_syns_answer() - carries out a call about rules or queues that @policy allows
 * @passed: the descriptor to send with the answer, or -1
 * @ours: set to whether that descriptor stays open here; else the caller closes it once it is sent
 * Returns 0 or -errno.
 */
int warden_syns_answer(struct warden_syns *syns, const struct warden_policy *policy,
		       const struct warden_call *call, struct warden_answer *answer, int *passed,
		       bool *ours);

/* Fills in what poll() is to watch for verdicts. Returns how many entries that are. */
size_t warden_syns_poll(const struct warden_syns *syns, struct pollfd fds[WARDEN_QUEUES_MAX]);

/* Carries out the verdicts that poll() has found. Returns false for a message that isn't one of verdicts. */
bool warden_syns_serve(struct warden_syns *syns, const struct pollfd fds[WARDEN_QUEUES_MAX],
		       const struct warden_policy *policy);

#endif
