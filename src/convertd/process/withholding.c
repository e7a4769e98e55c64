/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * withholding.c - withholds SYNs until their servers have answered (RFC 8803 4.2): on, off, and the rules
 *
 * The problem. A converter in user space learns of a connection when the kernel has sent the SYN+ACK. So the client
 * has to wait for the Convert response to know whether the server was reached. On MPTCP the kernel doesn't even send
 * that response before the third ACK: with 50 ms to the converter and 5 ms from there to the server, a connection
 * takes 100 ms instead of 55.
 *
 * The way out. Netfilter queues, one for each worker, give the converter the SYNs to its addresses before TCP sees
 * them. The worker judges each of them (syn_judge.c): a SYN that asks for a server goes on when the server has
 * answered.
 *
 * If a SYN has a Convert message but not the converter's mark, the rules remove its timestamps (hold_rules.c). A
 * client takes a SYN+ACK with timestamps for a confirmation (doc/private-tlvs.md). So a SYN+ACK confirms only if the
 * converter has marked the SYN: SYNs that pass because the converter is too slow, stopped or gone confirm nothing.
 *
 * The main thread's states, which are "on" and "rules":
 *
 *     off, no rules         nothing was ever withheld, neither by this process nor by the one before it
 *     on                    workers read their queues; the rules hand them the SYNs
 *     off, with rules       nothing is withheld any more, but clients were told to expect confirmations, and remember
 *                           that for an hour: the rules stay without queues, so that no SYN+ACK confirms
 *
 * A reload may remove an address. Its listener accepts until the new settings are in force, so the rules are for the addresses
 * of both settings until then.
 *
 * Clean-up. The rules last as long as some process has their descriptor open; the next process gets it.
 */
#include "config.h"

#include "convertd/process/service.h"

#include "daemon/log.h"
#include "daemon/warden_message.h"
#include "convertd/config/convertd_settings.h"
#include "serve/worker.h"
#include "serve/syn_judge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct withholding {
	struct workers *workers;
	int rules; /* the descriptor of the rules; -1: neither this process nor the one before has ever withheld a SYN */
	bool on;   /* SYNs are withheld */
	bool refuses; /* the rules refuse the SYNs that we mark for refusal */
	uint16_t first; /* the number of the first worker's queue */
	struct listen_address listen[LISTEN_ADDRESSES_MAX]; /* the addresses that the rules are for */
	size_t listen_count;
};

/*
 * Makes the main process install rules for these addresses in place of the present ones, with or without the queues
 * as their targets. Returns 0, or -errno with everything as it was.
 */
static int install(struct withholding *w, const struct listen_address *listen, size_t count,
		   bool to_queues)
{
	bool refuses = w->refuses;
	int rules = -1, error = count ? rights_set_rules(listen, count, to_queues, &refuses, &rules) : 0;

	if (error)
		return error;
	w->refuses = refuses;
	if (rules >= 0 && w->rules >= 0)
		close(w->rules);
	if (rules >= 0)
		w->rules = rules;
	memmove(w->listen, listen, count * sizeof(*listen));
	w->listen_count = count;
	return 0;
}

/* ----- in each worker ----- */

/* @arg: an atomic_int, which is set to -errno */
static void start_one(const struct worker_context *worker, void *arg)
{
	int error = hold_start(worker->judge->hold);

	if (error)
		atomic_store((atomic_int *)arg, error);
}

/* @arg: whether to read the queue first, a bool */
static void stop_one(const struct worker_context *worker, void *arg)
{
	syn_judge_stop(worker->judge, *(const bool *)arg);
}

/* ----- on and off ----- */

void withholding_stop(struct withholding *w)
{
	bool read;

	if (!withholding_is_on(w))
		return;
	/*
	 * The rules change first, so that no more SYNs come into the queues. Clients still expect confirmations; the
	 * rules that stay keep them from taking a SYN+ACK for one.
	 */
	read = install(w, w->listen, w->listen_count, false) == 0;
	workers_order(w->workers, stop_one, &read);
	w->on = false;
}

/* Makes a queue for each worker, which begins to read it. Returns 0 or -errno; w->on: queues are open, perhaps unread. */
static int start_queues(struct withholding *w)
{
	atomic_int failed = 0;
	size_t count = workers_count(w->workers), i = 0;
	int error = rights_own_queues(count, &w->first);

	for (; i < count && !error; i++)
		error = hold_open(workers_context(w->workers, i)->judge->hold, i);
	while (error && i--)
		syn_judge_stop(workers_context(w->workers, i)->judge, false);
	if (error)
		return error;
	w->on = true;
	workers_order(w->workers, start_one, &failed);
	return atomic_load(&failed);
}

