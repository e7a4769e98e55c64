/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outage.c - which networks have fallen silent, from what the kernel tells of subflows
 *
 * A network that swallows everything says nothing, and what Linux (6.18) makes of it costs a transfer more than the outage itself. Data
 * goes on over the others within half a second. But the subflow over the silent one stays, and its retransmission timer doubles each
 * time: after five seconds of silence it takes up to as long until it sends again. What it then sends first is its old queue, one segment
 * a round trip to begin with, and new data is put behind that, so that all of the connection waits for it. A subflow that is closed
 * gives its data to the others at once, and RM_ADDR tells the peer to do so as well; a new one begins with an empty queue, and tells by
 * the answer to its SYN that the network works again.
 *
 * So a silent network's endpoint is taken away and made anew, which is to *renew* its subflows, and again as long as their SYNs stay
 * unanswered. Linux sends a SYN again each second at first, and then less often. While other networks work no subflow is closed for
 * having waited: one that is closed, even one that has only asked, has Linux send all again that isn't acknowledged, and the transfer
 * stands still for up to a second. There its peer is *asked*, by a SYN of plain TCP, each two seconds and later less often; once that is
 * answered, and the subflow's own SYN isn't in the second that follows, it is renewed. The endpoint is then made a while after it was
 * taken away, since RM_ADDR goes over the others: it has to be there before a SYN over a shorter way, or it ends the new subflow (an
 * address that the connection has begun from always has the number 0). While nothing works RM_ADDR arrives nowhere, and somebody waits:
 * then a SYN goes out several times a second.
 *
 * A network is silent if a subflow says so, nothing is to be said against it, and it costs no connection its last subflow:
 *
 *   - a subflow says so if its time-out has expired and nothing came since; if nothing comes though bytes are missing up to
 *     where the peer has said that it sends there (its mapping: RFC 8684, 3.3.1); or if it brought much, now brings nothing, and
 *     another one of the same connection brings much meanwhile;
 *   - what speaks against it is any subflow over the network that has heard of its peer lately, whosever it is;
 *   - each connection with a subflow there has an established one over another network. A connection without any ends
 *     after a time (net.mptcp.close_timeout), which is not to be the doing of who wanted to help. Besides, an RM_ADDR that
 *     finds no subflow to go over waits for the next one, and ends that (Linux 6.18).
 *
 * So of networks that are all silent the preferred ones are renewed, and the last one is *held*: its subflows stay. What they do when it
 * works again is no help. Their timers have backed off; and if one expires at the right moment, the acknowledgement of what was sent
 * ten seconds ago makes TCP believe that the round trip takes seconds, and that nothing was lost: it waits for as long again, and
 * with it all data that is behind. So a network that is held is asked as well. Once that is answered, or one of its subflows has heard of
 * its peer, they are renewed at once, though connections have no other ones: RM_ADDR and the new SYN go the same way, in this order. The
 * RM_ADDR of the other networks, which can't have arrived before, goes ahead of them: otherwise the peer gives the data of the subflow
 * that ends to one over a network that is silent. All that is done only if each of the connections has had a subflow that joined it, so
 * that the peer is known to accept such ones. Otherwise they are left to their timers until another network has answered.
 *
 * A new subflow that was alone isn't used by its peer, to begin with: Linux (6.18) sends what it has when an acknowledgement comes, or when
 * the connection's timer expires, which was set by the subflows that have gone and may take a second or many. In a download no
 * acknowledgement is due. So the subflow is *prompted*: MP_PRIO goes out with one.
 *
 * A pause may still be a scheduler's choice, or that of a reader who lets the window close. If the first SYN of a
 * renewal is answered at once then the network wasn't silent, and its pauses mean nothing for a while, twice as long each time. A
 * time-out that has expired is no pause, and counts always. A network that is held and answers at once is treated likewise.
 *
 * Where all networks go loudly, their devices down or their addresses away, all endpoints stay, since nobody can be told that they go. Such
 * networks count as held from then on.
 *
 * Data that a subflow has brought to its end may be dropped there, since it is beyond the window of the connection: Linux sends too much
 * after a subflow has lost something (doc/kernel-mptcp-outages.md). TCP knows nothing of that, and Multipath TCP sends one piece again for
 * each time-out. Such a connection is *stalled*: nothing is under way over its subflows, and much of it isn't acknowledged. A subflow that
 * is closed, where there is another one, has Linux send all of it again.
 *
 * A peer that hasn't heard yet that subflows have gone may refuse new ones, as there are too many. Linux asks no second time, so a network
 * that was made anew, but has no subflow while connections go on over the others, is renewed some more times.
 */
