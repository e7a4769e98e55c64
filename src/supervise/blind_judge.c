/* SPDX-License-Identifier: BSD-3-Clause */
/* blind_judge.c - judges how a blind request fares, and remembers servers that blind requests don't suit */
#include "config.h"

#include "supervise/blind.h"

#include "common/clock.h"

#define FIRST_LOOK_NS (50 * CLOCK_NS_PER_MS)
#define PROBE_NS (BLIND_PROBE_MS * CLOCK_NS_PER_MS)
#define REPEAT_NS (BLIND_REPEAT_MS * CLOCK_NS_PER_MS)

/* Allowance for the variation of a round trip, beside a quarter of it. */
#define SLACK_NS (50 * CLOCK_NS_PER_MS)

int64_t blind_repeat_after(int64_t withheld, int64_t rtt)
{
	const int64_t answered = withheld + rtt + rtt / 4 + SLACK_NS;

	return rtt && answered < REPEAT_NS ? answered : REPEAT_NS;
}

int64_t blind_first_look(int64_t now)
{
	return now + FIRST_LOOK_NS;
}

/* We look shortly before the converter gives the server up, to tell its reset for a slow server from a refusal. */
#define MARGIN_NS (20 * CLOCK_NS_PER_MS)

static int64_t limit_of(const struct blind_request *request)
{
	return request->syn_at + request->withheld - MARGIN_NS;
}

static enum blind_verdict judge_syn_sent(struct blind_request *request, int64_t now, int64_t patience, int64_t *look_at)
{
	const int64_t waited = now - request->syn_at;
	const bool may_repeat = request->repeatable && request->repeats < request->repeats_max;

	request->waiting_at = now;
	if (may_repeat && waited >= request->repeat_after)
		return BLIND_REPEAT;
	if (!request->silent_at && now - request->started >= patience) {
		request->silent_at = now;
		*look_at = now + FIRST_LOOK_NS;
		return BLIND_SILENT;
	}
	if (!may_repeat && waited >= patience && now - request->silent_at >= PROBE_NS)
		return BLIND_TO_KERNEL;
	*look_at = now + (waited > FIRST_LOOK_NS ? waited : FIRST_LOOK_NS);
	if (now < limit_of(request) && *look_at > limit_of(request))
		*look_at = limit_of(request);
	else if (may_repeat && *look_at > request->syn_at + request->repeat_after)
		*look_at = request->syn_at + request->repeat_after;
	return BLIND_OPEN;
}

/*
 * If we have used up our repeats, and only the kernel's SYN without data got through, the path drops data in SYNs. With fewer repeats, the
 * path may have lost one SYN, and we were late with the next: then the converter reset the kernel's own SYN. That reset says nothing about
 * the server. Nor does a reset by a converter that would still have waited for our next SYN.
 */
static enum blind_verdict judge_gone(const struct blind_request *request, int64_t now)
{
	if (request->repeats == request->repeats_max)
		return BLIND_UNTAKEN;
	if (request->repeats_max > BLIND_REPEATS_MAX || now - request->syn_at >= BLIND_KERNEL_REPEATS_NS)
		return BLIND_GONE;
	return request->waiting_at >= limit_of(request) ? BLIND_SLOW : BLIND_GONE;
}

enum blind_verdict blind_judge(struct blind_request *request, const struct blind_seen *seen, int64_t now, int64_t patience,
			       int64_t *look_at)
{
	if (!seen->exists)
		return judge_gone(request, now);
	if (seen->syn_sent)
		return judge_syn_sent(request, now, patience, look_at);
	if (!seen->answered || seen->taken)
		return BLIND_TAKEN;
	return seen->syn_repeated ? BLIND_GONE : BLIND_UNTAKEN;
}

/* --- servers that were too slow for a blind request, or for which one has failed --- */

#define REMEMBERED_SECONDS 600

static struct server {
	struct in6_addr address;
	int64_t until[BLIND_TROUBLES]; /* in seconds of CLOCK_MONOTONIC */
} servers[BLIND_MEMORY_PLACES];

static struct server *place_of(union sockaddr_ip server)
{
	sockaddr_ip_set_port(&server, 0);
	return &servers[sockaddr_ip_hash(&server) % BLIND_MEMORY_PLACES];
}

void blind_memory_note(const union sockaddr_ip *server, enum blind_trouble trouble)
{
	struct server *place = place_of(*server);
	const struct in6_addr address = sockaddr_ip_in6(server);

	if (!IN6_ARE_ADDR_EQUAL(&place->address, &address))
		*place = (struct server){ .address = address };
	place->until[trouble] = clock_seconds() + REMEMBERED_SECONDS;
}

bool blind_memory_has(const union sockaddr_ip *server, enum blind_trouble trouble)
{
	const struct server *place = place_of(*server);
	const struct in6_addr address = sockaddr_ip_in6(server);

	return IN6_ARE_ADDR_EQUAL(&place->address, &address) && place->until[trouble] > clock_seconds();
}
