/* SPDX-License-Identifier: BSD-3-Clause */
/* renew.h - has subflows over networks that are silent made anew */
#ifndef PATHS_RENEW_H
#define PATHS_RENEW_H

#include "paths/mend.h"
#include "paths/outage.h"
#include "paths/probe.h"

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

#endif
