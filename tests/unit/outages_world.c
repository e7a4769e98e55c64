/* SPDX-License-Identifier: BSD-3-Clause */
/* outages_world.c - see outages_world.h */
#include "config.h"

#include "outages_world.h"

#include <string.h>

static const char *const texts[] = { "192.0.2.2", "198.51.100.2" };
union sockaddr_ip addresses[NETWORKS];
struct paths_managed own[NETWORKS];
struct paths_outages outages;
struct paths_subflows subflows;
struct paths_renewal renewals[PATHS_OUTAGES_MAX];
size_t done;
int64_t now;
static uint64_t cookies;

static union sockaddr_ip address_of(union sockaddr_ip *out, const char *text)
{
	ck_assert_int_eq(sockaddr_ip_parse(out, text, 0), 0);
	return *out;
}

void begin(void)
{
	memset(&outages, 0, sizeof(outages));
	memset(&subflows, 0, sizeof(subflows));
	now = 1000 * CLOCK_NS_PER_S;
	for (size_t i = 0; i < NETWORKS; i++)
		own[i] = (struct paths_managed){ address_of(&addresses[i], texts[i]), true };
}

struct paths_subflow *put_subflow(size_t at, uint32_t token, int network)
{
	struct paths_subflow *subflow = &subflows.list[at];

	*subflow = (struct paths_subflow){
		.cookie = ++cookies, .token = token, .local = addresses[network], .established = true, .rtt_ms = 20
	};
	return subflow;
}

struct paths_subflow *add_subflow(uint32_t token, int network)
{
	return put_subflow(subflows.count++, token, network);
}

void look_after(int ms)
{
	now += ms * CLOCK_NS_PER_MS;
	for (size_t i = 0; i < subflows.count; i++)
		subflows.list[i].heard_ms += (uint32_t)ms;
	done = paths_outages_find(&outages, &subflows, own, NETWORKS, now, renewals);
}

const struct paths_renewal *renewal_of(int network)
{
	static const struct paths_renewal nothing;

	for (size_t i = 0; i < done; i++)
		if (sockaddr_ip_equal(&renewals[i].local, &addresses[network]))
			return &renewals[i];
	return &nothing;
}

void hear(struct paths_subflow *subflow, uint64_t bytes)
{
	subflow->heard_ms = 0;
	subflow->received += bytes;
}

void renewed(struct paths_subflow *subflow)
{
	subflow->cookie = ++cookies;
	subflow->established = false;
	subflow->unanswered = subflow->incomplete = false;
	subflow->received = 0;
}
