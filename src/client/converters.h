/* SPDX-License-Identifier: BSD-3-Clause */
/* converters.h - the addresses of the configured converters, each with an index that stays */
#ifndef CLIENT_CONVERTERS_H
#define CLIENT_CONVERTERS_H

#include "client/cache.h"
#include "client/settings.h"
#include "convert/convert.h"

#define CONVERTERS_MAX 32 /* addresses over all of CONVERT_ADDR; a bit each in converters_query.tried */
#define CONVERTERS_NONE (-1)

/* Adds the numeric addresses of CONVERT_ADDR. The front end calls it once, before any other function of converters*.h. */
void converters_init(const struct settings *settings);

/* After fork(): releases the table if a thread of the parent, which the child lacks, was adding an address. */
void converters_repair_in_child(void);

/* Returns the number of converters. Indices below it are valid, and stay so. */
int converters_count(void);

/* Returns the address of converter @index, with its port. */
const union sockaddr_ip *converters_address(int index);

/* Does converter @index come from the part @setting of CONVERT_ADDR (settings.converters)? */
bool converters_is_of(int index, size_t setting);

/* Is @destination on the host of a converter, at whatever port? */
bool converters_include(const union sockaddr_ip *destination);

/*
 * Is the part @setting of CONVERT_ADDR a name that no thread has resolved within the last 30 s? For a name without an address the time is
 * shorter.
 */
bool converters_may_resolve(const struct settings *settings, size_t setting);

/*
 * converters_resolve() - resolve the name in the part @setting of CONVERT_ADDR, and add its addresses
 * Blocks, and allocates memory, as resolve_converter() does. @reason: set to a static text if there are none.
 */
void converters_resolve(const struct settings *settings, size_t setting, const char **reason);

/*
 * converters_note(), converters_noted() - write and read the facts about converter @index in the user's cache
 * As cache_converter_update() and cache_converter_get().
 */
void converters_note(int index, unsigned int facts, const struct cache_converter *value);
unsigned int converters_noted(int index, unsigned int facts, struct cache_converter *out);

/* --- which converter a connection is made through --- */

/* The input of the choice. */
struct converters_query {
	const union sockaddr_ip *destination;
	int family;       /* of the application's socket: AF_INET or AF_INET6 */
	bool v6only;      /* it takes no v4-mapped address */
	bool any;         /* the socket can be replaced by one of the other family */
	uint32_t tried;   /* a bit for each converter that must not be chosen again */
	bool may_resolve; /* the call may ask the resolver, which blocks */
};

/*
 * converters_choose() - choose the converter for a connection, in the order of CONVERT_ADDR
 * @out: the address to send the SYN to, in the socket's family unless @query->any
 *
 * Resolves a name when its turn comes, and again when all of its addresses rest. With CONVERT_FALLBACK=none it takes a converter that rests
 * if no other is left. Returns the converter's index; CONVERTERS_UNRESOLVED if it has to resolve a name first and the query doesn't allow
 * that; or CONVERTERS_NONE with a static text in @reason. @verdict then says why: POLICY_CONVERT if no converter can be used now, else the
 * destination is a converter itself or serves to find one.
 */
#define CONVERTERS_UNRESOLVED (-2)
int converters_choose(const struct settings *settings, const struct converters_query *query,
		      union sockaddr_ip *out, enum policy_verdict *verdict, const char **reason);

/*
 * The cookie that a request to a converter carries (RFC 8803, Section 6.2.7)
 *
 * A cookie that a converter gave to any process of the user replaces the configured one. Each cookie has a number. A request notes the
 * number of its cookie, so that the second part of a request has the same cookie as the first.
 */

typedef uint8_t converters_cookie_number;

/* Returns the number of the cookie that requests to converter @index carry now. */
converters_cookie_number converters_cookie_current(int index);

/* Returns the bytes of cookie @number, length 0 for none. They stay until the process has learned three more cookies. */
struct convert_span converters_cookie(const struct settings *settings, int index, converters_cookie_number number);

/* Keeps a cookie that converter @index gave; returns false if it is empty, or longer than CACHE_COOKIE_MAX. */
bool converters_learn_cookie(int index, struct convert_span cookie);

/*
 * converters_forget_cookie() - forget cookie @number, since the converter has refused it
 * The converter has another key by now, or we have another address. Returns false if we didn't learn that cookie from the converter.
 */
bool converters_forget_cookie(int index, converters_cookie_number number);

/* Takes over the cookie in @found, from converters_noted(), if CACHE_COOKIE is known. */
void converters_renew_cookie(int index, const struct cache_converter *found);

/*
 * converters_forget() - forget the facts that this process has learned of converters, paths and destinations
 * A front end calls it when a connection is in another network namespace than the one before: the other network may treat them differently,
 * and the cache knows the facts for it. Cookies stay.
 */
void converters_forget(void);

#endif
