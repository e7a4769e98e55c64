/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patience.c - how long a converter's response is waited for (no I/O)
 *
 * Before its SYN+ACK silence is the converter's, and over after CONVERT_TIMEOUT. Behind it nothing is in flight, so that keepalive asks
 * whether the host is still there, two seconds before that time is over. Where it is, and the converter has answered others, the
 * silence is the server's, for as long as Linux would try to connect.
 */
#include "config.h"

#include "supervise/patience.h"

#include "common/clock.h"

/* Longer than Linux tries to connect (tcp_syn_retries 6: 127 s), which is what converters do. */
#define SERVER_PATIENCE_NS (150 * CLOCK_NS_PER_S)
#define PROBES_NS (2 * CLOCK_NS_PER_S) /* so long before the end keepalive begins to ask */
#define SILENCE_MS 2500                /* a converter that has not acknowledged anything for so long is dead */

enum patience patience_judge(const struct patience_view *view, int64_t now, int64_t *look_at)
{
	const bool alive = !view->syn_sent && view->heard_ms < SILENCE_MS, late = now >= view->ends - PROBES_NS;

	if (view->closed)
		return PATIENCE_ERROR;
	if (now < view->ends) {
		*look_at = late ? view->ends : view->ends - PROBES_NS;
		return late && !view->syn_sent && !view->probing ? PATIENCE_PROBE : PATIENCE_WAIT;
	}
	if (alive && view->proven && now < view->started + SERVER_PATIENCE_NS) {
		*look_at = now + CLOCK_NS_PER_S;
		return view->probing ? PATIENCE_WAIT : PATIENCE_PROBE;
	}
	return alive ? PATIENCE_ALIVE : PATIENCE_DEAD;
}
