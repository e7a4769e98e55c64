/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * converters.c - the configured converters, their addresses, and what was learned of them
 *
 * A converter's addresses are published once, by a pointer: the first threads that
 * need a name may each ask the resolver, and one result wins. No lock is held while
 * the resolver runs; a connection that it makes itself meanwhile is left alone.
 */
#include "config.h"

#include "shim/converters.h"

#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RESOLVE_AGAIN_SECONDS 30

struct addresses {
	union sockaddr_ip v4, v6; /* AF_UNSPEC: has none */
};

/* Learned cookies in turn: a reader of one is done long before its place is used again. */
#define COOKIE_PLACES 4u

static struct converter {
	_Atomic converters_cookie_number cookie_number; /* 0: the configured one */
	struct {
		uint16_t len;
		uint8_t bytes[CONVERTERS_COOKIE_MAX];
	} cookies[COOKIE_PLACES]; /* number n is in n % COOKIE_PLACES */
	_Atomic(struct addresses *) addresses;
	_Atomic int64_t rest_until; /* CLOCK_MONOTONIC seconds */
	_Atomic uint32_t syn_data_misses;
} converters[SETTINGS_CONVERTERS_MAX];

static _Thread_local bool resolving __attribute__((tls_model("initial-exec")));

static int64_t now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static void addresses_add(struct addresses *addresses, const struct sockaddr *sa, socklen_t len)
{
	union sockaddr_ip addr;

	if (!sockaddr_ip_from(&addr, sa, len))
		return;
	if (addr.sa.sa_family == AF_INET && addresses->v4.sa.sa_family == AF_UNSPEC)
		addresses->v4 = addr;
	if (addr.sa.sa_family == AF_INET6 && addresses->v6.sa.sa_family == AF_UNSPEC)
		addresses->v6 = addr;
}

static bool resolve(struct addresses *out, const struct settings_converter *setting)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *list = NULL;
	char port[sizeof("65535")];
	int error;

	snprintf(port, sizeof(port), "%u", setting->port);
	resolving = true;
	error = getaddrinfo(setting->name, port, &hints, &list);
	resolving = false;
	if (error)
		return false;
	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next)
		addresses_add(out, ai->ai_addr, ai->ai_addrlen);
	freeaddrinfo(list);
	return true;
}

void converters_init(const struct settings *settings)
{
	static struct addresses numeric[SETTINGS_CONVERTERS_MAX];

	for (size_t i = 0; i < settings->converter_count; i++) {
		const struct settings_converter *setting = &settings->converters[i];

		if (setting->name[0])
			continue;
		addresses_add(&numeric[i], &setting->addr.sa, sockaddr_ip_len(&setting->addr));
		atomic_store(&converters[i].addresses, &numeric[i]);
	}
}

/* The addresses of a converter, or NULL while its name can't be resolved. */
static const struct addresses *addresses_of(const struct settings *settings, size_t index)
{
	const struct settings_converter *setting = &settings->converters[index];
	struct addresses *known = atomic_load(&converters[index].addresses), *mine;

	if (known)
		return known;
	mine = calloc(1, sizeof(*mine));
	if (!mine)
		return NULL;
	if (!resolve(mine, setting)) {
		free(mine);
		converters_rest((int)index, RESOLVE_AGAIN_SECONDS);
		return NULL;
	}
	if (atomic_compare_exchange_strong(&converters[index].addresses, &known, mine))
		return mine;
	free(mine);
	return known;
}

/* An address of the converter that a socket of @family can be connected to. */
static bool address_for(const struct addresses *addresses, int family, bool v6only,
			union sockaddr_ip *out)
{
	const union sockaddr_ip *v4 = &addresses->v4;
	struct in6_addr mapped;

	if (family == AF_INET6 && addresses->v6.sa.sa_family == AF_INET6) {
		*out = addresses->v6;
		return true;
	}
	if (v4->sa.sa_family != AF_INET || (family == AF_INET6 && v6only))
		return false;
	mapped = sockaddr_ip_in6(v4);
	return sockaddr_ip_set(out, family, &mapped, sockaddr_ip_port(v4));
}

int converters_choose(const struct settings *settings, const union sockaddr_ip *destination,
		      int family, bool v6only, union sockaddr_ip *out,
		      enum policy_verdict *verdict, const char **reason)
{
	int64_t now = now_seconds();

	if (resolving) {
		*verdict = POLICY_DIRECT_RESOLVER;
		*reason = policy_reason(*verdict);
		return -1;
	}
	*reason = "no converter answers";
	for (size_t i = 0; i < settings->converter_count; i++) {
		const struct addresses *addresses;

		if (atomic_load(&converters[i].rest_until) > now)
			continue;
		addresses = addresses_of(settings, i);
		if (!addresses) {
			*reason = "the converter's name has no address";
			continue;
		}
		if (policy_is_converter(&addresses->v4, destination) ||
		    policy_is_converter(&addresses->v6, destination)) {
			*verdict = POLICY_DIRECT_CONVERTER;
			*reason = policy_reason(*verdict);
			return -1;
		}
		if (address_for(addresses, family, v6only, out))
			return (int)i;
		*reason = "the converter has no address of the socket's family";
	}
	return -1;
}

void converters_rest(int index, unsigned int seconds)
{
	atomic_store(&converters[index].rest_until, now_seconds() + (int64_t)seconds);
}

bool converters_take_syn_data(int index)
{
	return atomic_load(&converters[index].syn_data_misses) < CONVERTERS_SYN_DATA_MISSES;
}

void converters_note_syn_data(int index, bool taken)
{
	if (taken)
		atomic_store(&converters[index].syn_data_misses, 0);
	else
		atomic_fetch_add(&converters[index].syn_data_misses, 1);
}

converters_cookie_number converters_cookie_current(int index)
{
	return atomic_load(&converters[index].cookie_number);
}

struct convert_span converters_cookie(const struct settings *settings, int index,
				      converters_cookie_number number)
{
	struct converter *converter = &converters[index];

	if (!number)
		return (struct convert_span){ settings->cookie, settings->cookie_len };
	return (struct convert_span){ converter->cookies[number % COOKIE_PLACES].bytes,
				      converter->cookies[number % COOKIE_PLACES].len };
}

bool converters_learn_cookie(int index, struct convert_span cookie)
{
	struct converter *converter = &converters[index];
	converters_cookie_number number = atomic_load(&converter->cookie_number);
	unsigned int place;

	if (!cookie.len || cookie.len > CONVERTERS_COOKIE_MAX)
		return false;
	number = (converters_cookie_number)(number == UINT8_MAX ? 1 : number + 1);
	place = number % COOKIE_PLACES;
	converter->cookies[place].len = (uint16_t)cookie.len;
	memcpy(converter->cookies[place].bytes, cookie.data, cookie.len);
	atomic_store(&converter->cookie_number, number);
	return true;
}
