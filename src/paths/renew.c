/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * renew.c - renews subflows over silent networks, and asks peers there; outage.c decides when
 *
 * When a silent network works again, its subflow shows that only after its retransmission timer expires, or after Linux repeats its SYN,
 * perhaps many seconds later. A SYN of our own to the same peer and port shows it at once, and passes all firewalls that the subflow's SYN
 * passed (host/path_probe.c).
 */
#include "config.h"

#include "paths/mend.h"

#include "common/clock.h"

#include <string.h>

#define AGAIN_MS 1000 /* the next look after the kernel failed to answer */
#define NEEDED_MS 100 /* while a connection waits for its subflow over another network */

/* --- probes --- */

static void drop(struct paths_probes *probes, size_t at)
{
	path_probe_close(&probes->list[at].probe);
	probes->list[at] = probes->list[--probes->count];
}

/* Sends a SYN over the device @index, and drops an earlier one from the same address. */
static void probe_send(struct paths_probes *probes, const union sockaddr_ip *local, unsigned int index, const union sockaddr_ip *peer)
{
	const struct in6_addr source = sockaddr_ip_in6(local);

	for (size_t i = probes->count; i-- > 0;)
		if (sockaddr_ip_equal(&probes->list[i].local, local))
			drop(probes, i);
	if (probes->count < PATHS_OUTAGES_MAX &&
	    path_probe_send_to(&probes->list[probes->count].probe, peer, &source, (int)index, true))
		probes->list[probes->count++].local = *local;
}

size_t paths_probes_poll(const struct paths_probes *probes, struct pollfd out[static PATHS_OUTAGES_MAX])
{
	for (size_t i = 0; i < probes->count; i++)
		out[i] = (struct pollfd){ .fd = probes->list[i].probe.fd, .events = POLLOUT };
	return probes->count;
}

/* Sets @out to the addresses that got an answer, without waiting; a refusal is an answer, too. Returns their number. */
static size_t probe_take(struct paths_probes *probes, union sockaddr_ip out[static PATHS_OUTAGES_MAX])
{
	size_t found = 0;

	for (size_t i = probes->count; i-- > 0;) {
		struct path_probe *probe = &probes->list[i].probe;

		if (path_probe_look(probe) || probe->refused)
			out[found++] = probes->list[i].local;
		if (probe->fd < 0)
			drop(probes, i);
	}
	return found;
}

void paths_probes_end(struct paths_probes *probes)
{
	while (probes->count)
		drop(probes, 0);
}

/* --- renewals --- */

static void say(const struct paths_mender *mender, const union sockaddr_ip *address, const char *what)
{
	const struct host_network *network = paths_wanted_used(&mender->wanted, address);
	char text[PREFIX_STRLEN];

	if (network)
		paths_say("%s %s: %s", network->link.name, host_format_address(address, text), what);
}

/* Returns the message about a silent network; NULL: it isn't silent. */
static const char *silence_of(const struct paths_outage *outage)
{
	if (outage->held)
		return "silent, as all are; subflows are kept here, and their peers are asked until an answer comes";
	if (outage->lasts)
		return "silent; connections go on over the others, and ask here until an answer comes";
	return NULL;
}

/* Prints the networks that have fallen silent or are heard again since @before. */
static void tell(const struct paths_renewer *renewer, const struct paths_mender *mender, const struct paths_outages *before)
{
	for (size_t i = 0; i < renewer->outages.count; i++) {
		const struct paths_outage *outage = &renewer->outages.list[i];
		const char *now = silence_of(outage), *earlier = NULL;

		for (size_t j = 0; j < before->count; j++)
			if (sockaddr_ip_equal(&before->list[j].local, &outage->local))
				earlier = silence_of(&before->list[j]);
		if (now != earlier)
			say(mender, &outage->local, now ? now : "an answer has come");
	}
}

static void send_probes(struct paths_renewer *renewer, const struct paths_mender *mender, const struct paths_renewal *renewals,
			size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct host_network *network = paths_wanted_used(&mender->wanted, &renewals[i].local);

		if (renewals[i].ask && network)
			probe_send(&renewer->probes, &renewals[i].local, network->link.index, &renewals[i].peer);
	}
}

static void take_answers(struct paths_renewer *renewer, int64_t now)
{
	union sockaddr_ip answered[PATHS_OUTAGES_MAX];
	size_t count = probe_take(&renewer->probes, answered);

	for (size_t i = 0; i < count; i++)
		paths_outages_answered(&renewer->outages, &answered[i], now);
}

/* Do fewer of the networks that are gone now carry a connection's last subflow? */
static bool are_spared(const struct paths_renewer *renewer, const struct paths_wanted *wanted)
{
	bool needed[PATHS_OUTAGES_MAX];

	return wanted->needed_count &&
	       paths_needed_find(&renewer->subflows, wanted->needed, wanted->needed_count, needed) < wanted->needed_count;
}

int paths_renew(struct paths_renewer *renewer, struct paths_mender *mender)
{
	static struct paths_outages before;
	struct paths_managed own[PATHS_OUTAGES_MAX];
	struct paths_renewal renewals[PATHS_OUTAGES_MAX];
	int64_t now = clock_ns();
	size_t count = paths_managed_addresses(mender, own), due;
	int ret, interval;

	if (paths_kernel_subflows(&renewer->subflows) < 0)
		return AGAIN_MS;
	before.count = renewer->outages.count;
	memcpy(before.list, renewer->outages.list, sizeof(before.list));
	take_answers(renewer, now);
	due = paths_outages_find(&renewer->outages, &renewer->subflows, own, count, now, renewals);
	tell(renewer, mender, &before);
	send_probes(renewer, mender, renewals, due);
	ret = due ? paths_renew_endpoints(mender, renewals, due) : 0;
	if (ret < 0)
		return ret;
	mender->is_due = are_spared(renewer, &mender->wanted);
	interval = paths_outages_interval_ms(&renewer->outages, &renewer->subflows, now);
	return mender->wanted.needed_count && interval > NEEDED_MS ? NEEDED_MS : interval;
}
