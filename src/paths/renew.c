/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * renew.c - has subflows over networks that are silent made anew, and asks such networks: outage.c says when
 *
 * A subflow over a silent network tells that it works when its retransmission timer expires, or when Linux sends its SYN again, which may
 * be many seconds later. A SYN to the same peer and port tells at once, and passes wherever the subflow's own has passed. The connection is
 * reset as soon as the answer is there: nobody is to serve it.
 */
#include "config.h"

#include "paths/mend.h"

#include "common/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define AGAIN_MS 1000 /* where the kernel couldn't be asked */
#define NEEDED_MS 100 /* while a connection waits for its subflow over another network */

/* --- probes --- */

static void drop(struct paths_probes *probes, size_t at)
{
	close(probes->list[at].fd);
	probes->list[at] = probes->list[--probes->count];
}

/* Returns a socket whose SYN is on its way, or -1. */
static int send_syn(const union sockaddr_ip *local, unsigned int index, const union sockaddr_ip *peer)
{
	const struct linger reset = { .l_onoff = 1 };
	int device = (int)index;
	int fd = socket(peer->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &device, sizeof(device)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == 0 &&
	    bind(fd, &local->sa, sockaddr_ip_len(local)) == 0 &&
	    (connect(fd, &peer->sa, sockaddr_ip_len(peer)) == 0 || errno == EINPROGRESS))
		return fd;
	close(fd);
	return -1;
}

/* Sends a SYN over the device @index; one that was sent from the same address before is no longer waited for. */
static void probe_send(struct paths_probes *probes, const union sockaddr_ip *local, unsigned int index, const union sockaddr_ip *peer)
{
	int fd = send_syn(local, index, peer);

	for (size_t i = probes->count; i-- > 0;)
		if (sockaddr_ip_equal(&probes->list[i].local, local))
			drop(probes, i);
	if (fd >= 0 && probes->count == PATHS_OUTAGES_MAX) {
		close(fd);
	} else if (fd >= 0) {
		probes->list[probes->count].local = *local;
		probes->list[probes->count++].fd = fd;
	}
}

size_t paths_probes_poll(const struct paths_probes *probes, struct pollfd out[static PATHS_OUTAGES_MAX])
{
	for (size_t i = 0; i < probes->count; i++)
		out[i] = (struct pollfd){ .fd = probes->list[i].fd, .events = POLLOUT };
	return probes->count;
}

/* Sets @out to the addresses that have had an answer, without waiting; a refusal is one, too. Returns how many. */
static size_t probe_take(struct paths_probes *probes, union sockaddr_ip out[static PATHS_OUTAGES_MAX])
{
	size_t found = 0;

	for (size_t i = probes->count; i-- > 0;) {
		struct pollfd ready = { .fd = probes->list[i].fd, .events = POLLOUT };
		int error = 0;
		socklen_t len = sizeof(error);

		if (poll(&ready, 1, 0) <= 0)
			continue;
		getsockopt(ready.fd, SOL_SOCKET, SO_ERROR, &error, &len);
		if (!error || error == ECONNREFUSED)
			out[found++] = probes->list[i].local;
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

/* What is said of a network that is silent. NULL: it isn't. */
static const char *silence_of(const struct paths_outage *outage)
{
	if (outage->held)
		return "silent, as all are; subflows are kept here, and their peers are asked until an answer comes";
	if (outage->lasts)
		return "silent; connections go on over the others, and ask here until an answer comes";
	return NULL;
}

/* Says which networks have fallen silent, and which are heard again; @before is what was. */
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

/* Is there a connection no more that has its last subflow over a network that has gone? */
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