#include "config.h"

#include "paths/outage.h"

#include "common/clock.h"

#include <string.h>

#define ANSWERED_MS 1000 /* after which a subflow whose peer was reached in another way has no answer to its own SYN */
#define PACE_MAX_MS 30000
#define STRANDED_MS 4000 /* four SYNs later */
#define MAKE_MS 200      /* besides two round trips of those that RM_ADDR may go over */
#define JOIN_MS 1000     /* at first; then twice as long each time */
#define JOINS_MAX 5
#define MISTAKE_MS 1000  /* a SYN that is answered so soon after the first renewal tells that the network works */
#define TRUST_MS 10000
#define MISTAKES_MAX 6

#define PROMPT_MS 3000   /* the SYNs of several connections are answered one after the other */
#define LOOK_SOON_MS 20
#define ANSWER_MS 500    /* for so long after a peer has answered its subflows are looked at that often */
#define HELD_MS 1000     /* who is heard sooner after having been held was never silent */
#define HOLD_MS 2000     /* as TRUST_MS, of who was held */
#define RESEND_MS 3000   /* no connection is helped more often */
#define LOOK_ALONE_MS 100
#define LOOK_BUSY_MS 200
#define LOOK_IDLE_MS 1000

/* --- what is known --- */

static struct paths_outage *find_outage(struct paths_outages *outages, const union sockaddr_ip *local)
{
	for (size_t i = 0; i < outages->count; i++)
		if (sockaddr_ip_equal(&outages->list[i].local, local))
			return &outages->list[i];
	return NULL;
}

/* Notes that there has been a subflow from the address; the oldest ones are forgotten. */
static void note_address(struct paths_outages *outages, const union sockaddr_ip *local)
{
	if (paths_is_among(local, outages->left, outages->left_count))
		return;
	if (outages->left_count == PATHS_OUTAGES_MAX)
		memmove(outages->left, outages->left + 1, --outages->left_count * sizeof(outages->left[0]));
	outages->left[outages->left_count++] = *local;
}

static void note_addresses(struct paths_outages *outages, const struct paths_subflows *subflows)
{
	for (size_t i = 0; i < subflows->count; i++)
		if (subflows->list[i].established)
			note_address(outages, &subflows->list[i].local);
}

/* --- what a network is --- */

/* Does each connection with a subflow from the address have another one, over a network that isn't renewed already? */
static bool can_spare(const struct paths_outages *outages, const struct paths_subflows *subflows, const union sockaddr_ip *address)
{
	union sockaddr_ip without[PATHS_OUTAGES_MAX + 1] = { *address };
	size_t count = 1;

	for (size_t i = 0; i < outages->count; i++)
		if (outages->list[i].lasts)
			without[count++] = outages->list[i].local;
	for (size_t i = 0; i < subflows->count; i++)
		if (paths_subflow_is_from(&subflows->list[i], address) &&
		    !paths_subflows_go_on(subflows, subflows->list[i].token, without, count))
			return false;
	return !subflows->more;
}

static bool has_fallen_silent(const struct paths_outages *outages, const struct paths_subflows *subflows,
			      const union sockaddr_ip *local, bool trusted)
{
	if (paths_subflows_are_heard(subflows, local))
		return false;
	for (size_t i = 0; i < subflows->count; i++) {
		const struct paths_subflow *subflow = &subflows->list[i];

		if (paths_subflow_is_from(subflow, local) && subflow->established && paths_subflow_is_quiet(subflow) &&
		    (subflow->unanswered || (!trusted && (subflow->incomplete || paths_flows_has_paused(&outages->flows, subflows, i)))))
			return true;
	}
	return false;
}

static void end_outage(struct paths_outage *outage, int64_t now)
{
	bool mistake = outage->renewed == outage->since && now - outage->since < MISTAKE_MS * CLOCK_NS_PER_MS;

	if (outage->alone)
		outage->prompt_until = now + PROMPT_MS * CLOCK_NS_PER_MS;
	outage->lasts = false;
	if (!mistake) {
		outage->mistakes = 0;
		return;
	}
	outage->trusted_until = now + (TRUST_MS * CLOCK_NS_PER_MS << outage->mistakes);
	if (outage->mistakes < MISTAKES_MAX)
		outage->mistakes++;
}

