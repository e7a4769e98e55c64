/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths.c - on which path a connection begins, and when another one is tried
 *
 * In the spirit of RFC 8305, with one difference: an unanswered SYN says nothing, since a converter withholds it until the server has
 * answered. So it is the path that is asked, and a connection is moved only when
 *
 *	0 ms       SYN
 *	30 ms      a probe on the same path and each other one that isn't for backup
 *	110 ms     unanswered: a probe on the paths for backup, too, a SYN without data on all, and four more with data on this one
 *	240 ms     another path has answered, and this one nothing at all: move
 *	270 ms     this one nothing at all, and there is one other network, which is so far that it can't have answered: move
 *
 * That is where nothing is known of the path. Where its round trip is, it is asked after 120 ms, or earlier if it is long, unless it
 * has answered a moment ago: then once an answer is overdue. The others are asked together with it only where one's round trip is long or
 * not known, and else if this one's answer isn't there in time: most servers have answered by then, and no probe is sent.
 *
 * A path that answers is asked again as long as the SYN isn't answered, every 150 ms up to a second, when Linux sends its SYN again: one
 * that loses packets shows by then. For that several probes have to be missing for three times as long as another one took. Where 2% of
 * packets are lost one probe of 25 is, so that no connection is moved for a single one: the SYN is more likely to wait for a slow server.
 *
 * A request that follows the handshake is looked after in the same way, from when it was sent until it is acknowledged. That waits for no
 * server, nor does the answer to a SYN without data, so that two probes which are missing are enough; and none is needed once Linux has
 * sent either again, in vain.
 *
 * A converter that is busy, or a machine that is, answers late, and on all paths alike. On a long path that looks like silence, as the
 * answer of a shorter one is there first. So as much longer as another path took than is known of it, the own one is waited for as well;
 * and as long as its answer can be behind the other one's on the way, if both were sent at the same time.
 */
#include "config.h"

#include "client/paths.h"

#define FIRST_PROBE_MS 30  /* where nothing is known of the path */
#define KNOWN_PROBE_MS 120 /* where its round trip is: most servers have answered by then, and no probe is sent */
#define EARLY_PROBE_MS 20  /* but on a path so long that a probe's answer would come too late for MOVE_MS: as soon as that */
#define SLACK_MS 25        /* what a round trip varies by, beside a part of itself */
#define PATIENCE_MS 80     /* for the first probe, where nothing is known */
#define MOVE_MS 240        /* no connection is moved before that, so that a queue which has filled up isn't taken for silence, */
#define QUEUE_MS 120       /* nor before so much more than its round trip */
#define LEFT_MS 290        /* where it can be it is moved by then: 0.3 s may pass at most */
#define LIKELY_MS 270      /* then it is moved to the one other network that there is, if that may yet answer */
#define SECOND_MS 20       /* between the first two probes, where one that is lost would be noticed too late */
#define AGAIN_MS 150       /* between probes on a path that answers */
#define PROBES_MS 1000     /* then Linux sends the SYN again, without its data */
#define LOOK_MS 10         /* how often answers are looked for */
#define LOST_MIN_MS 150
#define RTO_MIN_MS 200     /* Linux: a packet is sent again so much later than its acknowledgement was due, or two round trips */
#define REQUEST_MAX_MS 2000 /* a request behind the handshake isn't left to that for longer: CONVERT_TIMEOUT is near */
#define RTT_FACTOR 2       /* a shorter way outweighs the order of the list by that: one look at each isn't more exact */

/* --- which path --- */

static bool is_silent(const struct path *path)
{
	return path->facts.state == CACHE_PATH_SILENT;
}

static bool loses(const struct path *path)
{
	return path->facts.state == CACHE_PATH_LOSES;
}

static bool is_dataless(const struct path *path)
{
	return path->facts.state == CACHE_PATH_DATALESS;
}

/* How long a request and its first answer take, in units that are the same for all: one round trip more where it follows the handshake. */
static unsigned int time_of(const struct path *path)
{
	return path->facts.rtt_ms * (is_dataless(path) ? 3 : 2);
}

/* Is @a, of two paths that work, the faster one, by so much that it is taken in spite of their order? */
static bool is_faster(const struct path *a, const struct path *b)
{
	const unsigned int factor = is_dataless(b) && !is_dataless(a) ? 1 : RTT_FACTOR;

	return a->facts.rtt_ms && b->facts.rtt_ms && factor * time_of(a) < time_of(b);
}

