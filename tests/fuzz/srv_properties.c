/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srv_properties.c - what must hold for any bytes that are read as a name server's response
 *
 * - it returns only names that a host can have, with a port;
 * - each target stands in the bytes, as the C library's dn_expand(3) reads them;
 * - with less room it keeps the best targets, and writes nothing beyond the room;
 * - the order follows the priority, and neither loses nor adds a target.
 */
#include "srv_properties.h"

#include "client/resolve.h"

#include <errno.h>
#include <netinet/in.h>
#include <arpa/nameser.h>
#include <resolv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* In place of assert(), which NDEBUG turns off. */
#define REQUIRE(condition) ((condition) ? (void)0 : require_failed(#condition, __LINE__))

#define TARGETS_MAX 128 /* more than the driver's longest input can have */
#define FEW 2

static _Noreturn void require_failed(const char *condition, int line)
{
	fprintf(stderr, "srv_properties.c:%d: does not hold: %s\n", line, condition);
	abort();
}

/* Tells whether the bytes of this target's record, from its type on, stand anywhere in the response. */
static bool stands_in(const struct srv_target *target, const uint8_t *data, size_t size)
{
	const uint8_t fixed[] = { (uint8_t)(target->priority >> 8), (uint8_t)target->priority,
				  (uint8_t)(target->weight >> 8),   (uint8_t)target->weight,
				  (uint8_t)(target->port >> 8),	    (uint8_t)target->port };
	char name[1025];

	for (size_t at = 12; at + 17 <= size; at++)
		if (memcmp(data + at, "\0\x21\0\1", 4) == 0 &&
		    memcmp(data + at + 10, fixed, sizeof(fixed)) == 0 &&
		    dn_expand(data, data + size, data + at + 16, name, sizeof(name)) > 0 &&
		    strcasecmp(name, target->name) == 0)
			return true;
	return false;
}

static void target_check(const struct srv_target *target, const uint8_t *data, size_t size)
{
	size_t len = strlen(target->name);

	REQUIRE(len > 0 && len < SRV_NAME_MAX);
	REQUIRE(strspn(target->name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == len);
	REQUIRE(target->name[0] != '.' && target->name[0] != '-' && target->name[len - 1] != '.');
	REQUIRE(!strstr(target->name, ".."));
	REQUIRE(target->port != 0);
	REQUIRE(stands_in(target, data, size));
}

static uint32_t pseudo_random(void *arg, uint32_t limit)
{
	uint32_t *state = arg;

	REQUIRE(limit > 0);
	*state = *state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)*state * limit >> 32);
}

static size_t occurrences(const struct srv_target *target, const struct srv_target *list, int count)
{
	size_t found = 0;

	for (int i = 0; i < count; i++)
		found += list[i].port == target->port && list[i].priority == target->priority &&
			 list[i].weight == target->weight &&
			 strcmp(list[i].name, target->name) == 0;
	return found;
}

static void order_check(const struct srv_target *targets, int count)
{
	static struct srv_target ordered[TARGETS_MAX];
	uint32_t state = (uint32_t)count;

	memcpy(ordered, targets, (size_t)count * sizeof(ordered[0]));
	srv_order(ordered, (size_t)count, pseudo_random, &state);
	for (int i = 0; i < count; i++) {
		REQUIRE(i == 0 || ordered[i - 1].priority <= ordered[i].priority);
		REQUIRE(occurrences(&ordered[i], ordered, count) ==
			occurrences(&ordered[i], targets, count));
	}
}

/* @targets are ordered. Requires that with room for only a few of them, the best ones are returned. */
static void room_check(const struct srv_target *targets, int count, const uint8_t *data,
		       size_t size)
{
	struct srv_target *few = malloc(FEW * sizeof(*few));
	int kept = srv_parse(data, size, SRV_CHECK_OWNER, few, FEW);
	uint32_t state = 0;

	REQUIRE(kept == (count < FEW ? count : FEW));
	srv_order(few, (size_t)kept, pseudo_random, &state);
	for (int i = 0; i < kept; i++) {
		REQUIRE(few[i].priority == targets[i].priority);
		REQUIRE(occurrences(&few[i], targets, count) > 0);
	}
	free(few);
	REQUIRE(srv_parse(data, size, SRV_CHECK_OWNER, NULL, 0) == 0);
}

void srv_check(const uint8_t *data, size_t size)
{
	static struct srv_target targets[TARGETS_MAX];
	uint32_t state = 1;
	int count = srv_parse(data, size, SRV_CHECK_OWNER, targets, TARGETS_MAX);

	if (count < 0) {
		REQUIRE(count == -ENOENT || count == -EAGAIN || count == -EBADMSG);
		REQUIRE(size >= 12 || count == -EBADMSG);
		REQUIRE(srv_parse(data, size, SRV_CHECK_OWNER, NULL, 0) == count);
		return;
	}
	REQUIRE(count <= TARGETS_MAX);
	for (int i = 0; i < count; i++)
		target_check(&targets[i], data, size);
	order_check(targets, count);
	srv_order(targets, (size_t)count, pseudo_random, &state);
	room_check(targets, count, data, size);
}
