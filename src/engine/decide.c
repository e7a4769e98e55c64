/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * decide.c - decides the next action of a dial from its state and the facts seen on its socket (no I/O)
 *
 * Silence isn't the server's fault before the SYN+ACK, nor afterwards while the converter acknowledges no keepalive probe. If it
 * acknowledges these and has answered within an hour, it probably waits for the server: then we wait as long as a direct connection would.
 * If it hasn't, it may be no converter, and we don't ask it for this server for a while. Once the first byte of a response has come, the
 * converter no longer waits for the server: the rest must come before attempt.ends.
 *
 * Keepalive sends the probes. Its times are whole seconds, so the interval is a third of CONVERT_TIMEOUT rounded down, and at least a
 * second:
 *
 *	0      SYN                 the first look follows after one interval
 *	1 s    the first look      only the SYN+ACK is there: we turn keepalive on. Linux sends a probe once it has heard nothing
 *	                           for an interval, and each look during silence sends one more, four in an interval
 *	3 s    CONVERT_TIMEOUT     six probes are unanswered: the converter is dead. Otherwise the server may be silent
 *	...    a look an interval  finds a converter that dies later
 *
 * A converter without state answers the first probe with a reset, and a path that loses all packets leads to ETIMEDOUT in the end. But once
 * MPTCP is fully established an MPTCP socket reports neither: Linux 6.18 closes the subflow and waits a minute for another one
 * (test_platform.py). So the looks decide. Unacknowledged data tests the converter like a probe, and Linux sends no probes meanwhile.
 *
 * A CONVERT_TIMEOUT below two and a half intervals is too short for that: then two probes decide, and the converter has at least 1.5 s
 * from its SYN+ACK on.
 */
#include "config.h"

#include "engine/decide.h"

#include <assert.h>
#include <linux/tcp.h>

#define LOOKS 4 /* looks in an interval, once a probe is due */

int decide_interval_seconds(unsigned int timeout_ms)
{
	static_assert(SETTINGS_TIMEOUT_MAX_SECONDS / 3 <= 32767, "Linux takes the interval");

	return timeout_ms < 3000 ? 1 : (int)timeout_ms / 3000;
}

/* Returns how long after the first unanswered probe a converter counts as dead. */
static int64_t grace_ns(unsigned int timeout_ms, int64_t interval)
{
	const int64_t half = interval / 2;

	return timeout_ms * CLOCK_NS_PER_MS >= 2 * interval + half ? interval + half : half;
}

