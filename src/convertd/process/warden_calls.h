/* SPDX-License-Identifier: BSD-3-Clause */
/* warden_calls.h - carries out calls that need a right, in the main process, if the settings need them */
#ifndef CONVERTD_WARDEN_CALLS_H
#define CONVERTD_WARDEN_CALLS_H

#include "convertd/privilege/warden_policy.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct inherited;
struct settings;
struct warden_calls;

/*
 * warden_calls_create() - allow calls that @settings need
 * @argc, @argv: main()'s arguments, from which a reload reads the settings again
 * @inherited: calls may listen at its addresses, too, and take over its rules
 * Returns NULL without memory. Only warden_calls_destroy() accepts NULL.
 */
struct warden_calls *warden_calls_create(int argc, char **argv, const struct settings *settings,
					 const struct inherited *inherited);

/* Removes the rules and gives up the queues. NULL is fine. */
void warden_calls_destroy(struct warden_calls *calls);

/* Reads the settings again, and allows the calls that they need, too. Ignores errors, as the serving process reports them. */
void warden_calls_reload(struct warden_calls *calls);

/*
 * warden_calls_answer() - read one call from the socket @fd, carry it out, and answer it
 * A call that no settings need is refused. Returns false, after logging it, for a message that isn't a call: then the
 * serving process isn't convertd any more. At the end of the connection, @fd is closed and set to -1.
 */
bool warden_calls_answer(struct warden_calls *calls, int *fd);

/* Call warden_syns_poll() and warden_syns_serve(), which handle the queues of SYNs. */
size_t warden_calls_poll(const struct warden_calls *calls, struct pollfd *fds);
bool warden_calls_serve(struct warden_calls *calls, const struct pollfd *fds);

/* ----- the main process's rules and queues for SYNs ----- */

struct warden_syns;

/*
 * warden_syns_create() - prepare for rules and queues, without making any
 * @kept: the descriptor that owns the rules of the convertd before this one, which new rules replace, or -1; it stays
 *   the caller's
 * Returns NULL without memory.
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

/* Fills @fds with the descriptors on which poll() waits for verdicts. Returns their number. */
size_t warden_syns_poll(const struct warden_syns *syns, struct pollfd fds[WARDEN_QUEUES_MAX]);

/* Carries out the verdicts after poll(). Returns false for a message that doesn't consist of verdicts. */
bool warden_syns_serve(struct warden_syns *syns, const struct pollfd fds[WARDEN_QUEUES_MAX],
		       const struct warden_policy *policy);

#endif
