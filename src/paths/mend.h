/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mend.h - what the service does at each look: makes what is wanted (mend.c), and renews subflows over silent networks (renew.c)
 */
#ifndef PATHS_MEND_H
#define PATHS_MEND_H

#include "paths/kernel.h"
#include "paths/outage.h"
#include "paths/plan.h"

#include <poll.h>

struct paths_mender {
	struct paths_kernel kernel;
	struct paths_choice choice;
	struct host_managers others;
	int64_t others_at; /* when they were looked for, by CLOCK_MONOTONIC in nanoseconds; 0: never, or it is to be done again */
	struct paths_memory memory;
	struct paths_wanted wanted; /* as of the last time */
	bool is_due;                /* networks that have gone are needed by fewer connections than at the last look: paths_mend() is due */
	bool dry_run;               /* print commands on standard output, and change nothing */
	char problem[PATHS_COMMAND_MAX + 128]; /* what was said last to have failed, so as to say it once */
};

/* Writes a line to standard error. Control characters of foreign names are replaced. */
void paths_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Opens the kernel's interfaces and reads the file. Returns 0, or -errno after saying what has failed. */
int paths_mender_init(struct paths_mender *mender, const struct paths_choice *choice, bool dry_run);
void paths_mender_fini(struct paths_mender *mender);

/*
 * paths_mend() - look at the kernel, and do what is to be done
 * What has changed since the last time is said on standard error, so is what fails. Returns 0, or -errno if something has failed
 * and is worth another try.
 */
int paths_mend(struct paths_mender *mender);

/*
 * paths_unmend() - take away what was made, also by an earlier process; returns as paths_mend()
 * @open: the subflows that there are; the networks that they can't do without are left, as few as possible, and are
 *     remembered: the next process takes them over, or away. NULL: nothing is left, whatever becomes of connections.
 */
int paths_unmend(struct paths_mender *mender, const struct paths_subflows *open);

/*
 * paths_managed_addresses() - the addresses whose endpoints are ours, as of the last look
 * The preferred networks come first, and last those that are gone, whose endpoints are kept. Returns how many there are.
 */
size_t paths_managed_addresses(const struct paths_mender *mender, struct paths_managed out[static PATHS_OUTAGES_MAX]);

/*
 * paths_renew_endpoints() - take endpoints away, or make them as they were, or both, in the order of @renewals; or prompt their peers
 * Only those that are remembered. Returns as paths_mend().
 */
int paths_renew_endpoints(struct paths_mender *mender, const struct paths_renewal *renewals, size_t count);

/* --- renew.c --- */

/* SYNs of plain TCP that are out, one for each network. */
struct paths_probes {
	struct {
		union sockaddr_ip local;
		int fd;
	} list[PATHS_OUTAGES_MAX];
	size_t count;
};

struct paths_renewer {
	struct paths_outages outages;
	struct paths_subflows subflows;
	struct paths_probes probes;
};

/*
 * paths_renew() - look at all subflows, and renew those of networks that have fallen silent
 * @mender: has looked at the kernel before: its endpoints are the ones that are taken away and made anew.
 * Returns how many milliseconds later the next look is due, or -errno if an endpoint isn't there any more, which paths_mend() cures.
 */
int paths_renew(struct paths_renewer *renewer, struct paths_mender *mender);

/* Sets @out to what poll(2) is to wait for, so that no answer is waited for longer than it takes. Returns how many. */
size_t paths_probes_poll(const struct paths_probes *probes, struct pollfd out[static PATHS_OUTAGES_MAX]);

/* Waits for no answer from now on. */
void paths_probes_end(struct paths_probes *probes);

#endif