/* --- what is done --- */

/* How often something is done again: at first, and then by the share of the outage's time. */
struct pace {
	int64_t first_ms, share;
};

static const struct pace while_alone = { 300, 200 };     /* somebody waits: a second or less for some minutes */
static const struct pace asks = { 2000, 20 };
static const struct pace futile_renewals = { 12000, 20 }; /* whoever answers, but to no subflow's SYN */

/* Is it time to do it once more, after @before? */
static bool is_due(int64_t since, int64_t before, const struct pace *pace, int64_t now)
{
	int64_t ms = (before - since) / CLOCK_NS_PER_MS / pace->share;

	if (ms < pace->first_ms)
		ms = pace->first_ms;
	if (ms > PACE_MAX_MS)
		ms = PACE_MAX_MS;
	return now - before >= ms * CLOCK_NS_PER_MS;
}

/* When what is sent now has arrived over the networks that are heard; 0: none is. */
static int64_t when_told(const struct paths_subflows *subflows, const union sockaddr_ip *local, int64_t now)
{
	int64_t rtt = paths_subflows_rtt_elsewhere_ms(subflows, local);

	return rtt < 0 ? 0 : now + (MAKE_MS + 2 * rtt) * CLOCK_NS_PER_MS;
}

/* Takes the endpoint away, and makes it as soon as the peer may know. */
static void take(struct paths_outage *outage, const struct paths_subflows *subflows, int64_t now, struct paths_renewal *out)
{
	out->take = true;
	outage->withdraw_at = 0;
	outage->make_at = when_told(subflows, &outage->local, now);
	out->make = !outage->make_at;
}

static void renew(struct paths_outage *outage, const struct paths_subflows *subflows, int64_t now, struct paths_renewal *out)
{
	take(outage, subflows, now, out);
	outage->alone = out->make;
	outage->renewed = outage->asked = now;
	outage->joins = 0;
	outage->join_at = now + JOIN_MS * CLOCK_NS_PER_MS;
}

/* Asks a peer of those that have a subflow from here. */
static void ask(struct paths_outage *outage, const struct paths_subflows *subflows, int64_t now, struct paths_renewal *out)
{
	for (size_t i = 0; i < subflows->count && !out->ask; i++) {
		if (!paths_subflow_is_from(&subflows->list[i], &outage->local))
			continue;
		out->ask = true;
		out->peer = subflows->list[i].peer;
	}
	outage->asked = now;
}

/* While others work a renewal has to have a prospect; or it is to tell the peer what it can't have been told while none did. */
static bool may_renew(const struct paths_outage *outage, bool alone, int64_t now)
{
	if (alone)
		return is_due(outage->since, outage->renewed, &while_alone, now);
	if (outage->answered && !outage->futile)
		return now - outage->answered >= ANSWERED_MS * CLOCK_NS_PER_MS;
	return (outage->answered || outage->alone) && is_due(outage->since, outage->renewed, &futile_renewals, now);
}

/* It is known to be silent. If no SYN is out any more then it was answered, be it by a reset. */
static void go_on(struct paths_outage *outage, const struct paths_subflows *subflows, int64_t now, struct paths_renewal *out)
{
	bool alone = paths_subflows_rtt_elsewhere_ms(subflows, &outage->local) < 0;

	if (paths_subflows_are_heard(subflows, &outage->local) || !paths_subflows_ask(subflows, &outage->local)) {
		end_outage(outage, now);
	} else if (may_renew(outage, alone, now) &&
		 (!paths_subflows_are_stranded(subflows) || now - outage->renewed >= STRANDED_MS * CLOCK_NS_PER_MS)) {
		outage->futile = !alone && outage->answered;
		outage->answered = 0;
		renew(outage, subflows, now, out);
	} else if (!alone && !outage->answered && is_due(outage->since, outage->asked, &asks, now)) {
		ask(outage, subflows, now, out);
	}
}

/* Is another network silent, or asked, while nothing is heard over any? @from: the first of those that count. */
static bool is_among_silent(const struct paths_outages *outages, const struct paths_subflows *subflows, size_t from)
{
	bool found = false;

	for (size_t i = 0; i < outages->count; i++) {
		const struct paths_outage *other = &outages->list[i];

		if (paths_subflows_are_heard(subflows, &other->local))
			return false;
		found = found || (i >= from && (other->lasts || other->held || has_fallen_silent(outages, subflows, &other->local, false)));
	}
	return found;
}

