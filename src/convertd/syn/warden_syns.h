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
 * warden_syns_create() - no rules and queues yet
 * @kept: the descriptor of a process before this one whose rules these are to replace, or -1; it
 * stays the caller's. Returns NULL without memory.
 */
struct warden_syns *warden_syns_create(int kept);

/* Gives up all of them. NULL is fine. */
void warden_syns_destroy(struct warden_syns *syns);

/*
 * warden_syns_answer() - a call about rules or queues that @policy allows
 * @passed: the descriptor to send with the answer, or -1; stays ours unless @ours says false
 * Returns 0 or -errno.
 */
int warden_syns_answer(struct warden_syns *syns, const struct warden_policy *policy,
		       const struct warden_call *call, struct warden_answer *answer, int *passed,
		       bool *ours);

/* Sets what to poll for verdicts. Returns how many. */
size_t warden_syns_poll(const struct warden_syns *syns, struct pollfd fds[WARDEN_QUEUES_MAX]);

/* Serves those that poll() has found. Returns false for a message that is none of verdicts. */
bool warden_syns_serve(struct warden_syns *syns, const struct pollfd fds[WARDEN_QUEUES_MAX],
		       const struct warden_policy *policy);

#endif
