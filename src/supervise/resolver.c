/* SPDX-License-Identifier: BSD-3-Clause */
/* resolver.c - looks up converters' names in a thread of its own, so that no other connection waits */
#include "config.h"

#include "supervise/resolver.h"

#include "supervise/connection.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_bool running;
static struct {
	struct converters_query query;
	union sockaddr_ip destination;
} work;

/* The choice itself is made anew by whoever waits for it; here it is made for the addresses that it finds on its way. */
static void *resolve(void *unused)
{
	enum policy_verdict verdict = POLICY_CONVERT;
	union sockaddr_ip addr;
	const char *reason;
	uint64_t one = 1;

	work.query.may_resolve = true;
	converters_choose(supervision.settings, &work.query, &addr, &verdict, &reason);
	atomic_store(&running, false);
	if (write(supervision.resolver_ready, &one, sizeof(one)) != sizeof(one)) {
		/* the counter is full, and so it is readable */
	}
	return unused;
}

bool resolver_start(const struct converters_query *query)
{
	pthread_attr_t attributes;
	pthread_t thread;
	bool started;

	if (atomic_exchange(&running, true))
		return true;
	work.query = *query;
	work.destination = *query->destination;
	work.query.destination = &work.destination;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	started = pthread_create(&thread, &attributes, resolve, NULL) == 0;
	pthread_attr_destroy(&attributes);
	if (!started)
		atomic_store(&running, false);
	return started;
}
