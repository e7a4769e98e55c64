/* SPDX-License-Identifier: BSD-3-Clause */
/* fate.c - what has become of a blind request, by what the kernel knows of its connection (no I/O) */
#include "config.h"

#include "supervise/fate.h"

#include "common/clock.h"

#define FIRST_LOOK_NS (50 * CLOCK_NS_PER_MS)
#define REPEAT_NS (FATE_REPEAT_MS * CLOCK_NS_PER_MS)

int64_t fate_first_look(int64_t now)
{
	return now + FIRST_LOOK_NS;
}

static enum fate judge_syn_sent(const struct fate_request *request, int64_t now, int64_t patience, int64_t *look_at)
{
	const int64_t waited = now - request->syn_at;
	const bool may_repeat = request->repeatable && request->repeats < FATE_REPEATS_MAX;

	if (may_repeat && waited >= REPEAT_NS)
		return FATE_REPEAT;
	if (!may_repeat && now - request->started >= patience)
		return FATE_SILENT;
	*look_at = now + (waited > FIRST_LOOK_NS ? waited : FIRST_LOOK_NS);
	if (may_repeat && *look_at > request->syn_at + REPEAT_NS)
		*look_at = request->syn_at + REPEAT_NS;
	return FATE_OPEN;
}

enum fate fate_judge(const struct fate_request *request, const struct fate_seen *seen, int64_t now, int64_t patience,
		     int64_t *look_at)
{
	if (!seen->there) /* only SYNs without data get through, if all others were lost */
		return request->repeats == FATE_REPEATS_MAX ? FATE_UNTAKEN : FATE_GONE;
	if (seen->syn_sent)
		return judge_syn_sent(request, now, patience, look_at);
	return seen->answered && !seen->taken ? FATE_UNTAKEN : FATE_TAKEN;
}
