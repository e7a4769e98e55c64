/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths.c - on which path a connection begins, and when another one is tried
 *
 * This follows the spirit of RFC 8305, with one difference: an unanswered SYN tells nothing, since a converter withholds it until the
 * server has answered. So we probe the path, and move a connection only in these cases:
 *
 *	0 ms       SYN
 *	30 ms      a probe on the same path and each other one that isn't for backup
 *	110 ms     unanswered: a probe on the paths for backup, too, a SYN without data on all, and four more with data on this one
 *	240 ms     another path has answered, and this one nothing at all: move
 *	270 ms     this one nothing at all, and there is one other network, too far away to have answered by now: move
 *
 * These times are for an unknown path. If we know its round trip, we probe it after 120 ms, or earlier if it is long; but if it has
 * answered a moment ago, only once an answer is overdue. We probe the other paths at the same time only if the round trip of one of them is
 * long or unknown; otherwise only when this path's answer is late. Most servers have answered by then, and no probe is sent.
 *
 * While the SYN is unanswered we probe even a path that answers, every 150 ms up to one second, when Linux sends the SYN again: this
 * reveals a path that loses packets. The path counts as such if several probes have been missing for three times as long as another one
 * took. At a loss of 2%, one probe of 25 is lost, so a single lost probe never moves a connection: the SYN is more likely to wait for a
 * slow server.
 *
 * We treat a request that follows the handshake in the same way, from its sending until its acknowledgement. Neither this acknowledgement
 * nor the answer to a SYN without data waits for a server, so two missing probes are enough; and none is needed once Linux has sent either
 * again in vain.
 *
 * A busy converter, or a busy machine, answers late, on all paths alike. On a long path this looks like silence, as the answer on a shorter
 * one arrives first. So we extend the wait for this path by the other path's delay beyond its known round trip; and by the time that the
 * answer needs longer on its way, if the converter sent both at the same time.
 */
#include "config.h"

#include "client/paths.h"

#define FIRST_PROBE_MS 30  /* for an unknown path */
#define KNOWN_PROBE_MS 120 /* for a known round trip: most servers have answered by then, and no probe is sent */
#define EARLY_PROBE_MS 20  /* for a path so long that the answer to a later probe would miss MOVE_MS */
#define SLACK_MS 25        /* variation of a round trip, beside a part of itself */
#define PATIENCE_MS 80     /* for the first probe on an unknown path */
#define MOVE_MS 240        /* no connection moves earlier, so that we don't take a full queue for silence, */
#define QUEUE_MS 120       /* nor earlier than this after its round trip */
#define LEFT_MS 290        /* a connection moves by then if possible: the limit is 0.3 s */
#define LIKELY_MS 270      /* from then on it moves to the only other network, even unanswered */
#define SECOND_MS 20       /* between the first two probes, if we would notice a lost one too late */
#define AGAIN_MS 150       /* between probes on a path that answers */
#define PROBES_MS 1000     /* then Linux sends the SYN again, without its data */
#define LOOK_MS 10         /* how often we look for answers */
#define LOST_MIN_MS 150
#define RTO_MIN_MS 200     /* Linux repeats a packet so much later than its acknowledgement was due, or two round trips */
#define REQUEST_MAX_MS 2000 /* longest wait for repeats of a request behind the handshake: CONVERT_TIMEOUT is near */
#define RTT_FACTOR 2       /* by this factor a shorter path outweighs the order of the list: one measurement of each isn't more exact */

/* --- which path --- */

static bool is_dead(const struct path *path)
{
	return path_is_dead(path->facts.state);
}

static bool loses_syns(const struct path *path)
{
	return path->facts.state == CACHE_PATH_LOSES;
}

static bool is_dataless(const struct path *path)
{
	return path->facts.state == CACHE_PATH_DATALESS;
}

/*
 * Returns the time of a request and its first answer, in units of half a round trip: one round trip more if the request follows the
 * handshake.
 */
static unsigned int time_of(const struct path *path)
{
	return path->facts.rtt_ms * (is_dataless(path) ? 3 : 2);
}

/* Of two paths that work: is @a so much faster that it overrides their order? */
static bool is_faster(const struct path *a, const struct path *b)
{
	const unsigned int factor = is_dataless(b) && !is_dataless(a) ? 1 : RTT_FACTOR;

	return a->facts.rtt_ms && b->facts.rtt_ms && factor * time_of(a) < time_of(b);
}

/* Is @a better than @b, which is in front of it in the list? */
static bool is_better(const struct path *a, const struct path *b)
{
	if (is_dead(a) != is_dead(b))
		return is_dead(b);
	if (a->backup != b->backup)
		return b->backup;
	if (loses_syns(a) != loses_syns(b))
		return loses_syns(b);
	if (a->preference != b->preference)
		return a->preference < b->preference;
	if (path_works(a->facts.state) != path_works(b->facts.state))
		return path_works(a->facts.state);
	return path_works(a->facts.state) && is_faster(a, b);
}

