/* SPDX-License-Identifier: BSD-3-Clause */
/* renew.c - has subflows over networks that are silent made anew: outage.c says when */
#include "config.h"

#include "paths/renew.h"

#include "common/clock.h"

#include <string.h>

#define AGAIN_MS 1000 /* where the kernel couldn't be asked */
#define NEEDED_MS 100 /* while a connection waits for its subflow over another network */

static void say(const struct paths_mender *mender, const union sockaddr_ip *address, const char *what)
{
	const struct host_network *network = paths_wanted_used(&mender->wanted, address);
	char text[PREFIX_STRLEN];

	if (network)
		paths_say("%s %s: %s", network->link.name, host_format_address(address, text), what);
}

/* What is said of a network that is silent. NULL: it isn't. */
static const char *silence_of(const struct paths_outage *outage)
{
	if (outage->held)
		return "silent, as all are; subflows are kept here, and their peers are asked until an answer comes";
	if (outage->lasts)
		return "silent; connections go on over the others, and ask here until an answer comes";
	return NULL;
}

/* Says which networks have fallen silent, and which are heard again; @before is what was. */
static void tell(const struct paths_renewer *renewer, const struct paths_mender *mender, const struct paths_outages *before)
{
	for (size_t i = 0; i < renewer->outages.count; i++) {
		const struct paths_outage *outage = &renewer->outages.list[i];
		const char *now = silence_of(outage), *earlier = NULL;

		for (size_t j = 0; j < before->count; j++)
			if (sockaddr_ip_equal(&before->list[j].local, &outage->local))
				earlier = silence_of(&before->list[j]);
		if (now != earlier)
			say(mender, &outage->local, now ? now : "an answer has come");
	}
}

static void send_probes(struct paths_renewer *renewer, const struct paths_mender *mender, const struct paths_renewal *renewals,
			size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct host_network *network = paths_wanted_used(&mender->wanted, &renewals[i].local);

		if (renewals[i].ask && network)
			paths_probe_send(&renewer->probes, &renewals[i].local, network->link.index, &renewals[i].peer);
	}
}

static void take_answers(struct paths_renewer *renewer, int64_t now)
{
	union sockaddr_ip answered[PATHS_OUTAGES_MAX];
	size_t count = paths_probe_take(&renewer->probes, answered);

	for (size_t i = 0; i < count; i++)
		paths_outages_answered(&renewer->outages, &answered[i], now);
}

/* Is there a connection no more that has its last subflow over a network that has gone? */
static bool are_spared(const struct paths_renewer *renewer, const struct paths_wanted *wanted)
{
	bool needed[PATHS_OUTAGES_MAX];

	return wanted->needed_count &&
	       paths_needed_find(&renewer->subflows, wanted->needed, wanted->needed_count, needed) < wanted->needed_count;
}

int paths_renew(struct paths_renewer *renewer, struct paths_mender *mender)
{
	static struct paths_outages before;
	struct paths_own own[PATHS_OUTAGES_MAX];
	struct paths_renewal renewals[PATHS_OUTAGES_MAX];
	int64_t now = clock_ns();
	size_t count = paths_own_addresses(mender, own), due;
	int ret, interval;

	if (paths_kernel_subflows(&renewer->subflows) < 0)
		return AGAIN_MS;
	before.count = renewer->outages.count;
	memcpy(before.list, renewer->outages.list, sizeof(before.list));
	take_answers(renewer, now);
	due = paths_outages_find(&renewer->outages, &renewer->subflows, own, count, now, renewals);
	tell(renewer, mender, &before);
	send_probes(renewer, mender, renewals, due);
	ret = due ? paths_renew_endpoints(mender, renewals, due) : 0;
	if (ret < 0)
		return ret;
	mender->is_due = are_spared(renewer, &mender->wanted);
	interval = paths_outages_interval_ms(&renewer->outages, &renewer->subflows, now);
	return mender->wanted.needed_count && interval > NEEDED_MS ? NEEDED_MS : interval;
}
