/* SPDX-License-Identifier: BSD-3-Clause */
/* renew.c - has subflows over networks that are silent made anew: outage.c says when */
#include "config.h"

#include "paths/renew.h"

#include "common/clock.h"

#include <stdio.h>
#include <string.h>

#define AGAIN_MS 1000 /* where the kernel couldn't be asked */

static void say(const struct paths_mender *mender, const union sockaddr_ip *address, const char *what)
{
	char text[PREFIX_STRLEN];

	for (size_t i = 0; i < mender->wanted.count; i++)
		if (sockaddr_ip_equal(&mender->wanted.networks[i].address, address))
			fprintf(stderr, "convertize: paths: %s %s: %s\n", mender->wanted.networks[i].link.name,
				paths_format_address(address, text), what);
}

/* Says which networks have fallen silent, and which are heard again; @before is what lasted. */
static void tell(const struct paths_renewer *renewer, const struct paths_mender *mender, const struct paths_outages *before)
{
	for (size_t i = 0; i < renewer->outages.count; i++) {
		const struct paths_outage *now = &renewer->outages.list[i];
		bool lasted = false;

		for (size_t j = 0; j < before->count; j++)
			lasted = lasted || (before->list[j].lasts && sockaddr_ip_equal(&before->list[j].local, &now->local));
		if (now->lasts && !lasted)
			say(mender, &now->local, "silent; connections go on over the others, and ask here until an answer comes");
		if (!now->lasts && lasted)
			say(mender, &now->local, "an answer has come");
	}
}

int paths_renew(struct paths_renewer *renewer, struct paths_mender *mender)
{
	static struct paths_outages before;
	union sockaddr_ip addresses[PATHS_OUTAGES_MAX];
	struct paths_renewal renewals[PATHS_OUTAGES_MAX];
	int64_t now = clock_ns();
	size_t count = paths_own_addresses(mender, addresses), due;
	int ret;

	if (paths_kernel_subflows(&renewer->subflows) < 0)
		return AGAIN_MS;
	before.count = renewer->outages.count;
	memcpy(before.list, renewer->outages.list, sizeof(before.list));
	due = paths_outages_find(&renewer->outages, &renewer->subflows, addresses, count, now, renewals);
	tell(renewer, mender, &before);
	ret = due ? paths_renew_endpoints(mender, renewals, due) : 0;
	return ret < 0 ? ret : paths_outages_interval_ms(&renewer->outages, &renewer->subflows, now);
}