int paths_best(const struct path *paths, size_t count, uint32_t skip)
{
	int best = -1;

	for (size_t i = 0; i < count; i++)
		if (!(skip >> i & 1) && (best < 0 || is_better(&paths[i], &paths[best])))
			best = (int)i;
	return best;
}

/* --- when another one --- */

static struct paths_step step(enum paths_do what, unsigned int again)
{
	return (struct paths_step){ what, again };
}

/* Returns for how long the round trip explains a missing answer. */
static unsigned int explained(unsigned int rtt)
{
	return rtt + rtt / 8 + SLACK_MS;
}

/* Returns how long after our lost probe any path with a round trip of at most @rtt has answered its own. */
static unsigned int others_answer_ms(unsigned int rtt)
{
	return rtt + rtt / 8;
}

unsigned int paths_patience(unsigned int rtt, bool heard)
{
	const unsigned int left = LEFT_MS - explained(rtt) - others_answer_ms(rtt);

	if (!rtt)
		return FIRST_PROBE_MS;
	/* Probe a working path only when its answer is due, so that a program with many connections doesn't send a probe for each. */
	if (heard)
		return explained(rtt) > KNOWN_PROBE_MS ? explained(rtt) : KNOWN_PROBE_MS;
	if (explained(rtt) + others_answer_ms(rtt) + EARLY_PROBE_MS > LEFT_MS)
		return EARLY_PROBE_MS;
	return left < KNOWN_PROBE_MS ? left : KNOWN_PROBE_MS;
}

/* Returns how long at least a SYN must be unanswered before its connection moves. */
static unsigned int move_after(const struct paths_seen *view)
{
	return view->rtt + QUEUE_MS > MOVE_MS ? view->rtt + QUEUE_MS : MOVE_MS;
}

/* Returns after how many milliseconds a probe counts as lost. */
static unsigned int lost_after(const struct paths_seen *view)
{
	unsigned int lost = view->answered ? 3 * view->slowest + SLACK_MS : view->rtt ? explained(view->rtt) : PATIENCE_MS;

	return (view->answered && lost < LOST_MIN_MS ? LOST_MIN_MS : lost) + view->late;
}

bool paths_is_overdue(unsigned int age, unsigned int rtt)
{
	return age >= explained(rtt);
}

void paths_seen_add_missing(struct paths_seen *view, unsigned int age)
{
	unsigned int i = 0;

	while (i < PATHS_LOST_PROBES && view->missing[i])
		i++;
	if (i < PATHS_LOST_PROBES)
		view->missing[i] = age + 1;
}

static unsigned int late_by(unsigned int rtt, unsigned int ms)
{
	return rtt && ms > rtt ? ms - rtt : 0;
}

/* Of several paths the least late one counts: the converter is the same for all. */
void paths_seen_add_answer(struct paths_seen *view, unsigned int rtt, unsigned int ms, unsigned int age)
{
	const unsigned int shortest = rtt && rtt < ms ? rtt : ms, late = late_by(rtt, ms), since = age > ms ? age - ms : 0;
	/* The difference of the two ways back, plus the variation of a long one. */
	const unsigned int behind = view->rtt > shortest ? (view->rtt - shortest) / 2 + view->rtt / 4 : 0;

	view->late = view->other_answered && view->late < late ? view->late : late;
	if (behind > since && behind - since > view->answer_lag)
		view->answer_lag = behind - since;
	view->other_answered = true;
}

void paths_seen_add_plain(struct paths_seen *view, unsigned int ms)
{
	if (late_by(view->rtt, ms) > view->late)
		view->late = late_by(view->rtt, ms);
}

/* Are @count probes lost? */
static bool are_lost(const struct paths_seen *view, unsigned int count)
{
	return view->missing[count - 1] >= lost_after(view);
}

/*
 * Do we still wait for this path's answer, which may be behind another path's? If nothing is late, not beyond LEFT_MS; except on a path
 * so long that this time is over anyway, or on one that has answered so lately that its probe went out late.
 */
static bool may_lag(const struct paths_seen *view)
{
	return view->answer_lag && (view->late > SLACK_MS || view->waiting < LEFT_MS || move_after(view) > LEFT_MS || view->heard);
}

/*
 * Does the connection move to a path that hasn't answered? Not from one that has answered a moment ago, which is more likely late than
 * dead; nor from one where the move saves no time.
 */
static bool is_moved_unanswered(const struct paths_seen *view)
{
	return view->other_likely && !view->answered && !view->heard && view->waiting >= LIKELY_MS && move_after(view) <= LEFT_MS;
}

/* Decides for a path that has failed if another one works. */
static struct paths_step decide_moving(const struct paths_seen *view)
{
	if (view->waiting < move_after(view))
		return step(PATHS_WAIT, move_after(view) - view->waiting < LOOK_MS ? move_after(view) - view->waiting : LOOK_MS);
	if (may_lag(view))
		return step(PATHS_WAIT, view->answer_lag < LOOK_MS ? view->answer_lag : LOOK_MS);
	if (view->other_answered || is_moved_unanswered(view))
		return step(PATHS_MOVE, LOOK_MS);
	return step(PATHS_WAIT, LOOK_MS);
}

