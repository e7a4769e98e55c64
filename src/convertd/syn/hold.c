/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold.c - withhold SYNs until their servers have answered (RFC 8803 4.2)
 *
 * The problem. A converter of user space hears of a connection when the kernel has sent the SYN+ACK,
 * so that the client has to wait for the Convert response to know whether the server was reached. On
 * MPTCP the kernel doesn't even send that response before the third ACK: with 50 ms to the
 * converter and 5 ms from there to the server, a connection takes 100 ms instead of 55.
 *
 * The way out. Netfilter queues, one a worker, give us the SYNs to our addresses before TCP sees them.
 * What becomes of each is decided there (holder.c): one that asks for a server goes on when the server
 * has answered.
 *
 * A SYN with a Convert message that isn't marked loses its timestamps on its further way (syn_rules.c),
 * and by these a client tells a SYN+ACK that confirms from others (doc/private-tlvs.md). So it is the
 * confirmation that takes something to be done: SYNs that pass us by, because we are too slow, stopped
 * or gone, confirm nothing.
 *
 * Here is what is one for all: the rules, and when there are any. All of this is the main thread's.
 */
#include "config.h"

#include "convertd/syn/hold.h"

#include "convertd/syn/holder.h"
#include "convertd/base/log.h"
#include "convertd/rights/rights.h"
#include "convertd/process/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hold {
	struct workers *workers;
	int rules; /* the rules last as long as this is open; -1: it was never on, in the process before this one neither */
	bool on;
	uint16_t first; /* number of a queue */
	struct listen_address listen[LISTEN_ADDRESSES_MAX]; /* of the rules */
	size_t listen_count;
	struct holder *holders[]; /* one a worker */
};

/* Returns 0 or -errno with everything as it was. */
static int install(struct hold *hold, const struct listen_address *listen, size_t count,
		   bool to_queues)
{
	int rules = -1, error = count ? rights_set_rules(listen, count, to_queues, &rules) : 0;

	if (error)
		return error;
	if (rules >= 0 && hold->rules >= 0)
		close(hold->rules);
	if (rules >= 0)
		hold->rules = rules;
	memmove(hold->listen, listen, count * sizeof(*listen));
	hold->listen_count = count;
	return 0;
}

/* ----- in each worker ----- */

struct order {
	struct hold *hold;
	bool read;        /* for stop_one() */
	atomic_int error; /* of start_one() */
};

static void start_one(const struct worker_context *worker, void *arg)
{
	struct order *order = arg;
	int error = holder_start(order->hold->holders[worker->number]);

	if (error)
		atomic_store(&order->error, error);
}

static void stop_one(const struct worker_context *worker, void *arg)
{
	const struct order *order = arg;

	holder_stop(order->hold->holders[worker->number], order->read);
}

static void forget_one(const struct worker_context *worker, void *arg)
{
	struct hold *hold = arg;

	holder_forget(hold->holders[worker->number]);
}

static void destroy_one(const struct worker_context *worker, void *arg)
{
	struct hold *hold = arg;

	holder_destroy(hold->holders[worker->number]);
}

/* ----- on and off ----- */

void hold_stop(struct hold *hold)
{
	struct order order = { .hold = hold };

	if (!hold_is_on(hold))
		return;
	/*
	 * First the rules: from then on nothing more comes. Those that stay keep clients that were told to
	 * expect confirmations from taking a SYN+ACK for one.
	 */
	order.read = install(hold, hold->listen, hold->listen_count, false) == 0;
	workers_order(hold->workers, stop_one, &order);
	hold->on = false;
}

void hold_forget(struct hold *hold)
{
	workers_order(hold->workers, forget_one, hold);
}

/* Each holder has one, and is told of what comes in. Returns 0 or -errno with none open. */
static int start_queues(struct hold *hold)
{
	struct order order = { .hold = hold };
	size_t count = workers_count(hold->workers), i = 0;
	int error = rights_own_queues(count, &hold->first);

	for (; i < count && !error; i++)
		error = holder_open(hold->holders[i], i);
	while (error && i--)
		holder_stop(hold->holders[i], false);
	if (error)
		return error;
	hold->on = true;
	workers_order(hold->workers, start_one, &order);
	return atomic_load(&order.error);
}

static int start(struct hold *hold, const struct settings *settings)
{
	bool was_on = hold_is_on(hold);
	int error = was_on ? 0 : start_queues(hold);

	if (!error)
		error = install(hold, settings->listen, settings->listen_count, true);
	if (error && !was_on)
		hold_stop(hold);
	return error;
}

static const char *remedy(int error)
{
	switch (error) {
	case -EPERM:
	case -EACCES:
		return "give convertd CAP_NET_ADMIN";
	case -ENOMEM:
		return "free some";
	case -EBUSY:
		return "free a netfilter queue (see /proc/net/netfilter/nfnetlink_queue)";
	default:
		return "use Linux 5.18 or later with CONFIG_NETFILTER_NETLINK_QUEUE and "
		       "CONFIG_NFT_QUEUE, or CONFIG_NFT_COMPAT and "
		       "CONFIG_NETFILTER_XT_TARGET_NFQUEUE";
	}
}

bool hold_apply(struct hold *hold, const struct settings *settings, struct problems *problems)
{
	static const struct place place = { .name = "hold-syn" };
	bool was_on = hold_is_on(hold);
	int error;

	if (settings->hold_syn == SETTINGS_HOLD_OFF) {
		hold_stop(hold);
		if (hold->rules >= 0)
			install(hold, settings->listen, settings->listen_count, false);
		return true;
	}
	if (was_on && hold->listen_count == settings->listen_count &&
	    memcmp(hold->listen, settings->listen, sizeof(hold->listen)) == 0)
		return true;
	error = start(hold, settings);
	if (!error && !was_on)
		log_info("SYNs are withheld until servers have answered, for %u ms at most "
			 "(netfilter queues from %u on: %u)",
			 settings->hold_time, (unsigned)hold->first,
			 (unsigned)workers_count(hold->workers));
	if (!error)
		return true;
	if (settings->hold_syn == SETTINGS_HOLD_ON) {
		problems_add(problems, &place, "on: %s; %s", strerror(-error), remedy(error));
		return false;
	}
	hold_stop(hold);
	log_warning("SYNs are not withheld (%s): connections may take a round trip more; %s, or pass "
		    "--hold-syn off",
		    strerror(-error), remedy(error));
	return true;
}

void hold_judge_again(struct hold *hold, const struct worker_context *worker)
{
	holder_judge_again(hold->holders[worker->number]);
}

bool hold_is_on(const struct hold *hold)
{
	return hold->on;
}

int hold_rules_fd(const struct hold *hold)
{
	return hold->rules;
}

struct hold *hold_create(struct workers *workers, int kept)
{
	size_t count = workers_count(workers);
	struct hold *hold = calloc(1, sizeof(*hold) + count * sizeof(struct holder *));

	if (!hold)
		return NULL;
	hold->workers = workers;
	hold->rules = kept >= 0 ? fcntl(kept, F_DUPFD_CLOEXEC, 0) : -1;
	for (size_t i = 0; i < count; i++) {
		hold->holders[i] = holder_create(workers_context(workers, i)->pool);
		if (!hold->holders[i]) {
			hold_destroy(hold);
			return NULL;
		}
	}
	return hold;
}

void hold_destroy(struct hold *hold)
{
	if (!hold)
		return;
	hold_stop(hold);
	workers_order(hold->workers, destroy_one, hold);
	if (hold->rules >= 0)
		close(hold->rules);
	free(hold);
}
