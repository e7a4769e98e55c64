/* SPDX-License-Identifier: BSD-3-Clause */
/* subflow_facts.c - answers questions about subflows from the kernel's facts at one look (no I/O) */
#include "config.h"

#include "paths/outage.h"

#define SILENT_MS 700 /* besides two round trips: on a working path Linux repairs a lost burst in less */

bool paths_is_among(const union sockaddr_ip *address, const union sockaddr_ip *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (sockaddr_ip_equal(address, &list[i]))
			return true;
	return false;
}

bool paths_subflow_is_from(const struct paths_subflow *subflow, const union sockaddr_ip *local)
{
	return sockaddr_ip_equal(&subflow->local, local);
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

bool paths_subflows_are_heard(const struct paths_subflows *subflows, const union sockaddr_ip *local)
{
	for (size_t i = 0; i < subflows->count; i++)
		if (paths_subflow_is_from(&subflows->list[i], local) && subflows->list[i].established &&
		    !paths_subflow_is_quiet(&subflows->list[i]))
			return true;
	return false;
}

bool paths_subflows_go_on(const struct paths_subflows *subflows, uint32_t token, const union sockaddr_ip *without, size_t count)
{
	for (size_t i = 0; i < subflows->count; i++)
		if (subflows->list[i].token == token && subflows->list[i].established &&
		    !paths_is_among(&subflows->list[i].local, without, count))
			return true;
	return false;
}

bool paths_subflows_are_open(const struct paths_subflows *subflows, const union sockaddr_ip *local)
{
	for (size_t i = 0; i < subflows->count; i++)
		if (paths_subflow_is_from(&subflows->list[i], local) && subflows->list[i].established)
			return true;
	return false;
}

bool paths_subflows_ask(const struct paths_subflows *subflows, const union sockaddr_ip *local)
{
	for (size_t i = 0; i < subflows->count; i++)
		if (paths_subflow_is_from(&subflows->list[i], local) && !subflows->list[i].established)
			return true;
	return false;
}

int64_t paths_subflows_rtt_elsewhere_ms(const struct paths_subflows *subflows, const union sockaddr_ip *local)
{
	int64_t longest = -1;

	for (size_t i = 0; i < subflows->count; i++) {
		const struct paths_subflow *subflow = &subflows->list[i];

		if (subflow->established && !paths_subflow_is_from(subflow, local) && !paths_subflow_is_quiet(subflow) &&
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

bool paths_subflows_are_stalled(const struct paths_subflows *subflows, uint32_t token)
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

			if (paths_subflow_is_from(&subflows->list[i], &addresses[j]) && place < best)
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
