/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outage.c - decides from the kernel's facts about subflows which networks have fallen silent, and what to do about them
 *
 * A network may drop all packets without any error. With Linux 6.18 the consequences cost a transfer more than the network itself. Data
 * continues over the other networks within half a second. But the subflow over the silent network stays, and its retransmission timer
 * doubles each time: after five seconds of silence it may wait another five until it sends again. Then it first sends its old queue,
 * initially one segment a round trip. New data queues behind that, and the whole connection waits for it. If a subflow is closed, the
 * others take its data at once, and RM_ADDR makes the peer do the same. A new subflow begins with an empty queue, and the answer to its
 * SYN shows that the network works again.
 *
 * So we delete a silent network's endpoint and make it again, which *renews* its subflows, and repeat that while their SYNs stay
 * unanswered, since Linux repeats a SYN each second only at first. While other networks work we don't close a subflow just because it
 * waits: when one closes, even one that has only sent a SYN, Linux retransmits all unacknowledged data of the connection, and the
 * transfer stalls for up to a second. Instead we *ask* the subflow's peer by a SYN of plain TCP, every two seconds and later less often.
 * When that gets an answer, and the subflow's own SYN gets none within the next second, we renew. Between deleting and making the
 * endpoint we wait, since RM_ADDR travels over other networks: if it arrives after a SYN over a shorter path, it ends the new
 * subflow (the address from which the connection began always has the number 0). While no network works, RM_ADDR arrives nowhere and
 * the user waits: then we send a SYN several times a second.
 *
 * A network is silent if a subflow shows it, no other subflow disproves it, and no connection would lose its last subflow:
 *
 *   - a subflow shows silence if its retransmission time-out has expired and nothing came since; if nothing comes though bytes are
 *     missing that the peer has promised there (its mapping: RFC 8684, 3.3.1); or if it carried much, now carries nothing, and another
 *     subflow of its connection carries much meanwhile;
 *   - any subflow over the network, of any connection, disproves it if it has heard of its peer lately;
 *   - each connection with a subflow there must have an established one over another network. Linux ends a connection without
 *     subflows after a time (net.mptcp.close_timeout), and the path manager must not cause that. Besides, an RM_ADDR that finds no
 *     subflow to travel over waits for the next one, and ends that (Linux 6.18).
 *
 * So if all networks are silent we renew the preferred ones and *keep* the last one: its subflows stay. They recover badly when the
 * network works again. Their timers have backed off. And if a timer expires at the wrong moment, the acknowledgement of data from
 * ten seconds ago makes TCP believe that the round trip takes seconds and that nothing was lost: it waits for as long again, and all
 * data behind it waits, too. So we also ask the peers over a kept network. After an answer, or when a subflow there hears of its peer,
 * we renew its subflows at once, though connections have no others: RM_ADDR and the new SYN take the same path, in this order. First
 * we send the RM_ADDR of the other networks, which can't have arrived before: otherwise the peer moves the data of the subflow that ends
 * to one over a silent network. All this requires that each of the connections has once had a joined subflow, which proves that the
 * peer accepts joins. Otherwise the subflows keep their timers until another network answers.
 *
 * At first the peer doesn't use a new subflow that is its connection's only one: Linux (6.18) sends its data when an acknowledgement
 * comes, or when the connection's timer expires, which the old subflows have set to a second or much more. In a download no
 * acknowledgement is due. So we *prompt* the subflow: it sends MP_PRIO in an acknowledgement.
 *
 * A pause may also come from the peer's scheduler, or from a reader that lets the window close. If the first SYN of a renewal gets an
 * answer at once, the network wasn't silent: then its pauses don't count for a while, twice as long each time. An expired time-out isn't
 * a pause, and always counts. We treat a kept network that answers at once in the same way.
 *
 * If all networks disappear visibly, their devices down or their addresses gone, all endpoints stay, since no RM_ADDR could reach a peer.
 * The endpoint of one network stays if a connection has no subflow elsewhere. From then on such networks count as kept.
 *
 * After a loss Linux may send more data over a subflow than the connection's window allows. The receiving host drops the excess after TCP
 * has acknowledged it (doc/kernel-mptcp-outages.md). So TCP doesn't resend it, and Multipath TCP resends one piece per time-out. Such a
 * connection is *stalled*: its subflows have nothing in flight, and much of its data is unacknowledged. If we close a subflow of it, and it
 * has another one, Linux retransmits all of that data.
 *
 * A peer that doesn't know yet that subflows have ended may refuse new ones as too many. Linux doesn't repeat such a join. So we make a
 * network's endpoint anew some times if it has no subflow while connections continue over the others.
 */
