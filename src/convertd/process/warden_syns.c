/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warden_syns.c - the main process's rules and queues for SYNs
 *
 * The main process owns both, since they need CAP_NET_ADMIN: nftables rules (syn_rules.c) that put SYNs into queues, and
 * the queues (queue_owner.c) with a socket for verdicts each. The serving process asks for them in this order: own
 * queues, get the sockets of each queue, install rules. Rules are replaced by each further call; queues are given up
 * before others are made.
 */
#include "config.h"

#include "convertd/process/warden_syns.h"

#include "convertd/base/log.h"
#ifdef HAVE_NETFILTER_QUEUE
#include "hold/hold_rules.h"
#include "hold/queue_owner.h"
#endif

#include <errno.h>
#include <stdlib.h>

#ifdef HAVE_NETFILTER_QUEUE

struct warden_syns {
	struct syn_rules *rules;    /* NULL: neither this process nor the one before it has had any */
	struct queue_owner *queues; /* NULL: there are none */
};

struct warden_syns *warden_syns_create(int kept)
{
	struct warden_syns *syns = calloc(1, sizeof(*syns));

	if (syns && kept >= 0 && syn_rules_create(&syns->rules, kept) < 0)
		log_debug("the rules of the process before this one are not taken over");
	return syns;
}

void warden_syns_destroy(struct warden_syns *syns)
{
	if (!syns)
		return;
	queue_owner_destroy(syns->queues);
	syn_rules_destroy(syns->rules);
	free(syns);
}

/* Installs the rules that the call asks for, with or without queues. Returns 0 with @passed set, or -errno. */
static int set_rules(struct warden_syns *syns, const struct warden_call *call, struct warden_answer *answer, int *passed)
{
	struct syn_rules_queues queues = { 0 };
	bool refuses = false;
	int error = 0;

	if (call->queues && !syns->queues)
		return -EINVAL;
	if (call->queues)
		queues = (struct syn_rules_queues){ queue_owner_first(syns->queues),
						    (uint16_t)queue_owner_count(syns->queues) };
	if (!syns->rules)
		error = syn_rules_create(&syns->rules, -1);
	if (!error)
		error = syn_rules_install(syns->rules, call->listen, call->count,
					  call->queues ? &queues : NULL, &refuses);
	answer->number = refuses;
	if (!error)
		*passed = syn_rules_fd(syns->rules);
	return error;
}

/* Gives up the queues, and makes @count others. Returns 0 or -errno. */
static int own_queues(struct warden_syns *syns, const struct warden_policy *policy, size_t count,
		      struct warden_answer *answer)
{
	int error;

	queue_owner_destroy(syns->queues);
	syns->queues = NULL;
	if (!count)
		return 0;
	/* The numbers of queues begin at the port that convertd listens on, which few other programs use for a queue. */
	error = queue_owner_create(&syns->queues, sockaddr_ip_port(&policy->latest.listen[0].address),
				   count);
	if (!error)
		answer->number = queue_owner_first(syns->queues);
	return error;
}

int warden_syns_answer(struct warden_syns *syns, const struct warden_policy *policy,
		       const struct warden_call *call, struct warden_answer *answer, int *passed,
		       bool *ours)
{
	bool has_queue = syns->queues && call->index < queue_owner_count(syns->queues);

	*ours = call->kind != WARDEN_CALL_VERDICTS;
	if (call->kind == WARDEN_CALL_RULES)
		return set_rules(syns, call, answer, passed);
	if (call->kind == WARDEN_CALL_QUEUES)
		return own_queues(syns, policy, call->count, answer);
	if (!has_queue)
		return -EINVAL;
	*passed = call->kind == WARDEN_CALL_QUEUE ?
			  queue_owner_packets(syns->queues, call->index) :
			  queue_owner_take_verdicts(syns->queues, call->index);
	return *passed < 0 ? -EINVAL : 0;
}

size_t warden_syns_poll(const struct warden_syns *syns, struct pollfd fds[SETTINGS_WORKERS_MAX])
{
	size_t count = syns->queues ? queue_owner_count(syns->queues) : 0;

	for (size_t i = 0; i < count; i++)
		fds[i] = (struct pollfd){ .fd = queue_owner_socket(syns->queues, i),
					  .events = POLLIN };
	return count;
}

bool warden_syns_serve(struct warden_syns *syns, const struct pollfd fds[SETTINGS_WORKERS_MAX],
		       const struct warden_policy *policy)
{
	size_t count = syns->queues ? queue_owner_count(syns->queues) : 0;
	bool right = true;

	for (size_t i = 0; i < count; i++)
		if (fds[i].revents && fds[i].fd >= 0 &&
		    fds[i].fd == queue_owner_socket(syns->queues, i))
			right &= queue_owner_serve(syns->queues, i, policy);
	return right;
}

#else /* a build without libnetfilter_queue: there are neither rules nor queues */

struct warden_syns {
	char none;
};

struct warden_syns *warden_syns_create(int kept)
{
	(void)kept;
	return calloc(1, sizeof(struct warden_syns));
}

void warden_syns_destroy(struct warden_syns *syns)
{
	free(syns);
}

int warden_syns_answer(struct warden_syns *syns, const struct warden_policy *policy,
		       const struct warden_call *call, struct warden_answer *answer, int *passed, bool *ours)
{
	(void)syns, (void)policy, (void)call, (void)answer, (void)passed, (void)ours;
	return -ENOSYS;
}

size_t warden_syns_poll(const struct warden_syns *syns, struct pollfd fds[WARDEN_QUEUES_MAX])
{
	(void)syns, (void)fds;
	return 0;
}

bool warden_syns_serve(struct warden_syns *syns, const struct pollfd fds[WARDEN_QUEUES_MAX], const struct warden_policy *policy)
{
	(void)syns, (void)fds, (void)policy;
	return true;
}

#endif