static void begin_outage(struct paths_outage *outage, int64_t since, const struct paths_subflows *subflows, int64_t now,
			 struct paths_renewal *out)
{
	outage->lasts = true;
	outage->futile = false;
	outage->since = since;
	if (!outage->held)
		outage->answered = 0;
	outage->held = 0;
	renew(outage, subflows, now, out);
}

static void begin_hold(struct paths_outage *outage, const struct paths_subflows *subflows, int64_t now, struct paths_renewal *out)
{
	outage->held = now;
	outage->answered = 0;
	ask(outage, subflows, now, out);
}

/*
 * What is to be done about a network that none has said anything of. Where nothing is heard over any, those that have nothing to miss are
 * with the one that has: of all the last one is kept, and not whichever was found first.
 */
static void suspect(struct paths_outages *outages, size_t at, const struct paths_subflows *subflows, int64_t now,
		    struct paths_renewal *out)
{
	struct paths_outage *outage = &outages->list[at];
	bool trusted = now < outage->trusted_until;
	bool silent = has_fallen_silent(outages, subflows, &outage->local, trusted);
	bool spare = can_spare(outages, subflows, &outage->local);

	if (!paths_subflows_are_open(subflows, &outage->local))
		return;
	if (spare && (silent || (!trusted && is_among_silent(outages, subflows, at + 1))))
		begin_outage(outage, now, subflows, now, out);
	else if (now >= outage->hold_after && (silent || is_among_silent(outages, subflows, 0)))
		begin_hold(outage, subflows, now, out);
}

/* It wasn't silent: that it is quiet means nothing for a while. */
static void end_hold(struct paths_outage *outage, int64_t now)
{
	outage->held = 0;
	outage->hold_after = now + (HOLD_MS * CLOCK_NS_PER_MS << outage->holds);
	if (outage->holds < MISTAKES_MAX)
		outage->holds++;
}

/* It is silent, and connections have no other one. Whatever has come over it since, its subflows are renewed once that can be. */
static void hold(const struct paths_outages *outages, struct paths_outage *outage, const struct paths_subflows *subflows, int64_t now,
		 struct paths_renewal *out)
{
	bool long_held = now - outage->held >= HELD_MS * CLOCK_NS_PER_MS;
	bool spare = can_spare(outages, subflows, &outage->local);

	if (!outage->answered && paths_subflows_are_heard(subflows, &outage->local))
		outage->answered = now;
	if (!paths_subflows_are_open(subflows, &outage->local)) {
		outage->held = 0;
	} else if (outage->answered && outage->answered - outage->held < HELD_MS * CLOCK_NS_PER_MS) {
		end_hold(outage, now);
	} else if ((spare && long_held) || (outage->answered && paths_flows_may_return(&outages->flows, subflows, &outage->local))) {
		begin_outage(outage, outage->held, subflows, now, out);
		out->last = !spare;
	} else if (spare || (outage->answered && now - outage->answered >= HELD_MS * CLOCK_NS_PER_MS)) {
		outage->held = 0;
	} else if (!outage->answered && is_due(outage->held, outage->asked, &while_alone, now)) {
		ask(outage, subflows, now, out);
	}
}

/* Is a connection over other networks of ours that has, as all others, no subflow here? */
static bool lacks_subflow(const struct paths_outages *outages, const struct paths_subflows *subflows, const union sockaddr_ip *local)
{
	bool found = false;

	for (size_t i = 0; i < subflows->count; i++) {
		const struct paths_subflow *subflow = &subflows->list[i];

		if (paths_subflow_is_from(subflow, local))
			return false;
		for (size_t j = 0; j < outages->count; j++)
			found = found || (paths_subflow_is_from(subflow, &outages->list[j].local) && subflow->established &&
					  !paths_subflow_is_quiet(subflow) &&
					  sockaddr_ip_is_v4(local) == sockaddr_ip_is_v4(&subflow->local));
	}
	return found && !subflows->more;
}

/*
 * Linux asks once from each endpoint: a connection whose peer has refused, for it knew too many subflows still, asks again. What the peer
 * knows are those that have gone in an outage of all networks, when no RM_ADDR could reach it, and that it waits for still: a host that
 * only receives never finds that out. RM_ADDR is sent for an address that a subflow is from, or that was announced. So one that was used
 * before is announced, and then taken back.
 */