#include "config.h"

#include "paths/outage.h"

#include "common/clock.h"

#include <string.h>

#define ANSWERED_MS 1000 /* after an answer to our own SYN we give the subflow's SYN this time */
#define PACE_MAX_MS 30000
#define STRANDED_MS 4000 /* Linux has sent four SYNs by then: paths_subflows_are_stranded() */
#define MAKE_MS 200      /* from deleting an endpoint to making it again, besides two round trips of the subflows that may carry RM_ADDR */
#define JOIN_MS 1000     /* at first, then twice as long each time */
#define JOINS_MAX 5
#define MISTAKE_MS 1000  /* an answer this soon after the first renewal shows that the network works */
#define TRUST_MS 10000
#define MISTAKES_MAX 6

#define PROMPT_MS 3000   /* the answers to the SYNs of several connections come one after the other */
#define LOOK_SOON_MS 20
#define ANSWER_MS 500    /* after a peer's answer we look every LOOK_SOON_MS for this time */
#define KEPT_MS 1000     /* a kept network that is heard sooner was never silent */
#define KEEP_MS 2000     /* as TRUST_MS, for kept networks */
#define RESEND_MS 3000   /* the shortest time between two closed subflows of stalled connections */
#define LOOK_ALONE_MS 100
#define LOOK_BUSY_MS 200
#define LOOK_IDLE_MS 1000

/* --- facts --- */

static struct paths_network *find_network(struct paths_outages *outages, const union sockaddr_ip *local)
{
	for (size_t i = 0; i < outages->count; i++)
		if (sockaddr_ip_equal(&outages->list[i].local, local))
			return &outages->list[i];
	return NULL;
}

/* Notes that a subflow came from the address. Forgets the oldest address if there are too many. */
static void note_address(struct paths_outages *outages, const union sockaddr_ip *local)
{
	if (paths_is_among(local, outages->seen, outages->seen_count))
		return;
	if (outages->seen_count == PATHS_OUTAGES_MAX)
		memmove(outages->seen, outages->seen + 1, --outages->seen_count * sizeof(outages->seen[0]));
	outages->seen[outages->seen_count++] = *local;
}

static void note_addresses(struct paths_outages *outages, const struct paths_subflows *subflows)
{
	for (size_t i = 0; i < subflows->count; i++)
		if (subflows->list[i].established)
			note_address(outages, &subflows->list[i].local);
}

/* --- the state of a network --- */

/* Does each connection with a subflow from the address have another one, over a network that we aren't renewing? */
static bool can_spare(const struct paths_outages *outages, const struct paths_subflows *subflows, const union sockaddr_ip *address)
{
	union sockaddr_ip without[PATHS_OUTAGES_MAX + 1] = { *address };
	size_t count = 1;

	for (size_t i = 0; i < outages->count; i++)
		if (outages->list[i].silent)
			without[count++] = outages->list[i].local;
	for (size_t i = 0; i < subflows->count; i++)
		if (sockaddr_ip_equal(&subflows->list[i].local, address) &&
		    !paths_subflows_go_on(subflows, subflows->list[i].token, without, count))
			return false;
	return !subflows->more;
}

static bool has_fallen_silent(const struct paths_outages *outages, const struct paths_subflows *subflows,
			      const union sockaddr_ip *local, bool trusted)
{
	if (paths_signs_of(&outages->flows, subflows, local).heard)
		return false;
	for (size_t i = 0; i < subflows->count; i++) {
		const struct paths_subflow *subflow = &subflows->list[i];

		if (sockaddr_ip_equal(&subflow->local, local) && subflow->established && paths_subflow_is_quiet(subflow) &&
		    (subflow->unanswered || (!trusted && (subflow->incomplete || paths_flows_has_paused(&outages->flows, subflows, i)))))
			return true;
	}
	return false;
}

