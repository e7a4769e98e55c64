/* SPDX-License-Identifier: BSD-3-Clause */
/* warden_syns_none.c - replaces warden_syns.c in builds without libnetfilter_queue: there are neither rules nor queues */
#include "config.h"

#include "convertd/syn/warden_syns.h"

#include <errno.h>
#include <stdlib.h>

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
		       const struct warden_call *call, struct warden_answer *answer, int *passed,
		       bool *ours)
{
	(void)syns;
	(void)policy;
	(void)call;
	(void)answer;
	(void)passed;
	(void)ours;
	return -ENOSYS;
}

size_t warden_syns_poll(const struct warden_syns *syns, struct pollfd fds[WARDEN_QUEUES_MAX])
{
	(void)syns;
	(void)fds;
	return 0;
}

bool warden_syns_serve(struct warden_syns *syns, const struct pollfd fds[WARDEN_QUEUES_MAX],
		       const struct warden_policy *policy)
{
	(void)syns;
	(void)fds;
	(void)policy;
	return true;
}
