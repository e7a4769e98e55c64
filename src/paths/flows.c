/* SPDX-License-Identifier: BSD-3-Clause */
/* flows.c - facts about subflows, at one look and since the last one (no I/O) */
#include "config.h"

#include "paths/outage.h"

#include "common/clock.h"

#include <string.h>

/* --- at one look --- */

#define SILENT_MS 700 /* besides two round trips: on a working path Linux repairs a lost burst in less */

bool paths_is_among(const union sockaddr_ip *address, const union sockaddr_ip *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (sockaddr_ip_equal(address, &list[i]))
			return true;
	return false;
}

uint32_t paths_subflow_quiet_in_ms(const struct paths_subflow *subflow)
{
	uint32_t limit = SILENT_MS + 2 * subflow->rtt_ms;

	return subflow->heard_ms < limit ? limit - subflow->heard_ms : 0;
}

bool paths_subflow_is_quiet(const struct paths_subflow *subflow)
{
	return paths_subflow_quiet_in_ms(subflow) == 0;
}

bool paths_subflows_go_on(const struct paths_subflows *subflows, uint32_t token, const union sockaddr_ip *without, size_t count)
{
	for (size_t i = 0; i < subflows->count; i++)
		if (subflows->list[i].token == token && subflows->list[i].established &&
		    !paths_is_among(&subflows->list[i].local, without, count))
			return true;
	return false;
}

int64_t paths_subflows_rtt_elsewhere_ms(const struct paths_subflows *subflows, const union sockaddr_ip *local)
{
	int64_t longest = -1;

	for (size_t i = 0; i < subflows->count; i++) {
		const struct paths_subflow *subflow = &subflows->list[i];

		if (subflow->established && !sockaddr_ip_equal(&subflow->local, local) && !paths_subflow_is_quiet(subflow) &&
		    subflow->rtt_ms > longest)
			longest = subflow->rtt_ms;
	}
	return longest;
}

bool paths_subflows_are_stranded(const struct paths_subflows *subflows)
{
	for (size_t i = 0; i < subflows->count; i++)
		if (subflows->list[i].joined && !paths_subflows_go_on(subflows, subflows->list[i].token, NULL, 0))
			return true;
	return false;
}

/*
 * Does the connection wait for its peer, though none of its subflows does? Then the peer dropped data that TCP had acknowledged, since it
 * exceeded the connection's window: see doc/kernel-mptcp-outages.md.
 */
static bool is_stalled(const struct paths_subflows *subflows, uint32_t token)
{
	bool found = false;

	for (size_t i = 0; i < subflows->count; i++) {
		const struct paths_subflow *subflow = &subflows->list[i];

		if (subflow->token != token || !subflow->established)
			continue;
		if (!subflow->drained || subflow->owed < PATHS_STALLED_BYTES)
			return false;
		found = true;
	}
	return found;
}

/* Returns the index of the first address from which the connection has a subflow, preferably an established one; @count: none. */
static size_t first_of(const struct paths_subflows *subflows, uint32_t token, const union sockaddr_ip *addresses, size_t count)
{
	size_t best = 2 * count;

	for (size_t i = 0; i < subflows->count; i++)
		for (size_t j = 0; j < count && subflows->list[i].token == token; j++) {
			size_t place = j + (subflows->list[i].established ? 0 : count);

			if (sockaddr_ip_equal(&subflows->list[i].local, &addresses[j]) && place < best)
				best = place;
		}
	return best == 2 * count ? count : best % count;
}

size_t paths_needed_find(const struct paths_subflows *subflows, const union sockaddr_ip *addresses, size_t count, bool needed[])
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		needed[i] = subflows->more;
	if (subflows->more)
		return count;
	for (size_t i = 0; i < subflows->count; i++) {
		union sockaddr_ip without[PATHS_OUTAGES_MAX];
		size_t gone = 0, first;

		for (size_t j = 0; j < count; j++)
			if (!needed[j])
				without[gone++] = addresses[j];
		if (paths_subflows_go_on(subflows, subflows->list[i].token, without, gone))
			continue;
		first = first_of(subflows, subflows->list[i].token, addresses, count);
		if (first == count || needed[first])
			continue;
		needed[first] = true;
		found++;
	}
	return found;
}

/* --- since the last one --- */

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
		flow->waits = is_stalled(subflows, subflow->token);
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
		if (subflows->list[i].token == subflow->token && !sockaddr_ip_equal(&subflows->list[i].local, &subflow->local) &&
		    subflows->list[i].heard_ms < LIVELY_MS && flows->list[i].current >= BUSY_RATE)
			return true;
	return false;
}

struct paths_signs paths_signs_of(const struct paths_flows *flows, const struct paths_subflows *subflows, const union sockaddr_ip *local)
{
	struct paths_signs out = { .may_return = !subflows->more };

	for (size_t i = 0; i < subflows->count; i++) {
		const struct paths_subflow *subflow = &subflows->list[i];
		const struct paths_flow *flow = &flows->list[i];

		if (!sockaddr_ip_equal(&subflow->local, local))
			continue;
		out.open |= subflow->established;
		out.asks |= !subflow->established;
		out.heard |= subflow->established && !paths_subflow_is_quiet(subflow);
		out.stalled |= subflow->established && flow->stalled;
		out.fresh |= subflow->joined && flow->fresh;
		out.may_return &= flow->may_return;
	}
	return out;
}