static void end_outage(struct paths_network *network, int64_t now)
{
	bool mistake = network->renewed == network->since && now - network->since < MISTAKE_MS * CLOCK_NS_PER_MS;

	if (network->alone)
		network->prompt_until = now + PROMPT_MS * CLOCK_NS_PER_MS;
	network->silent = false;
	if (!mistake) {
		network->mistakes = 0;
		return;
	}
	network->trusted_until = now + (TRUST_MS * CLOCK_NS_PER_MS << network->mistakes);
	if (network->mistakes < MISTAKES_MAX)
		network->mistakes++;
}

/* --- actions --- */

/* The interval between repetitions: first_ms, or the outage's time divided by share if that is longer. */
struct pace {
	int64_t first_ms, share;
};

static const struct pace while_alone = { 300, 200 };     /* the user waits: a second or less for some minutes */
static const struct pace asks = { 2000, 20 };
static const struct pace futile_renewals = { 12000, 20 }; /* the peer answers our SYNs, but not the subflows' */

/* Is the next repetition due, after the last one at @before? */
static bool is_due(int64_t since, int64_t before, const struct pace *pace, int64_t now)
{
	int64_t ms = (before - since) / CLOCK_NS_PER_MS / pace->share;

	if (ms < pace->first_ms)
		ms = pace->first_ms;
	if (ms > PACE_MAX_MS)
		ms = PACE_MAX_MS;
	return now - before >= ms * CLOCK_NS_PER_MS;
}

/* Returns the time by which an RM_ADDR that is sent now has arrived over another network; 0: no other network works. */
static int64_t when_told(const struct paths_subflows *subflows, const union sockaddr_ip *local, int64_t now)
{
	int64_t rtt = paths_subflows_rtt_elsewhere_ms(subflows, local);

	return rtt < 0 ? 0 : now + (MAKE_MS + 2 * rtt) * CLOCK_NS_PER_MS;
}

/* Deletes the endpoint, and adds it again once the RM_ADDR has reached the peer, or at once if no other network works. */
static void replace_endpoint(struct paths_network *network, const struct paths_subflows *subflows, int64_t now, struct paths_renewal *out)
{
	out->remove = true;
	network->withdraw_at = 0;
	network->add_at = when_told(subflows, &network->local, now);
	out->add = !network->add_at;
}

static void renew_network(struct paths_network *network, const struct paths_subflows *subflows, int64_t now, struct paths_renewal *out)
{
	replace_endpoint(network, subflows, now, out);
	network->alone = out->add;
	network->renewed = network->asked = now;
	network->joins = 0;
	network->join_at = now + JOIN_MS * CLOCK_NS_PER_MS;
}

/* Asks the peer of a subflow on this network, by a SYN of plain TCP. */
static void ask(struct paths_network *network, const struct paths_subflows *subflows, int64_t now, struct paths_renewal *out)
{
	for (size_t i = 0; i < subflows->count && !out->ask; i++) {
		if (!sockaddr_ip_equal(&subflows->list[i].local, &network->local))
			continue;
		out->ask = true;
		out->peer = subflows->list[i].peer;
	}
	network->asked = now;
}

/*
 * May we renew again? While other networks work, only if the peer has answered, or if no network worked at the last renewal, so that its
 * RM_ADDR can't have reached the peer.
 */
static bool may_renew(const struct paths_network *network, bool alone, int64_t now)
{
	if (alone)
		return is_due(network->since, network->renewed, &while_alone, now);
	if (network->answered && !network->futile)
		return now - network->answered >= ANSWERED_MS * CLOCK_NS_PER_MS;
	return (network->answered || network->alone) && is_due(network->since, network->renewed, &futile_renewals, now);
}

/* Continues with a silent network. If no subflow's SYN waits any more, the peer has answered it, perhaps by a reset. */
static void go_on(struct paths_outages *outages, struct paths_network *network, const struct paths_subflows *subflows, int64_t now,
		  struct paths_renewal *out)
{
	const struct paths_signs signs = paths_signs_of(&outages->flows, subflows, &network->local);
	bool alone = paths_subflows_rtt_elsewhere_ms(subflows, &network->local) < 0;