/* Is @a better than @b, which is in front of it in the list? */
static bool is_better(const struct path *a, const struct path *b)
{
	if (is_silent(a) != is_silent(b))
		return is_silent(b);
	if (a->backup != b->backup)
		return b->backup;
	if (loses(a) != loses(b))
		return loses(b);
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

/* For as long as this an answer is explained by the round trip. */
static unsigned int explained(unsigned int rtt)
{
	return rtt + rtt / 8 + SLACK_MS;
}

/* So long it takes from a lost probe on a path of @rtt until a path that is no longer has answered, and nothing is owed any more. */
static unsigned int others_take(unsigned int rtt)
{
	return rtt + rtt / 8;
}

unsigned int paths_patience(unsigned int rtt, bool heard)
{
	const unsigned int left = LEFT_MS - explained(rtt) - others_take(rtt);

	if (!rtt)
		return FIRST_PROBE_MS;
	/* One that works is asked no sooner than its answer is due, so that a program with many connections doesn't make a probe for each. */
	if (heard)
		return explained(rtt) > KNOWN_PROBE_MS ? explained(rtt) : KNOWN_PROBE_MS;
	if (explained(rtt) + others_take(rtt) + EARLY_PROBE_MS > LEFT_MS)
		return EARLY_PROBE_MS;
	return left < KNOWN_PROBE_MS ? left : KNOWN_PROBE_MS;
}

/* How long a SYN is unanswered before a connection is moved, at least. */
static unsigned int move_after(const struct paths_view *view)
{
	return view->rtt + QUEUE_MS > MOVE_MS ? view->rtt + QUEUE_MS : MOVE_MS;
}

/* After how many milliseconds a probe counts as lost. */
static unsigned int lost_after(const struct paths_view *view)
{
	unsigned int lost = view->answered ? 3 * view->slowest + SLACK_MS : view->rtt ? explained(view->rtt) : PATIENCE_MS;

	return (view->answered && lost < LOST_MIN_MS ? LOST_MIN_MS : lost) + view->late;
}

bool paths_is_overdue(unsigned int age, unsigned int rtt)
{
	return age >= explained(rtt);
}

void paths_view_add_missing(struct paths_view *view, unsigned int age)
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

/* Of several paths the one that was the least late counts: the converter is the same for all. */
void paths_view_add_answer(struct paths_view *view, unsigned int rtt, unsigned int ms, unsigned int age)
{
	const unsigned int shortest = rtt && rtt < ms ? rtt : ms, late = late_by(rtt, ms), since = age > ms ? age - ms : 0;
	/* As far apart as the two ways back are, and what a long one varies by. */
	const unsigned int behind = view->rtt > shortest ? (view->rtt - shortest) / 2 + view->rtt / 4 : 0;

	view->late = view->other_answered && view->late < late ? view->late : late;
	if (behind > since && behind - since > view->owed)
		view->owed = behind - since;
	view->other_answered = true;
}

void paths_view_add_plain(struct paths_view *view, unsigned int ms)
{
	if (late_by(view->rtt, ms) > view->late)
		view->late = late_by(view->rtt, ms);
}

/* Of those that were sent, are @count lost? */
static bool are_lost(const struct paths_view *view, unsigned int count)
{
	return view->missing[count - 1] >= lost_after(view);
}

/*
 * Is the own path's answer waited for as long as it may be behind another one's? Where nothing is late, it isn't beyond LEFT_MS, unless the
 * path is so long that this is over anyway, or has answered so lately that it was asked late.
 */
static bool is_owed(const struct paths_view *view)
{
	return view->owed && (view->late > SLACK_MS || view->waiting < LEFT_MS || move_after(view) > LEFT_MS || view->heard);
}

/*
 * Is it moved to a path that hasn't answered? Not from one that has answered a moment ago, which is more likely to be late than dead; nor
 * from one on which no time is saved by that.
 */
static bool is_moved_unanswered(const struct paths_view *view)
{
	return view->other_likely && !view->answered && !view->heard && view->waiting >= LIKELY_MS && move_after(view) <= LEFT_MS;
}

/* The path has failed, if there is another one that works. */
static struct paths_step decide_moving(const struct paths_view *view)
{
	if (view->waiting < move_after(view))
		return step(PATHS_WAIT, move_after(view) - view->waiting < LOOK_MS ? move_after(view) - view->waiting : LOOK_MS);
	if (is_owed(view))
		return step(PATHS_WAIT, view->owed < LOOK_MS ? view->owed : LOOK_MS);
	if (view->other_answered || is_moved_unanswered(view))
		return step(PATHS_MOVE, LOOK_MS);
	return step(PATHS_WAIT, LOOK_MS);
}

/* How long the second of the times that Linux sends a request again is behind the first time that it has sent it. */
static unsigned int request_again_ms(unsigned int rtt)
{
	const unsigned int timeout = rtt + (2 * rtt > RTO_MIN_MS ? 2 * rtt : RTO_MIN_MS), again = 3 * timeout;

	return again < REQUEST_MAX_MS ? again : REQUEST_MAX_MS;
}

/* When Linux has sent what is unanswered so often that all of it is lost if that isn't answered either. */
static unsigned int repeated_at(const struct paths_view *view)
{
	return view->behind ? request_again_ms(view->rtt) : PROBES_MS;
}

/*
 * Linux has sent the SYN again, without data, which no converter withholds; nor has it withheld the first one for so long. If that is
 * unanswered as well, both are lost, whatever became of probes, and the next one follows two seconds later. A converter that is late is
 * told from that by the last probes on the own path: they were sent behind the second SYN, so that it is answered before they are.
 * So it is with a request behind the handshake.
 */
static struct paths_step decide_repeated(const struct paths_view *view)
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

static struct paths_step decide_working(const struct paths_view *view)
{
	if (view->waiting >= repeated_at(view))
		return decide_repeated(view);
	if (view->last < AGAIN_MS)
		return step(PATHS_WAIT, AGAIN_MS - view->last);
	return step(PATHS_PROBE, LOOK_MS);
}

/*
 * A SYN without data got through, and none with data did. Where packets are lost one such may be chance, and what is concluded holds for
 * a while, so there are several. That the attempt's own SYN, which had none, or what followed its answer is lost may be chance, too.
 */
static struct paths_step decide_data_lost(const struct paths_view *view)
{
	if (!view->syn_data)
		return view->waiting < repeated_at(view) ? step(PATHS_WAIT, repeated_at(view) - view->waiting) : decide_repeated(view);
	if (view->probes < PATHS_DATA_PROBES)
		return step(PATHS_PROBE, LOOK_MS);
	return view->last < lost_after(view) || view->waiting < move_after(view) ? step(PATHS_WAIT, LOOK_MS) : step(PATHS_BEHIND, 0);
}

/*
 * Has the converter let the SYN go by now, whatever its server does, so that either that or its answer is lost? It withholds none without
 * data.
 */
static bool is_lost(const struct paths_view *view)
{
	return !view->syn_data || view->waiting >= PROBES_MS || (view->held && view->waiting >= view->held + explained(view->rtt));
}

/*
 * It answers, though not always. As long as the SYN may wait for a slow server most of the probes have to be lost, as one or two may be by
 * chance; and no more than two once it is known to be lost itself.
 */
static struct paths_step decide_losing(const struct paths_view *view)
{
	struct paths_step next;

	if (is_lost(view) ? are_lost(view, 2) : are_lost(view, 3) && 2 * view->answered <= view->probes)
		return decide_moving(view);
	next = decide_working(view);
	if (next.again > LOOK_MS)
		next.again = LOOK_MS;
	return next;
}

static struct paths_step decide_failing(const struct paths_view *view)
{
	if (!view->others_asked)
		return step(PATHS_ASK_OTHERS, LOOK_MS);
	if (view->answered)
		return decide_losing(view);
	if (view->plain_answered)
		return decide_data_lost(view);
	return are_lost(view, 2) ? decide_moving(view) : step(PATHS_WAIT, LOOK_MS);
}

/* Is a second probe due before the first one is lost, since what is sent then would be answered too late for move_after()? */
static bool is_second_due(const struct paths_view *view)
{
	return view->probes == 1 && view->rtt && paths_patience(view->rtt, false) + 2 * explained(view->rtt) > move_after(view);
}

struct paths_step paths_decide(const struct paths_view *view)
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