static int start(struct withholding *w, const struct listen_address *listen, size_t count)
{
	bool was_on = withholding_is_on(w);
	int error = was_on ? 0 : start_queues(w);

	if (!error)
		error = install(w, listen, count, true);
	if (error && !was_on)
		withholding_stop(w);
	return error;
}

/* Returns the remedy for an error of the rules or queues. */
static const char *remedy(int error)
{
	switch (error) {
	case -EPERM:
	case -EACCES:
		return "give convertd CAP_NET_ADMIN";
	case -ENOMEM:
		return "free memory";
	case -EMFILE:
	case -ENFILE:
		return "raise the limit of open files (LimitNOFILE=)";
	case -EBUSY:
		return "free a netfilter queue (see /proc/net/netfilter/nfnetlink_queue)";
	default:
		return "use Linux 5.18 or later with CONFIG_NETFILTER_NETLINK_QUEUE and CONFIG_NFT_QUEUE, or CONFIG_NFT_COMPAT "
		       "and CONFIG_NETFILTER_XT_TARGET_NFQUEUE";
	}
}

/*
 * Writes the addresses of both settings to @all. Returns their number. If there are too many for a call, they are those of @settings
 * alone. @in_force: NULL: none are
 */
static size_t unite(struct listen_address all[static LISTEN_ADDRESSES_MAX], const struct convertd_settings *settings,
		    const struct convertd_settings *in_force)
{
	size_t count = settings->listen_count;

	memcpy(all, settings->listen, count * sizeof(*all));
	for (size_t i = 0; in_force && i < in_force->listen_count; i++) {
		size_t known = 0;

		while (known < count && !listen_address_equal(&all[known], &in_force->listen[i]))
			known++;
		if (known == LISTEN_ADDRESSES_MAX)
			return settings->listen_count;
		if (known == count)
			all[count++] = in_force->listen[i];
	}
	return count;
}

/* Are the rules for these addresses already? */
static bool are_for(const struct withholding *w, const struct listen_address *listen, size_t count)
{
	return w->listen_count == count && memcmp(w->listen, listen, count * sizeof(*listen)) == 0;
}

bool withholding_apply(struct withholding *w, const struct convertd_settings *settings, const struct convertd_settings *in_force,
		       struct problems *problems)
{
	static const struct place place = { .name = "hold-syn" };
	struct listen_address listen[LISTEN_ADDRESSES_MAX];
	size_t count = unite(listen, settings, in_force);
	bool was_on = withholding_is_on(w);
	int error;

	if (settings->hold_syn == SETTINGS_HOLD_OFF) {
		withholding_stop(w);
		if (w->rules >= 0)
			install(w, listen, count, false);
		return true;
	}
	if (was_on && are_for(w, listen, count))
		return true;
	error = start(w, listen, count);
	if (!error && !was_on)
		log_info("SYNs are withheld until servers have answered, for %u ms at most "
			 "(netfilter queues from %u on: %u)",
			 settings->hold_time, (unsigned)w->first,
			 (unsigned)workers_count(w->workers));
	if (!error)
		return true;
	if (settings->hold_syn == SETTINGS_HOLD_ON) {
		problems_add(problems, &place, "on: %s; %s", strerror(-error), remedy(error));
		return false;
	}
	withholding_stop(w);
	log_warning("SYNs are not withheld (%s): connections may take one more round trip; %s, or pass "
		    "--hold-syn off",
		    strerror(-error), remedy(error));
	return true;
}

void withholding_settle(struct withholding *w, const struct convertd_settings *settings)
{
	if (w->rules >= 0 && !are_for(w, settings->listen, settings->listen_count))
		install(w, settings->listen, settings->listen_count, w->on);
}

bool withholding_is_on(const struct withholding *w)
{
	return w->on;
}

bool withholding_refuses(const struct withholding *w)
{
	return w->on && w->refuses;
}

int withholding_rules_fd(const struct withholding *w)
{
	return w->rules;
}

struct withholding *withholding_create(struct workers *workers, int kept)
{
	struct withholding *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->workers = workers;
	w->rules = kept >= 0 ? fcntl(kept, F_DUPFD_CLOEXEC, 0) : -1;
	return w;
}

void withholding_destroy(struct withholding *w)
{
	if (!w)
		return;
	withholding_stop(w);
	if (w->rules >= 0)
		close(w->rules);
	free(w);
}
