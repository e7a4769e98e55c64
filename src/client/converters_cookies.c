/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * converters_cookies.c - the cookie that a request to a converter carries (RFC 8803, Section 6.2.7)
 *
 * Learned cookies take COOKIE_PLACES places in turn, and their numbers count up. A reader of one is done long before
 * its place is used again, so that there is no lock; the number is stored after the bytes.
 */
#include "config.h"

#include "client/converters_cookies.h"

#include "client/converters.h"

#include <stdatomic.h>
#include <string.h>

#define COOKIE_SECONDS (24 * 3600) /* CACHE_LIFETIME_MAX; an old one is refused, and replaced */
#define COOKIE_PLACES 4u

struct cookie {
	uint16_t len; /* bytes; 0: the configured cookie is used */
	uint8_t bytes[CACHE_COOKIE_MAX];
};

static struct {
	_Atomic converters_cookie_number current; /* 0: none was learned */
	struct cookie places[COOKIE_PLACES];      /* number n is in n % COOKIE_PLACES */
} learned[CONVERTERS_MAX];

static struct cookie *cookie_of(int index, converters_cookie_number number)
{
	return &learned[index].places[number % COOKIE_PLACES];
}

static bool keep(int index, const uint8_t *bytes, size_t len)
{
	converters_cookie_number number = converters_cookie_current(index);
	struct cookie *cookie;

	if (len > CACHE_COOKIE_MAX)
		return false;
	number = (converters_cookie_number)(number == UINT8_MAX ? 1 : number + 1);
	cookie = cookie_of(index, number);
	cookie->len = (uint16_t)len;
	if (len)
		memcpy(cookie->bytes, bytes, len);
	atomic_store(&learned[index].current, number);
	return true;
}

converters_cookie_number converters_cookie_current(int index)
{
	return atomic_load(&learned[index].current);
}

struct convert_span converters_cookie(const struct settings *settings, int index, converters_cookie_number number)
{
	const struct cookie *cookie = cookie_of(index, number);

	if (!number || !cookie->len)
		return (struct convert_span){ settings->cookie, settings->cookie_len };
	return (struct convert_span){ cookie->bytes, cookie->len };
}

bool converters_use_cookie(const struct settings *settings, int index, struct convert_span cookie)
{
	struct convert_span current = converters_cookie(settings, index, converters_cookie_current(index));

	if (current.len == cookie.len && (!cookie.len || !memcmp(current.data, cookie.data, cookie.len)))
		return true;
	return keep(index, cookie.data, cookie.len);
}

bool converters_learn_cookie(int index, struct convert_span cookie)
{
	struct cache_converter note = { .cookie.until = cache_in(COOKIE_SECONDS) };

	if (!cookie.len || !keep(index, cookie.data, cookie.len))
		return false;
	note.cookie.len = (uint16_t)cookie.len;
	memcpy(note.cookie.bytes, cookie.data, cookie.len);
	converters_note(index, CACHE_COOKIE, &note);
	return true;
}

bool converters_forget_cookie(int index, converters_cookie_number number)
{
	static const struct cache_converter nothing;

	if (!number || !cookie_of(index, number)->len)
		return false;
	if (converters_cookie_current(index) != number)
		return true; /* another connection was first */
	keep(index, NULL, 0);
	converters_note(index, CACHE_COOKIE, &nothing);
	return true;
}

void converters_renew_cookie(int index, const struct cache_converter *found)
{
	converters_cookie_number number = converters_cookie_current(index);
	const struct cookie *cookie = cookie_of(index, number);

	if (!(found->known & CACHE_COOKIE))
		return;
	if (!number || cookie->len != found->cookie.len || memcmp(cookie->bytes, found->cookie.bytes, cookie->len) != 0)
		keep(index, found->cookie.bytes, found->cookie.len);
}
