/* SPDX-License-Identifier: BSD-3-Clause */
/* probe.h - asks by a SYN of plain TCP whether a network works */
#ifndef PATHS_PROBE_H
#define PATHS_PROBE_H

#include "paths/outage.h"

#include <poll.h>

struct paths_probe {
	union sockaddr_ip local;
	int fd;
};

struct paths_probes {
	struct paths_probe list[PATHS_OUTAGES_MAX];
	size_t count;
};

/*
 * paths_probe_send() - send a SYN; one that was sent from the same address before is no longer waited for
 * @index: of the device that it goes over
 * What can't be sent is as what isn't answered.
 */
void paths_probe_send(struct paths_probes *probes, const union sockaddr_ip *local, unsigned int index, const union sockaddr_ip *peer);

/* Sets @out to what poll(2) is to wait for, so that no answer is waited for longer than it takes. Returns how many. */
size_t paths_probe_poll(const struct paths_probes *probes, struct pollfd out[static PATHS_OUTAGES_MAX]);

/*
 * paths_probe_take() - which addresses have had an answer, without waiting
 * A refusal is an answer, too. Sets @out, returns how many; of these no answer is waited for any longer.
 */
size_t paths_probe_take(struct paths_probes *probes, union sockaddr_ip out[static PATHS_OUTAGES_MAX]);

/* Waits for no answer from now on. */
void paths_probe_end(struct paths_probes *probes);

#endif
