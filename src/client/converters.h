/* SPDX-License-Identifier: BSD-3-Clause */
/* converters.h - the addresses of the configured converters, each with an index that stays */
#ifndef CLIENT_CONVERTERS_H
#define CLIENT_CONVERTERS_H

#include "client/cache.h"
#include "client/settings.h"

#define CONVERTERS_MAX 32 /* addresses over all of CONVERT_ADDR; a bit each in converters_query.tried */
#define CONVERTERS_NONE (-1)

/* Adds the numeric addresses of CONVERT_ADDR. Called once, before any other function of converters*.h. */
void converters_init(const struct settings *settings);

/* After fork(): a thread of the parent that was adding an address isn't in the child, and what it added isn't seen there. */
void converters_repair_in_child(void);

/* How many there are: the indices below that are valid, and stay so. */
int converters_count(void);

/* The address of converter @index, with its port. */
const union sockaddr_ip *converters_address(int index);

/* Does converter @index come from the part @setting of CONVERT_ADDR (settings.converters)? */
bool converters_is_of(int index, size_t setting);

/*
 * converters_index() - the converter at @addr, which another process has chosen
 * One that isn't configured here is added, and is never chosen here. Returns CONVERTERS_NONE if there is no room.
 */
int converters_index(const union sockaddr_ip *addr);

/* Is @destination on the host of a converter, at whatever port? */
bool converters_include(const union sockaddr_ip *destination);

/*
 * Is the part @setting of CONVERT_ADDR a name whose addresses weren't asked for lately? Lately is by the clock, also for who
 * chooses among converters that are to be left alone: a name that has no address has none a moment later.
 */
bool converters_may_resolve(const struct settings *settings, size_t setting);

/*
 * converters_resolve() - add the addresses of the name that the part @setting of CONVERT_ADDR is
 * Blocks, and allocates memory, as resolve_converter() does. @reason: set to a static text if there are none.
 */
void converters_resolve(const struct settings *settings, size_t setting, const char **reason);

/*
 * converters_note(), converters_noted() - what the user's processes know of converter @index, in their cache
 * As cache_converter_update() and cache_converter_get().
 */
void converters_note(int index, unsigned int facts, const struct cache_converter *value);
unsigned int converters_noted(int index, unsigned int facts, struct cache_converter *out);

#endif
