/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * converters_cookies.h - the cookie that a request to a converter carries (RFC 8803, Section 6.2.7)
 *
 * A cookie that a converter gave, to any process of the user, replaces the configured one. A request is written with
 * a certain cookie, named by its number, so that a request which is sent in two parts stays the same when another cookie
 * is learned in between.
 */
#ifndef CLIENT_CONVERTERS_COOKIES_H
#define CLIENT_CONVERTERS_COOKIES_H

#include "client/cache.h"
#include "client/settings.h"
#include "convert/convert.h"

typedef uint8_t converters_cookie_number;

/* The number of the cookie that requests to converter @index carry now. */
converters_cookie_number converters_cookie_current(int index);

/* The bytes of cookie @number, length 0 for none; they stay until three more cookies were learned. */
struct convert_span converters_cookie(const struct settings *settings, int index, converters_cookie_number number);

/*
 * converters_use_cookie() - a request that another process has begun goes on with @cookie
 * Makes it the current one, in this process only. Returns false if it is too long.
 */
bool converters_use_cookie(const struct settings *settings, int index, struct convert_span cookie);

/* Keeps a cookie that converter @index gave; returns false if it is empty, or longer than CACHE_COOKIE_MAX. */
bool converters_learn_cookie(int index, struct convert_span cookie);

/*
 * converters_forget_cookie() - the converter has refused a request with cookie @number
 * It has another key by now, or we have another address. Returns false if that cookie wasn't learned from the converter.
 */
bool converters_forget_cookie(int index, converters_cookie_number number);

/* Takes over the cookie of @found, of converters_noted(), if CACHE_COOKIE is known. */
void converters_renew_cookie(int index, const struct cache_converter *found);

#endif
