/* SPDX-License-Identifier: BSD-3-Clause */
/* fate.c - what has become of a blind request, by what the kernel knows of its connection (no I/O) */
#include "config.h"

#include "supervise/fate.h"

#include "common/clock.h"

#define FIRST_LOOK_NS (50 * CLOCK_NS_PER_MS)
#define KERNEL_REPEATS_NS CLOCK_NS_PER_S /* Linux's initial time-out of retransmission */
#define PROBE_NS (FATE_PROBE_MS * CLOCK_NS_PER_MS)
#define REPEAT_NS (FATE_REPEAT_MS * CLOCK_NS_PER_MS)

/* What a round trip varies by, beside a part of itself. */
#define SLACK_NS (50 * CLOCK_NS_PER_MS)

int64_t fate_repeat_after(int64_t withheld, int64_t rtt)
{
	const int64_t answered = withheld + rtt + rtt / 4 + SLACK_NS;

	return rtt && answered < REPEAT_NS ? answered : REPEAT_NS;
}

int64_t fate_first_look(int64_t now)
{
	return now + FIRST_LOOK_NS;
}

/* A look shortly before the converter gives the server up tells those that it resets for that from those that are refused. */
#define MARGIN_NS (20 * CLOCK_NS_PER_MS)

static int64_t limit_of(const struct fate_request *request)
{
	return request->syn_at + request->withheld - MARGIN_NS;
}

static enum fate judge_syn_sent(struct fate_request *request, int64_t now, int64_t patience, int64_t *look_at)
{
	const int64_t waited = now - request->syn_at;
	const bool may_repeat = request->repeatable && request->repeats < request->repeats_max;

	request->waiting_at = now;
	if (may_repeat && waited >= request->repeat_after)
		return FATE_REPEAT;
	if (!request->silent_at && now - request->started >= patience) {
		request->silent_at = now;
		*look_at = now + FIRST_LOOK_NS;
		return FATE_SILENT;
	}
	if (!may_repeat && waited >= patience && now - request->silent_at >= PROBE_NS)
		return FATE_LEFT;
	*look_at = now + (waited > FIRST_LOOK_NS ? waited : FIRST_LOOK_NS);
	if (now < limit_of(request) && *look_at > limit_of(request))
		*look_at = limit_of(request);
	else if (may_repeat && *look_at > request->syn_at + request->repeat_after)
		*look_at = request->syn_at + request->repeat_after;
	return FATE_OPEN;
}

/*
 * If all SYNs with data were lost, and one without got through, such SYNs don't. Whoever waited for less may have lost a SYN and been
 * late with the next one, so that the kernel's own was reset: that says nothing of the server, nor does it where the converter would
 * have waited for that next one.
 */
static enum fate judge_gone(const struct fate_request *request, int64_t now)
{
	if (request->repeats == request->repeats_max)
		return FATE_UNTAKEN;
	if (request->repeats_max > FATE_REPEATS_MAX || now - request->syn_at >= KERNEL_REPEATS_NS)
		return FATE_GONE;
	return request->waiting_at >= limit_of(request) ? FATE_SLOW : FATE_GONE;
}

enum fate fate_judge(struct fate_request *request, const struct fate_seen *seen, int64_t now, int64_t patience, int64_t *look_at)
{
	if (!seen->there)
		return judge_gone(request, now);
	if (seen->syn_sent)
		return judge_syn_sent(request, now, patience, look_at);
	if (!seen->answered || seen->taken)
		return FATE_TAKEN;
	return seen->again ? FATE_GONE : FATE_UNTAKEN;
}
