/* SPDX-License-Identifier: BSD-3-Clause */
/* warden_message.c - what the main process and the serving one tell each other */
#include "config.h"

#include "convertd/rights/warden_message.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

/* What a call of each kind has, besides. */
static const struct {
	bool addresses, passed;
	uint32_t least, most; /* of count */
	uint32_t index_max, flag_max;
	bool name;
} kinds[] = {
	[WARDEN_CALL_RULES] = { .addresses = true, .least = 1, .most = LISTEN_ADDRESSES_MAX, .flag_max = 1 },
	[WARDEN_CALL_WINDOW] = { .addresses = true, .most = LISTEN_ADDRESSES_MAX },
	[WARDEN_CALL_QUEUES] = { .most = WARDEN_QUEUES_MAX },
	[WARDEN_CALL_QUEUE] = { .index_max = WARDEN_QUEUES_MAX - 1 },
	[WARDEN_CALL_VERDICTS] = { .index_max = WARDEN_QUEUES_MAX - 1 },
	[WARDEN_CALL_BIND] = { .addresses = true, .passed = true, .least = 1, .most = 1 },
	[WARDEN_CALL_TRANSPARENT] = { .passed = true, .flag_max = 1 },
	[WARDEN_CALL_CONGESTION] = { .passed = true, .name = true },
	[WARDEN_CALL_IN_FORCE] = { .least = 0 },
};
static_assert(sizeof(kinds) / sizeof(kinds[0]) == WARDEN_CALL_KIND_COUNT, "a line for each kind");

static bool address_is_right(const struct listen_address *listen)
{
	int family = listen->address.sa.sa_family;

	return (family == AF_INET || family == AF_INET6) &&
	       memchr(listen->device, '\0', sizeof(listen->device));
}

bool warden_call_is_right(const struct warden_call *call, size_t len, bool passed)
{
	if (len != sizeof(*call) || call->kind >= WARDEN_CALL_KIND_COUNT)
		return false;
	if (call->count < kinds[call->kind].least || call->count > kinds[call->kind].most ||
	    call->index > kinds[call->kind].index_max || call->queues > kinds[call->kind].flag_max ||
	    call->v4 > kinds[call->kind].flag_max || passed != kinds[call->kind].passed)
		return false;
	for (uint32_t i = 0; kinds[call->kind].addresses && i < call->count; i++)
		if (!address_is_right(&call->listen[i]))
			return false;
	return !kinds[call->kind].name ||
	       (call->congestion[0] && memchr(call->congestion, '\0', sizeof(call->congestion)));
}

bool warden_verdict_next(const uint8_t *message, size_t len, size_t *at,
			 struct warden_verdict *verdict, const uint8_t **packet)
{
	struct warden_verdict next;

	if (len < *at || len - *at < sizeof(next))
		return false;
	memcpy(&next, message + *at, sizeof(next));
	if (next.len > len - *at - sizeof(next) || next.accept > 1 || next.zero ||
	    (next.len && !next.accept))
		return false;
	*verdict = next;
	*packet = next.len ? message + *at + sizeof(next) : NULL;
	*at += sizeof(next) + next.len;
	return true;
}