	if (signs.heard || !signs.asks) {
		end_outage(network, now);
	} else if (may_renew(network, alone, now) &&
		 (!paths_subflows_are_stranded(subflows) || now - network->renewed >= STRANDED_MS * CLOCK_NS_PER_MS)) {
		network->futile = !alone && network->answered;
		network->answered = 0;
		renew_network(network, subflows, now, out);
	} else if (!alone && !network->answered && is_due(network->since, network->asked, &asks, now)) {
		ask(network, subflows, now, out);
	}
}

/* Is a network, from index @from on, silent or kept, while nothing comes over any network? */
static bool is_among_silent(const struct paths_outages *outages, const struct paths_subflows *subflows, size_t from)
{
	bool found = false;

	for (size_t i = 0; i < outages->count; i++) {
		const struct paths_network *other = &outages->list[i];

		if (paths_signs_of(&outages->flows, subflows, &other->local).heard)
			return false;
		found = found || (i >= from && (other->silent || other->kept_since ||
						has_fallen_silent(outages, subflows, &other->local, false)));
	}
	return found;
}

static void begin_outage(struct paths_network *network, int64_t since, const struct paths_subflows *subflows, int64_t now,
			 struct paths_renewal *out)
{
	network->silent = true;
	network->futile = false;
	network->since = since;
	if (!network->kept_since)
		network->answered = 0;
	network->kept_since = 0;
	renew_network(network, subflows, now, out);
}

static void begin_keeping(struct paths_network *network, const struct paths_subflows *subflows, int64_t now, struct paths_renewal *out)
{
	network->kept_since = now;
	network->answered = 0;
	ask(network, subflows, now, out);
}

/*
 * Judges a network that wasn't silent so far. If nothing comes over any network, even one whose own subflows show no silence counts as
 * silent. So we keep the least preferred network, and not the first that we judged.
 */
static void suspect(struct paths_outages *outages, size_t at, const struct paths_subflows *subflows, int64_t now,
		    struct paths_renewal *out)
{
	struct paths_network *network = &outages->list[at];
	bool trusted = now < network->trusted_until;
	bool silent = has_fallen_silent(outages, subflows, &network->local, trusted);
	bool spare = can_spare(outages, subflows, &network->local);

	if (!paths_signs_of(&outages->flows, subflows, &network->local).open)
		return;
	if (spare && (silent || (!trusted && is_among_silent(outages, subflows, at + 1))))
		begin_outage(network, now, subflows, now, out);
	else if (now >= network->keep_after && (silent || is_among_silent(outages, subflows, 0)))
		begin_keeping(network, subflows, now, out);
}

/* The network wasn't silent: we no longer keep it, and don't keep it again for a while. */
static void end_keeping(struct paths_network *network, int64_t now)
{
	network->kept_since = 0;
	network->keep_after = now + (KEEP_MS * CLOCK_NS_PER_MS << network->keep_mistakes);
	if (network->keep_mistakes < MISTAKES_MAX)
		network->keep_mistakes++;
}

/* Continues with a kept network: silent, and the last one of a connection. Renews its subflows as soon as that is possible. */
static void keep_network(const struct paths_outages *outages, struct paths_network *network, const struct paths_subflows *subflows,
			 int64_t now, struct paths_renewal *out)
{
	const struct paths_signs signs = paths_signs_of(&outages->flows, subflows, &network->local);
	bool is_long_kept = now - network->kept_since >= KEPT_MS * CLOCK_NS_PER_MS;
	bool spare = can_spare(outages, subflows, &network->local);

	if (!network->answered && signs.heard)
		network->answered = now;
	if (!signs.open) {
		network->kept_since = 0;
	} else if (network->answered && network->answered - network->kept_since < KEPT_MS * CLOCK_NS_PER_MS) {
		end_keeping(network, now);
	} else if ((spare && is_long_kept) || (network->answered && signs.may_return)) {
		begin_outage(network, network->kept_since, subflows, now, out);
		out->last = !spare;
	} else if (spare || (network->answered && now - network->answered >= KEPT_MS * CLOCK_NS_PER_MS)) {
		network->kept_since = 0;
	} else if (!network->answered && is_due(network->kept_since, network->asked, &while_alone, now)) {
		ask(network, subflows, now, out);
	}
}