static void join(struct paths_outages *outages, struct paths_outage *outage, const struct paths_subflows *subflows, int64_t now,
		 struct paths_renewal *out)
{
	take(outage, subflows, now, out);
	if (outage->make_at && paths_is_among(&outage->local, outages->left, outages->left_count)) {
		out->announce = true;
		outage->withdraw_at = outage->make_at;
		outage->make_at = 0;
	}
	outage->join_at = now + (JOIN_MS * CLOCK_NS_PER_MS << ++outage->joins);
}

/* Has a stalled connection send again, at the cost of its subflow over the least preferred network that it can spare. */
static void resend(struct paths_outages *outages, const struct paths_subflows *subflows, int64_t now, struct paths_renewal out[])
{
	if (outages->resent && now - outages->resent < RESEND_MS * CLOCK_NS_PER_MS)
		return;
	for (size_t i = outages->count; i-- > 0;) {
		struct paths_outage *outage = &outages->list[i];

		if (outage->gone || outage->lasts || outage->held || outage->make_at || outage->withdraw_at || out[i].take ||
		    !paths_flows_have_stalled(&outages->flows, subflows, &outage->local) ||
		    !can_spare(outages, subflows, &outage->local))
			continue;
		take(outage, subflows, now, &out[i]);
		outage->join_at = now + JOIN_MS * CLOCK_NS_PER_MS;
		outages->resent = now;
		return;
	}
}

/*
 * Its device is down, or its address away, and so are all the others. Nobody can be told that its subflows end, so that they are kept; when
 * it is back it is as if it had been silent since, and held.
 */
static void leave(struct paths_outage *outage, int64_t now)
{
	if (!outage->gone)
		outage->held = now;
	outage->gone = true;
	outage->lasts = false;
	outage->answered = outage->make_at = outage->withdraw_at = 0;
}

/* It is back: the time that it was away needn't have been long for its subflows to have lost what was under way. */
static void come_back(struct paths_outage *outage, int64_t now)
{
	outage->gone = false;
	outage->asked = 0;
	if (now - outage->held < HELD_MS * CLOCK_NS_PER_MS)
		outage->held = now - HELD_MS * CLOCK_NS_PER_MS;
}

/*
 * A network that was held has answered, and is renewed: what RM_ADDR there was of the others can't have arrived, and they are told again
 * by this way, before its subflows end. Their SYNs wait until that is there.
 */
static void tell_again(struct paths_outages *outages, const struct paths_subflows *subflows, size_t answered, int64_t now,
		       struct paths_renewal out[])
{
	int64_t rtt = 0;

	for (size_t i = 0; i < subflows->count; i++)
		if (paths_subflow_is_from(&subflows->list[i], &outages->list[answered].local) && subflows->list[i].rtt_ms > rtt)
			rtt = subflows->list[i].rtt_ms;
	for (size_t i = 0; i < outages->count; i++) {
		struct paths_outage *outage = &outages->list[i];

		if (i == answered || !outage->lasts || outage->make_at)
			continue;
		renew(outage, subflows, now, &out[i]);
		outage->make_at = now + (MAKE_MS + 2 * rtt) * CLOCK_NS_PER_MS;
		outage->alone = out[i].make = false;
	}
}

static void judge(struct paths_outages *outages, size_t at, const struct paths_subflows *subflows, int64_t now,
		  struct paths_renewal *out)
{
	struct paths_outage *outage = &outages->list[at];

	if (outage->make_at) {
		out->make = now >= outage->make_at;
		outage->make_at = out->make ? 0 : outage->make_at;
	} else if (outage->withdraw_at) {
		if (now >= outage->withdraw_at)
			take(outage, subflows, now, out);
	} else if (outage->lasts) {
		go_on(outage, subflows, now, out);
	} else if (outage->held) {
		hold(outages, outage, subflows, now, out);
	} else if (outage->joins < JOINS_MAX && now >= outage->join_at && lacks_subflow(outages, subflows, &outage->local)) {
		join(outages, outage, subflows, now, out);
	} else {
		suspect(outages, at, subflows, now, out);
	}
}

