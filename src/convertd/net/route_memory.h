/* SPDX-License-Identifier: BSD-3-Clause */
/* route_memory.h - remembers where addresses lead, for as long as the kernel tells of no change; belongs to one thread */
#ifndef CONVERTD_ROUTE_MEMORY_H
#define CONVERTD_ROUTE_MEMORY_H

#include "convertd/net/route_kind.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct route_memory;

/* Has the kernel tell of changes from now on. Returns NULL where it doesn't, with errno set: then nothing may be remembered. */
struct route_memory *route_memory_create(void);

/* NULL is fine. */
void route_memory_destroy(struct route_memory *memory);

/*
 * route_memory_find() - look up what was noted of an address
 * It looks first whether the kernel has told of a change, which empties the memory. So what it returns is what the kernel would
 * say, unless that changes at this very moment.
 * @address: IPv6, or IPv4 as v4-mapped
 * @now_ms: clock_now_ms()
 * Returns false where nothing is known: the kernel has to be asked, after this call.
 */
bool route_memory_find(struct route_memory *memory, const struct in6_addr *address, uint64_t now_ms, enum route_kind *kind);

/* route_memory_note() - remember the kernel's answer, for which it was asked after the last route_memory_find() */
void route_memory_note(struct route_memory *memory, const struct in6_addr *address, uint64_t now_ms, enum route_kind kind);

#endif