/* Is there a connection over other networks of ours, while no connection has a subflow here? */
static bool lacks_subflow(const struct paths_outages *outages, const struct paths_subflows *subflows, const union sockaddr_ip *local)
{
	bool found = false;

	for (size_t i = 0; i < subflows->count; i++) {
		const struct paths_subflow *subflow = &subflows->list[i];

		if (sockaddr_ip_equal(&subflow->local, local))
			return false;
		for (size_t j = 0; j < outages->count; j++)
			found = found || (sockaddr_ip_equal(&subflow->local, &outages->list[j].local) && subflow->established &&
					  !paths_subflow_is_quiet(subflow) &&
					  sockaddr_ip_is_v4(local) == sockaddr_ip_is_v4(&subflow->local));
	}
	return found && !subflows->more;
}

/*
 * Makes connections join again from the address. Linux tries once from each endpoint, and a peer refuses while it still counts too many
 * subflows: those that ended in an outage of all networks, when no RM_ADDR could reach it. A peer that only receives never notices
 * their end. Linux sends RM_ADDR only for an address that has a subflow or was announced. So we announce an address that had subflows
 * before, and withdraw it.
 */
static void join(struct paths_outages *outages, struct paths_network *network, const struct paths_subflows *subflows, int64_t now,
		 struct paths_renewal *out)
{
	replace_endpoint(network, subflows, now, out);
	if (network->add_at && paths_is_among(&network->local, outages->seen, outages->seen_count)) {
		out->announce = true;
		network->withdraw_at = network->add_at;
		network->add_at = 0;
	}
	network->join_at = now + (JOIN_MS * CLOCK_NS_PER_MS << ++network->joins);
}

/* Makes a stalled connection retransmit: closes its subflow over the least preferred network that it can spare. */
static void resend(struct paths_outages *outages, const struct paths_subflows *subflows, int64_t now, struct paths_renewal out[])
{
	if (outages->resent && now - outages->resent < RESEND_MS * CLOCK_NS_PER_MS)
		return;
	for (size_t i = outages->count; i-- > 0;) {
		struct paths_network *network = &outages->list[i];

		if (network->gone || network->silent || network->kept_since || network->add_at || network->withdraw_at || out[i].remove ||
		    !paths_signs_of(&outages->flows, subflows, &network->local).stalled || !can_spare(outages, subflows, &network->local))
			continue;
		replace_endpoint(network, subflows, now, &out[i]);
		network->join_at = now + JOIN_MS * CLOCK_NS_PER_MS;
		outages->resent = now;
		return;
	}
}

/*
 * The network is gone, its device down or without its address, and its endpoint and subflows stay (paths_wanted_keeps()). When it is back
 * it counts as silent and kept since now.
 */
static void leave(struct paths_network *network, int64_t now)
{
	if (!network->gone)
		network->kept_since = now;
	network->gone = true;
	network->silent = false;
	network->answered = network->add_at = network->withdraw_at = 0;
}

/* The network is back. Its subflows lost their data in flight even in a short absence: so it counts as kept for long enough to renew. */
static void come_back(struct paths_network *network, int64_t now)
{
	network->gone = false;
	network->asked = 0;
	if (now - network->kept_since < KEPT_MS * CLOCK_NS_PER_MS)
		network->kept_since = now - KEPT_MS * CLOCK_NS_PER_MS;
}

/*
 * A kept network has answered, and we renew it. Earlier RM_ADDR of the other networks can't have arrived. So we delete their endpoints
 * again, and RM_ADDR travels over this network before its subflows end. Their new SYNs wait until it has arrived.
 */
static void tell_again(struct paths_outages *outages, const struct paths_subflows *subflows, size_t answered, int64_t now,
		       struct paths_renewal out[])
{
	int64_t rtt = 0;