/* Returns how long after a request Linux repeats it for the second time. */
static unsigned int request_again_ms(unsigned int rtt)
{
	const unsigned int timeout = rtt + (2 * rtt > RTO_MIN_MS ? 2 * rtt : RTO_MIN_MS), again = 3 * timeout;

	return again < REQUEST_MAX_MS ? again : REQUEST_MAX_MS;
}

/* Returns when Linux has repeated the unanswered packet so often that a missing answer means that all are lost. */
static unsigned int repeated_at(const struct paths_seen *view)
{
	return view->behind ? request_again_ms(view->rtt) : PROBES_MS;
}

/*
 * Decides after Linux has sent the SYN again, without data. No converter withholds such a SYN, nor the first one for so long. If neither is
 * answered, both are lost, whatever became of the probes, and Linux sends the next SYN two seconds later. The last probes on this path
 * tell this from a late converter: they were sent after the second SYN, so the converter would answer that first. The same holds for a
 * request behind the handshake.
 */
static struct paths_step decide_repeated(const struct paths_seen *view)
{
	const unsigned int due = repeated_at(view) + explained(view->rtt) + LOOK_MS;

	if (view->syn_data && (!view->held || view->held + explained(view->rtt) > PROBES_MS))
		return step(PATHS_STAY, 0);
	if (view->waiting < due)
		return step(PATHS_WAIT, due - view->waiting);
	if (!view->others_asked)
		return step(PATHS_ASK_OTHERS, LOOK_MS);
	return view->last < explained(view->rtt) + view->late ? step(PATHS_WAIT, LOOK_MS) : decide_moving(view);
}

static struct paths_step decide_working(const struct paths_seen *view)
{
	if (view->waiting >= repeated_at(view))
		return decide_repeated(view);
	if (view->last < AGAIN_MS)
		return step(PATHS_WAIT, AGAIN_MS - view->last);
	return step(PATHS_PROBE, LOOK_MS);
}

/*
 * Decides after a SYN without data got through, and none with data did. Several probes must show this, as a single loss may be chance and
 * the conclusion holds for a while. The attempt's own SYN, if it had no data, or the packets behind its answer may be lost by chance, too.
 */
static struct paths_step decide_data_lost(const struct paths_seen *view)
{
	if (!view->syn_data)
		return view->waiting < repeated_at(view) ? step(PATHS_WAIT, repeated_at(view) - view->waiting) : decide_repeated(view);
	if (view->probes < PATHS_DATA_PROBES)
		return step(PATHS_PROBE, LOOK_MS);
	return view->last < lost_after(view) || view->waiting < move_after(view) ? step(PATHS_WAIT, LOOK_MS) : step(PATHS_BEHIND, 0);
}

/*
 * Must the converter have released the SYN by now, whatever its server does, so that either the SYN or its answer is lost? It withholds
 * none without data.
 */
static bool is_lost(const struct paths_seen *view)
{
	return !view->syn_data || view->waiting >= PROBES_MS || (view->held && view->waiting >= view->held + explained(view->rtt));
}

/*
 * Decides for a path that answers some probes. While the SYN may wait for a slow server three probes, and half of all, must be lost, as one
 * or two may be by chance; two are enough once we know that the SYN itself is lost.
 */
static struct paths_step decide_losing(const struct paths_seen *view)
{
	struct paths_step next;

	if (is_lost(view) ? are_lost(view, 2) : are_lost(view, 3) && 2 * view->answered <= view->probes)
		return decide_moving(view);
	next = decide_working(view);
	if (next.again > LOOK_MS)
		next.again = LOOK_MS;
	return next;
}

static struct paths_step decide_failing(const struct paths_seen *view)
{
	if (!view->others_asked)
		return step(PATHS_ASK_OTHERS, LOOK_MS);
	if (view->answered)
		return decide_losing(view);
	if (view->plain_answered)
		return decide_data_lost(view);
	return are_lost(view, 2) ? decide_moving(view) : step(PATHS_WAIT, LOOK_MS);
}

/* Is a second probe due before the first one counts as lost, since the answer to a later one would miss move_after()? */
static bool is_second_due(const struct paths_seen *view)
{
	return view->probes == 1 && view->rtt && paths_patience(view->rtt, false) + 2 * explained(view->rtt) > move_after(view);
}

struct paths_step paths_decide(const struct paths_seen *view)
{
	if (!view->probes) {
		const unsigned int patience = paths_patience(view->rtt, view->heard);
		const bool all = !view->rtt || view->others_far;

		return view->waiting < patience ? step(PATHS_WAIT, patience - view->waiting) : step(all ? PATHS_PROBE_ALL : PATHS_PROBE, LOOK_MS);
	}
	if (!view->missing[0])
		return decide_working(view);
	if (are_lost(view, 1))
		return decide_failing(view);
	if (is_second_due(view))
		return view->last < SECOND_MS ? step(PATHS_WAIT, SECOND_MS - view->last) : step(PATHS_PROBE, LOOK_MS);
	return step(PATHS_WAIT, lost_after(view) - view->missing[0]);
}
