/* SPDX-License-Identifier: BSD-3-Clause */
/* flows.c - the changes of each subflow since the last look (no I/O) */
#include "config.h"

#include "paths/outage.h"

#include "common/clock.h"

#include <string.h>

#define FORGET_MS 3000   /* after this idle time a subflow doesn't count as paused when others are busy */
#define LIVELY_MS 300    /* a subflow that was heard within this time is heard now */
#define BUSY_RATE 50000  /* a subflow is busy from this rate on, in bytes a second */

static const struct paths_flow *find_flow(const struct paths_flows *flows, uint64_t cookie)
{
	for (size_t i = 0; i < flows->count; i++)
		if (flows->list[i].cookie == cookie)
			return &flows->list[i];
	return NULL;
}

static void note_rate(struct paths_flow *flow, const struct paths_flow *before, const struct paths_subflow *subflow, int64_t ms)
{
	if (ms <= 0)
		return;
	flow->current = (subflow->received - before->received) * 1000 / (uint64_t)ms;
	if (flow->current)
		flow->rate = (before->rate + flow->current) / 2;
	else if (subflow->heard_ms < FORGET_MS)
		flow->rate = before->rate;
}

static bool has_joined(const struct paths_subflows *subflows, uint32_t token)
{
	for (size_t i = 0; i < subflows->count; i++)
		if (subflows->list[i].token == token && subflows->list[i].joined && subflows->list[i].established)
			return true;
	return false;
}

void paths_flows_note(struct paths_flows *flows, const struct paths_subflows *subflows, int64_t now)
{
	static struct paths_flow next[PATHS_SUBFLOWS_MAX];
	static const struct paths_flow unknown;

	for (size_t i = 0; i < subflows->count; i++) {
		const struct paths_subflow *subflow = &subflows->list[i];
		const struct paths_flow *known = find_flow(flows, subflow->cookie), *before = known ? known : &unknown;
		struct paths_flow *flow = &next[i];

		*flow = (struct paths_flow){ .cookie = subflow->cookie, .received = subflow->received };
		flow->waits = paths_subflows_are_stalled(subflows, subflow->token);
		flow->stalled = flow->waits && before->waits;
		flow->confirmed = subflow->established && subflow->confirmed;
		flow->fresh = flow->confirmed && !before->confirmed;
		flow->may_return = before->may_return || has_joined(subflows, subflow->token);
		if (known)
			note_rate(flow, before, subflow, (now - flows->looked) / CLOCK_NS_PER_MS);
	}
	memcpy(flows->list, next, subflows->count * sizeof(next[0]));
	flows->count = subflows->count;
	flows->looked = now;
}

bool paths_flows_has_paused(const struct paths_flows *flows, const struct paths_subflows *subflows, size_t at)
{
	const struct paths_subflow *subflow = &subflows->list[at];

	if (flows->list[at].rate < BUSY_RATE || flows->list[at].current)
		return false;
	for (size_t i = 0; i < subflows->count; i++)
		if (subflows->list[i].token == subflow->token && !paths_subflow_is_from(&subflows->list[i], &subflow->local) &&
		    subflows->list[i].heard_ms < LIVELY_MS && flows->list[i].current >= BUSY_RATE)
			return true;
	return false;
}

bool paths_flows_have_stalled(const struct paths_flows *flows, const struct paths_subflows *subflows, const union sockaddr_ip *local)
{
	for (size_t i = 0; i < subflows->count; i++)
		if (paths_subflow_is_from(&subflows->list[i], local) && subflows->list[i].established && flows->list[i].stalled)
			return true;
	return false;
}

bool paths_flows_are_fresh(const struct paths_flows *flows, const struct paths_subflows *subflows, const union sockaddr_ip *local)
{
	for (size_t i = 0; i < subflows->count; i++)
		if (paths_subflow_is_from(&subflows->list[i], local) && subflows->list[i].joined && flows->list[i].fresh)
			return true;
	return false;
}

bool paths_flows_may_return(const struct paths_flows *flows, const struct paths_subflows *subflows, const union sockaddr_ip *local)
{
	for (size_t i = 0; i < subflows->count; i++)
		if (paths_subflow_is_from(&subflows->list[i], local) && !flows->list[i].may_return)
			return false;
	return !subflows->more;
}