/* Has the list be of these addresses, in this order; what is known of them stays. */
static void take_addresses(struct paths_outages *outages, const struct paths_managed *own, size_t count, int64_t now)
{
	struct paths_outage next[PATHS_OUTAGES_MAX];

	for (size_t i = 0; i < count; i++) {
		const struct paths_outage *known = find_outage(outages, &own[i].address);

		next[i] = known ? *known
				: (struct paths_outage){ .local = own[i].address, .join_at = now + JOIN_MS * CLOCK_NS_PER_MS };
	}
	memcpy(outages->list, next, count * sizeof(next[0]));
	outages->count = count;
}

/* Leaves those by which something is to be done, in the order in which it is. Returns how many. */
static size_t collect(struct paths_renewal list[], size_t count)
{
	struct paths_renewal in_order[PATHS_OUTAGES_MAX];
	size_t found = 0;

	for (int last = 0; last <= 1; last++)
		for (size_t i = 0; i < count; i++)
			if (list[i].last == last && (list[i].take || list[i].make || list[i].ask || list[i].prompt))
				in_order[found++] = list[i];
	memcpy(list, in_order, found * sizeof(list[0]));
	return found;
}

size_t paths_outages_find(struct paths_outages *outages, const struct paths_subflows *subflows,
			  const struct paths_managed *own, size_t count, int64_t now,
			  struct paths_renewal out[static PATHS_OUTAGES_MAX])
{
	paths_flows_note(&outages->flows, subflows, now);
	note_addresses(outages, subflows);
	take_addresses(outages, own, count < PATHS_OUTAGES_MAX ? count : PATHS_OUTAGES_MAX, now);
	for (size_t i = 0; i < outages->count; i++) {
		struct paths_outage *outage = &outages->list[i];

		out[i] = (struct paths_renewal){ .local = outage->local };
		if (!own[i].usable) {
			leave(outage, now);
			continue;
		}
		if (outage->gone)
			come_back(outage, now);
		judge(outages, i, subflows, now, &out[i]);
	}
	for (size_t i = 0; i < outages->count; i++) {
		if (out[i].last)
			tell_again(outages, subflows, i, now, out);
		out[i].prompt = !out[i].take && now < outages->list[i].prompt_until &&
				paths_flows_are_fresh(&outages->flows, subflows, &outages->list[i].local);
	}
	resend(outages, subflows, now, out);
	return collect(out, outages->count);
}

void paths_outages_answered(struct paths_outages *outages, const union sockaddr_ip *local, int64_t now)
{
	struct paths_outage *outage = find_outage(outages, local);

	if (outage && (outage->held || outage->lasts) && !outage->answered)
		outage->answered = now;
}

/* Is a network asked, while none is heard? */
static bool is_alone(const struct paths_outages *outages, const struct paths_subflows *subflows)
{
	bool asked = false;

	for (size_t i = 0; i < outages->count; i++) {
		if (paths_subflows_are_heard(subflows, &outages->list[i].local))
			return false;
		asked = asked || outages->list[i].lasts || outages->list[i].held;
	}
	return asked;
}

int paths_outages_interval_ms(const struct paths_outages *outages, const struct paths_subflows *subflows, int64_t now)
{
	int interval = LOOK_IDLE_MS;

	for (size_t i = 0; i < subflows->count; i++)
		if (subflows->list[i].heard_ms < LOOK_IDLE_MS || subflows->list[i].unanswered ||
		    subflows->list[i].owed >= PATHS_STALLED_BYTES)
			interval = LOOK_BUSY_MS;
	for (size_t i = 0; i < subflows->count; i++) {
		int quiet_in = (int)paths_subflow_quiet_in_ms(&subflows->list[i]);

		if (subflows->list[i].established && quiet_in > 0 && quiet_in < interval)
			interval = quiet_in < LOOK_SOON_MS ? LOOK_SOON_MS : quiet_in;
	}
	if (is_alone(outages, subflows) && interval > LOOK_ALONE_MS)
		interval = LOOK_ALONE_MS;
	for (size_t i = 0; i < outages->count; i++) {
		int64_t next = outages->list[i].make_at ? outages->list[i].make_at : outages->list[i].withdraw_at;
		int64_t left = (next - now) / CLOCK_NS_PER_MS;

		if ((outages->list[i].lasts || outages->list[i].held) && interval > LOOK_BUSY_MS)
			interval = LOOK_BUSY_MS;
		if (outages->list[i].answered && now - outages->list[i].answered < ANSWER_MS * CLOCK_NS_PER_MS)
			interval = LOOK_SOON_MS;
		if (next && left < interval)
			interval = left > 0 ? (int)left + 1 : 1;
	}
	return interval;
}