	for (size_t i = 0; i < subflows->count; i++)
		if (sockaddr_ip_equal(&subflows->list[i].local, &outages->list[answered].local) && subflows->list[i].rtt_ms > rtt)
			rtt = subflows->list[i].rtt_ms;
	for (size_t i = 0; i < outages->count; i++) {
		struct paths_network *network = &outages->list[i];

		if (i == answered || !network->silent || network->add_at)
			continue;
		renew_network(network, subflows, now, &out[i]);
		network->add_at = now + (MAKE_MS + 2 * rtt) * CLOCK_NS_PER_MS;
		network->alone = out[i].add = false;
	}
}

static void judge_network(struct paths_outages *outages, size_t at, const struct paths_subflows *subflows, int64_t now,
			  struct paths_renewal *out)
{
	struct paths_network *network = &outages->list[at];

	if (network->add_at) {
		out->add = now >= network->add_at;
		network->add_at = out->add ? 0 : network->add_at;
	} else if (network->withdraw_at) {
		if (now >= network->withdraw_at)
			replace_endpoint(network, subflows, now, out);
	} else if (network->silent) {
		go_on(outages, network, subflows, now, out);
	} else if (network->kept_since) {
		keep_network(outages, network, subflows, now, out);
	} else if (network->joins < JOINS_MAX && now >= network->join_at && lacks_subflow(outages, subflows, &network->local)) {
		join(outages, network, subflows, now, out);
	} else {
		suspect(outages, at, subflows, now, out);
	}
}

/* Replaces the list by these addresses, in this order, and keeps what we know of those that stay. */
static void take_addresses(struct paths_outages *outages, const struct paths_managed *own, size_t count, int64_t now)
{
	struct paths_network next[PATHS_OUTAGES_MAX];

	for (size_t i = 0; i < count; i++) {
		const struct paths_network *known = find_network(outages, &own[i].address);

		next[i] = known ? *known
				: (struct paths_network){ .local = own[i].address, .join_at = now + JOIN_MS * CLOCK_NS_PER_MS };
	}
	memcpy(outages->list, next, count * sizeof(next[0]));
	outages->count = count;
}

/* Keeps only the renewals with something to do, in the order in which to do it. Returns their number. */
static size_t collect(struct paths_renewal list[], size_t count)
{
	struct paths_renewal in_order[PATHS_OUTAGES_MAX];
	size_t found = 0;

	for (int last = 0; last <= 1; last++)
		for (size_t i = 0; i < count; i++)
			if (list[i].last == last && (list[i].remove || list[i].add || list[i].ask || list[i].prompt))
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
		struct paths_network *network = &outages->list[i];

		out[i] = (struct paths_renewal){ .local = network->local };
		if (!own[i].usable) {
			leave(network, now);
			continue;
		}
		if (network->gone)
			come_back(network, now);
		judge_network(outages, i, subflows, now, &out[i]);
	}
	for (size_t i = 0; i < outages->count; i++) {
		if (out[i].last)
			tell_again(outages, subflows, i, now, out);
		out[i].prompt = !out[i].remove && now < outages->list[i].prompt_until &&
				paths_signs_of(&outages->flows, subflows, &outages->list[i].local).fresh;
	}
	resend(outages, subflows, now, out);
	return collect(out, outages->count);
}

void paths_outages_answered(struct paths_outages *outages, const union sockaddr_ip *local, int64_t now)
{
	struct paths_network *network = find_network(outages, local);

	if (network && (network->kept_since || network->silent) && !network->answered)
		network->answered = now;
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
	if (is_among_silent(outages, subflows, 0) && interval > LOOK_ALONE_MS)
		interval = LOOK_ALONE_MS;
	for (size_t i = 0; i < outages->count; i++) {
		int64_t next = outages->list[i].add_at ? outages->list[i].add_at : outages->list[i].withdraw_at;
		int64_t left = (next - now) / CLOCK_NS_PER_MS;

		if ((outages->list[i].silent || outages->list[i].kept_since) && interval > LOOK_BUSY_MS)
			interval = LOOK_BUSY_MS;
		if (outages->list[i].answered && now - outages->list[i].answered < ANSWER_MS * CLOCK_NS_PER_MS)
			interval = LOOK_SOON_MS;
		if (next && left < interval)
			interval = left > 0 ? (int)left + 1 : 1;
	}
	return interval;
}
