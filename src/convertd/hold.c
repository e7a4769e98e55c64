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

#include "convertd/hold.h"

#include "convertd/holder.h"
#include "convertd/log.h"
#include "convertd/syn_rules.h"
#include "convertd/worker.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of queues that are tried: other converters, or other programs, may have the first ones. */
#define NUMBERS_TRIED 64

struct hold {
	struct workers *workers;
	struct syn_rules *rules; /* NULL: it was never on, in the process before this one neither */
	struct syn_rules_queues queues; /* none: off */
	struct listen_address listen[SETTINGS_LISTEN_MAX]; /* of the rules */
	size_t listen_count;
	struct holder *holders[]; /* one a worker */
};

/* Returns 0 or -errno with everything as it was. */
static int install(struct hold *hold, const struct listen_address *listen, size_t count,
		   const struct syn_rules_queues *queues)
{
	int error = count ? syn_rules_install(hold->rules, listen, count, queues) : 0;

	if (error)
		return error;
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
	order.read = install(hold, hold->listen, hold->listen_count, NULL) == 0;
	workers_order(hold->workers, stop_one, &order);
	hold->queues.count = 0;
}

/* A queue for each holder, numbered from @first on. Returns 0, or -errno with none, and @failed set. */
static int open_from(struct hold *hold, unsigned first, unsigned *failed)
{
	size_t count = workers_count(hold->workers), i = 0;
	int error = 0;

	for (; i < count && !error; i++) {
		*failed = first + (unsigned)i;
		error = *failed > UINT16_MAX ? -ERANGE :
					       holder_open(hold->holders[i], (uint16_t)*failed);
	}
	if (!error)
		hold->queues = (struct syn_rules_queues){ (uint16_t)first, (uint16_t)count };
	while (error && i--)
		holder_stop(hold->holders[i], false);
	return error;
}

/*
 * EBUSY or, in some versions, EPERM: somebody has that queue. It is EPERM without CAP_NET_ADMIN as
 * well: these are told apart by the numbers that are free. The first number is the port, so that few meet.
 */
static int open_queues(struct hold *hold, uint16_t port)
{
	unsigned last = UINT16_MAX + 1 - (unsigned)workers_count(hold->workers);
	unsigned first = port < last ? port : last;
	int error = -EBUSY;

	for (unsigned i = 0; i < NUMBERS_TRIED && (error == -EBUSY || error == -EPERM); i++) {
		unsigned failed = 0;

		error = open_from(hold, first, &failed);
		first = failed + 1;
	}
	/* Not beyond the last one. */
	return error == -ERANGE ? -EBUSY : error;
}

/* Owns the queues, and is told of what comes in. Returns 0 or -errno. */
static int start_queues(struct hold *hold, const struct settings *settings)
{
	struct order order = { .hold = hold };
	int error = hold->rules ? 0 : syn_rules_create(&hold->rules, -1);

	if (!error)
		error = open_queues(hold, sockaddr_ip_port(&settings->listen[0].address));
	if (error)
		return error;
	workers_order(hold->workers, start_one, &order);
	return atomic_load(&order.error);
}

static int start(struct hold *hold, const struct settings *settings)
{
	bool was_on = hold_is_on(hold);
	int error = was_on ? 0 : start_queues(hold, settings);

	if (!error)
		error = install(hold, settings->listen, settings->listen_count, &hold->queues);
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
		if (hold->rules)
			install(hold, settings->listen, settings->listen_count, NULL);
		return true;
	}
	if (was_on && hold->listen_count == settings->listen_count &&
	    memcmp(hold->listen, settings->listen, sizeof(hold->listen)) == 0)
		return true;
	error = start(hold, settings);
	if (!error && !was_on)
		log_info("SYNs are withheld until servers have answered, for %u ms at most "
			 "(netfilter queues from %u on: %u)",
			 settings->hold_time, (unsigned)hold->queues.first,
			 (unsigned)hold->queues.count);
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

bool hold_is_on(const struct hold *hold)
{
	return hold->queues.count != 0;
}

int hold_rules_fd(const struct hold *hold)
{
	return hold->rules ? syn_rules_fd(hold->rules) : -1;
}

struct hold *hold_create(struct workers *workers, int kept)
{
	size_t count = workers_count(workers);
	struct hold *hold = calloc(1, sizeof(*hold) + count * sizeof(struct holder *));

	if (!hold)
		return NULL;
	hold->workers = workers;
	for (size_t i = 0; i < count; i++) {
		hold->holders[i] = holder_create(workers_context(workers, i)->pool);
		if (!hold->holders[i]) {
			hold_destroy(hold);
			return NULL;
		}
	}
	if (kept >= 0 && syn_rules_create(&hold->rules, kept) < 0)
		log_debug("the rules of the process before this one are not taken over");
	return hold;
}

void hold_destroy(struct hold *hold)
{
	if (!hold)
		return;
	hold_stop(hold);
	workers_order(hold->workers, destroy_one, hold);
	syn_rules_destroy(hold->rules);
	free(hold);
}