int64_t decide_ask_at(const struct attempt *attempt, unsigned int timeout_ms)
{
	return attempt->ends - timeout_ms * CLOCK_NS_PER_MS / 2;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static struct dial_decision decide_to(enum dial_do what)
{
	return (struct dial_decision){ .what = what };
}

static struct dial_decision wait_until(int64_t at)
{
	return (struct dial_decision){ .what = DO_WAIT, .at = at };
}

static struct dial_decision give_up(bool alive)
{
	return (struct dial_decision){ .what = DO_GIVE_UP, .alive = alive };
}

static struct dial_decision begin_anew(enum ask_way way)
{
	return (struct dial_decision){ .what = DO_BEGIN_ANEW, .way = way };
}

/* Decides whether to go on waiting for a converter that is silent since its SYN+ACK. */
static struct dial_decision decide_keepalive(const struct dial *dial, const struct dial_seen *seen, unsigned int timeout_ms, int64_t now)
{
	const struct attempt *attempt = &dial->attempt;
	const int64_t interval = decide_interval_seconds(timeout_ms) * CLOCK_NS_PER_S;
	const int64_t patience = dial->started + DECIDE_SERVER_PATIENCE_NS;
	/* the time of a probe, past or future: an interval after the last packet, or when we began to probe */
	const int64_t probe = seen->heard_at + interval < attempt->keepalive_since ? attempt->keepalive_since : seen->heard_at + interval;
	const int64_t look = (probe > now ? probe : now) + interval / LOOKS, end = probe + grace_ns(timeout_ms, interval);
	const int64_t at = attempt->keepalive_since ? earlier(end, look) : patience; /* a converter that can't be probed counts as alive */

	if (attempt->keepalive_since && !attempt->path_asked && now >= probe + interval / LOOKS && now < end)
		return decide_to(DO_ASK_PATH);
	if (now < attempt->ends)
		return wait_until(earlier(attempt->ends, look));
	if (attempt->keepalive_since && now >= end)
		return give_up(false);
	return seen->proven && now < patience ? wait_until(earlier(at, patience)) : give_up(true);
}

/* Decides whether to go on waiting for a SYN+ACK. */
static struct dial_decision decide_unanswered(const struct attempt *attempt, unsigned int timeout_ms, int64_t now)
{
	const int64_t interval = decide_interval_seconds(timeout_ms) * CLOCK_NS_PER_S, ask_at = decide_ask_at(attempt, timeout_ms);

	if (now >= attempt->ends)
		return give_up(false);
	if (!attempt->path_asked && now >= ask_at)
		return decide_to(DO_ASK_PATH);
	return wait_until(earlier(earlier(attempt->ends, now + interval), attempt->path_asked ? attempt->ends : ask_at));
}

/* Decides while no byte of a response has come. */
static struct dial_decision decide_waiting(const struct dial *dial, const struct dial_seen *seen, unsigned int timeout_ms, int64_t now)
{
	const struct attempt *attempt = &dial->attempt;
	const bool path_due = dial->start.look_at && now >= dial->start.look_at && !seen->path_looked;

	if (dial->confirmed)
		return wait_until(0);
	if (!path_due && (!attempt->wake_at || now < attempt->wake_at))
		return wait_until(0);
	if (!seen->looked)
		return decide_to(DO_LOOK);
	if (path_due)
		return decide_to(DO_LOOK_AT_PATH);
	if (seen->state == TCPINFO_UNKNOWN || seen->state == TCPINFO_CLOSE) /* a reset, which an MPTCP socket doesn't report */
		return decide_to(DO_FAIL);
	if (seen->state == TCPINFO_SYN_SENT)
		return decide_unanswered(attempt, timeout_ms, now);
	return seen->keepalive_set ? decide_keepalive(dial, seen, timeout_ms, now) : decide_to(DO_KEEPALIVE);
}

/* Decides after a SYN+ACK that confirms the server of a silent request, so that no response follows. */
static struct dial_decision decide_silent(const struct dial *dial, const struct dial_seen *seen)
{
	if (dial->mptcp && seen->mptcp == MPTCP_UNSEEN)
		return decide_to(DO_LOOK_AT_MPTCP);
	if (seen->mptcp == MPTCP_LOST)
		return begin_anew(ASK_TCP);
	if (seen->broken)
		return (struct dial_decision){ .what = DO_FAIL, .final = true };
	if (!dial->attempt.want_output)
		return decide_to(DO_REACHED_SILENTLY);
	return seen->full ? wait_until(0) : decide_to(DO_SEND); /* the early data that didn't fit into the SYN */
}

/* Returns whether the SYN+ACK confirms the server, before a response is there. */
static bool is_confirming(const struct dial *dial, const struct dial_seen *seen, int64_t now)
{
	/* The SYN+ACK may have come after the step began. */
	const int64_t came = seen->heard_at > now ? seen->heard_at : now;

	return dial->attempt.confirmable && dial->may_confirm && seen->state != TCPINFO_UNKNOWN && seen->state != TCPINFO_CLOSE &&
	       synack_confirms(seen->options, dial->attempt.withheld_ms, dial->started, came);
}

static struct dial_decision decide_response(const struct dial *dial, const struct dial_seen *seen, unsigned int timeout_ms, int64_t now)
{
	switch (seen->response) {
	case RESPONSE_UNREAD:
		if (seen->broken)
			return decide_to(DO_FAIL);
		if (dial->attempt.want_output && !seen->full)
			return decide_to(DO_SEND);
		if (!dial->attempt.want_output)
			return decide_to(DO_READ);
		break;
	case RESPONSE_NOTHING:
		break;
	case RESPONSE_PART:
		if (dial->confirmed)
			return wait_until(0);
		return now < dial->attempt.ends ? wait_until(dial->attempt.ends) : give_up(false);
	case RESPONSE_WHOLE:
		/* the converter's first bytes show whether Multipath TCP was lost behind the handshake */
		if (dial->mptcp && seen->mptcp == MPTCP_UNSEEN)
			return decide_to(DO_LOOK_AT_MPTCP);
		return seen->mptcp == MPTCP_LOST ? begin_anew(ASK_TCP) : decide_to(DO_REACHED);
	case RESPONSE_ERROR:
		return decide_to(DO_JUDGE);
	case RESPONSE_BROKEN:
		return decide_to(DO_FAIL);
	}
	if (is_confirming(dial, seen, now)) {
		if (dial->mptcp && seen->mptcp == MPTCP_UNSEEN)
			return decide_to(DO_LOOK_AT_MPTCP);
		if (!dial->mptcp || seen->mptcp == MPTCP_HOLDS)
			return decide_to(DO_CONFIRM);
	}
	return decide_waiting(dial, seen, timeout_ms, now);
}

/* Returns whether the Multipath TCP attempt can go on after its SYN+ACK. If not, sets @way, the way of asking anew. */
static bool synack_goes_on(const struct attempt *attempt, const struct dial_seen *seen, enum ask_way *way)
{
	const struct synack_seen synack = {
		.syn_data = attempt->syn_data,
		.acknowledged = seen->options & TCPI_OPT_SYN_DATA,
		.sent_again = seen->sent_again,
		.fallen_back = seen->mptcp == MPTCP_LOST,
	};

	return synack_keeps_way(&synack, way);
}

struct dial_decision decide(const struct dial *dial, const struct dial_seen *seen, unsigned int timeout_ms, int64_t now)
{
	const struct attempt *attempt = &dial->attempt;
	enum ask_way way;

	if ((attempt->synack_due || attempt->confirmable || attempt->silence_due) && !seen->looked)
		return decide_to(DO_LOOK);
	if (attempt->silence_due && (seen->state == TCPINFO_SYN_SENT || seen->state == TCPINFO_UNKNOWN))
		return decide_waiting(dial, seen, timeout_ms, now); /* don't read yet: the bytes behind the SYN+ACK may be the server's */
	if (seen->state == TCPINFO_SYN_SENT && (seen->full || !attempt->want_output))
		return decide_waiting(dial, seen, timeout_ms, now);
	if (attempt->synack_due && seen->state != TCPINFO_CLOSE && seen->state != TCPINFO_SYN_SENT) {
		if (!attempt->syn_data && seen->mptcp == MPTCP_UNSEEN)
			return decide_to(DO_LOOK_AT_MPTCP);
		if (!synack_goes_on(attempt, seen, &way))
			return begin_anew(way);
	}
	/* The options are the handshake's. So if a closed connection has them, it was accepted before. */
	if (attempt->silence_due && synack_is_silent(seen->options))
		return decide_silent(dial, seen);
	if (attempt->ask.blind && seen->state != TCPINFO_CLOSE)
		return decide_to(DO_BLIND_LOST);
	return decide_response(dial, seen, timeout_ms, now);
}
