/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * converters.c - the addresses of the configured converters, each with an index that stays
 *
 * Each address is a converter of its own, even if one name has several. It keeps its index while CONVERT_ADDR has it, and for REUSE_SECONDS
 * more; then a full table gives the index to another address. So connections, and the modules that keep facts about converters, name a
 * converter by its index and need no lock. One thread at a time adds entries, and readers see only those below converter_count.
 *
 * The first threads that need a name may all ask the resolver at once. They hold no lock meanwhile, and we don't convert connections that
 * the resolver makes itself (converters_choose()).
 */
#include "config.h"

#include "client/converters.h"

#include "client/cache.h"
#include "client/paths.h"
#include "client/resolve.h"
#include "client/settings.h"
#include "common/clock.h"
#include "common/thread.h"

#include <stdatomic.h>
#include <string.h>

#define RESOLVE_AGAIN_SECONDS 30
#define RETIRED UINT8_MAX /* the setting of an address that CONVERT_ADDR, or a name in it, doesn't have any more */
#define REUSE_SECONDS 180 /* longer than any attempt lasts: none still uses an entry that was retired before */

static struct {
	union sockaddr_ip addr;
	int64_t retired_at; /* in clock_seconds() */
	uint8_t setting;    /* the part of CONVERT_ADDR that has it, or RETIRED */
} converters[CONVERTERS_MAX];
static _Atomic int converter_count;

/* When a thread may resolve a name again, in clock_seconds(); 0: none has yet. */
static _Atomic int64_t resolve_at[SETTINGS_CONVERTERS_MAX];

static atomic_flag writing = ATOMIC_FLAG_INIT;
static struct settings_converter configured[SETTINGS_CONVERTERS_MAX]; /* the parts of CONVERT_ADDR; guarded by writing */

void converters_repair_in_child(void)
{
	atomic_flag_clear(&writing);
}

static void writing_begin(struct quiet *quiet)
{
	unsigned int turn = 0;

	quiet_all(quiet);
	while (atomic_flag_test_and_set(&writing))
		patience(&turn);
}

static void writing_end(const struct quiet *quiet)
{
	atomic_flag_clear(&writing);
	quiet_end(quiet);
}

static void retire(int index)
{
	converters[index].setting = RETIRED;
	converters[index].retired_at = clock_seconds();
}

static void cookie_forget(int index);

/* Returns the entry that was retired first, and forgets all facts, which are kept by index; CONVERTERS_MAX: none may be used again yet. */
static int take_retired(void)
{
	int first = CONVERTERS_MAX;

	for (int i = 0; i < CONVERTERS_MAX; i++)
		if (converters[i].setting == RETIRED && clock_seconds() - converters[i].retired_at >= REUSE_SECONDS &&
		    (first == CONVERTERS_MAX || converters[i].retired_at < converters[first].retired_at))
			first = i;
	if (first < CONVERTERS_MAX) {
		converters_forget();
		cookie_forget(first);
	}
	return first;
}

/* Enters an address, unless the table is full. The caller is writing. */
static void table_add(uint8_t setting, const union sockaddr_ip *addr)
{
	int count = atomic_load(&converter_count), place = count;

	for (int i = 0; i < count; i++)
		if ((converters[i].setting == setting || converters[i].setting == RETIRED) && sockaddr_ip_equal(&converters[i].addr, addr)) {
			converters[i].setting = setting;
			return;
		}
	if (count == CONVERTERS_MAX)
		place = take_retired();
	if (place == CONVERTERS_MAX)
		return;
	converters[place].addr = *addr;
	atomic_thread_fence(memory_order_release);
	converters[place].setting = setting;
	if (place == count)
		atomic_store(&converter_count, count + 1);
}

static bool contains(const union sockaddr_ip *list, size_t count, const union sockaddr_ip *addr)
{
	while (count)
		if (sockaddr_ip_equal(&list[--count], addr))
			return true;
	return false;
}

/*
 * Enters the addresses that a name has now, and retires others that it had. If CONVERT_ADDR was replaced during the lookup, and has another
 * name there, we drop them.
 */
static void table_resolved(uint8_t setting, const struct settings_converter *asked, const union sockaddr_ip *found, size_t found_count)
{
	const int count = converters_count();
	struct quiet quiet;

	writing_begin(&quiet);
	if (configured[setting].port == asked->port && strcmp(configured[setting].name, asked->name) == 0)
		atomic_store(&resolve_at[setting], clock_seconds() + RESOLVE_AGAIN_SECONDS);
	else
		found_count = 0;
	for (int i = 0; i < count && found_count; i++)
		if (converters[i].setting == setting && !contains(found, found_count, &converters[i].addr))
			retire(i);
	for (size_t i = 0; i < found_count; i++)
		table_add(setting, &found[i]);
	writing_end(&quiet);
}

void converters_init(const struct settings *settings)
{
	struct quiet quiet;

	writing_begin(&quiet);
	memcpy(configured, settings->converters, sizeof(configured));
	for (size_t i = 0; i < settings->converter_count; i++)
		if (!settings->converters[i].name[0])
			table_add((uint8_t)i, &settings->converters[i].addr);
	writing_end(&quiet);
}

void converters_replace(const struct settings *settings)
{
	struct quiet quiet;

	writing_begin(&quiet);
	for (int i = 0; i < converters_count(); i++)
		retire(i);
	for (size_t i = 0; i < SETTINGS_CONVERTERS_MAX; i++)
		atomic_store(&resolve_at[i], 0);
	writing_end(&quiet);
	converters_init(settings);
}

int converters_count(void)
{
	return atomic_load(&converter_count);
}

const union sockaddr_ip *converters_address(int index)
{
	return &converters[index].addr;
}

/* Is @destination on the host of a converter, at any port? */
static bool is_on_converter(const union sockaddr_ip *destination)
{
	int count = converters_count();

	for (int i = 0; i < count; i++)
		if (policy_is_converter(&converters[i].addr, destination))
			return true;
	return false;
}

/* Is part @setting of CONVERT_ADDR a name that no thread has resolved within the last 30 s? */
static bool may_resolve(const struct settings *settings, size_t setting)
{
	return settings->converters[setting].name[0] && atomic_load(&resolve_at[setting]) <= clock_seconds();
}

/* Resolves the name in part @setting, and adds its addresses. Blocks, and allocates memory. @reason: a static text if it has none. */
static void resolve(const struct settings *settings, size_t setting, const char **reason)
{
	const struct settings_converter *converter = &settings->converters[setting];
	union sockaddr_ip found[CONVERTERS_MAX];
	size_t count = resolve_converter(converter->name, converter->port, settings->timeout_ms, found, CONVERTERS_MAX,
					 reason);

	table_resolved((uint8_t)setting, converter, found, count);
}

void converters_note(int index, unsigned int facts, const struct cache_converter *value)
{
	cache_converter_update(user_cache(), &converters[index].addr, 0, facts, cache_now(), value);
}

unsigned int converters_noted(int index, unsigned int facts, struct cache_converter *out)
{
	return cache_converter_get(user_cache(), &converters[index].addr, 0, facts, cache_now(), out);
}

/*
 * --- the cookie that a request to a converter carries (RFC 8803, Section 6.2.7) ---
 *
 * Learned cookies take COOKIE_PLACES places in turn, and their numbers count up. A reader is done with a cookie long before its place is
 * used again, so there is no lock. The writer stores the number after the bytes.
 */

#define COOKIE_SECONDS (24 * 3600) /* CACHE_LIFETIME_MAX; a converter refuses an old one, and we replace it */
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

static void cookie_forget(int index)
{
	atomic_store(&learned[index].current, 0);
}

static bool cookie_keep(int index, const uint8_t *bytes, size_t len)
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

bool converters_learn_cookie(int index, struct convert_span cookie)
{
	struct cache_converter note = { .cookie.until = cache_in(COOKIE_SECONDS) };

	if (!cookie.len || !cookie_keep(index, cookie.data, cookie.len))
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
	cookie_keep(index, NULL, 0);
	converters_note(index, CACHE_COOKIE, &nothing);
	return true;
}

/* Takes over the cookie that another process has learned. */
static void renew_cookie(int index, const struct cache_converter *found)
{
	converters_cookie_number number = converters_cookie_current(index);
	const struct cookie *cookie = cookie_of(index, number);

	if (!(found->known & CACHE_COOKIE))
		return;
	if (!number || cookie->len != found->cookie.len || memcmp(cookie->bytes, found->cookie.bytes, cookie->len) != 0)
		cookie_keep(index, found->cookie.bytes, found->cookie.len);
}

/*
 * --- the choice of a converter for a connection ---
 *
 * The user sets the order: the parts of CONVERT_ADDR one after the other, the addresses of a name in the resolver's order. The choice makes
 * up to three passes, for addresses that suit the socket less and less, and with CONVERT_FALLBACK=none another one, for converters that
 * rest. A pass looks up a name again only if no later one takes an address that it has already. Before the choice considers a converter, it
 * takes over from the cache the facts that the user's other processes have learned about it.
 */

/* The addresses that a socket can be connected to, beside those of its own family. */
enum fit {
	FIT_NATIVE, /* none */
	FIT_SOCKET, /* an IPv6 socket to v4-mapped ones */
	FIT_ANY,    /* all: another socket takes its place */
};

/* One pass through the list. */
struct pass {
	const struct settings *settings;
	const struct converters_query *query;
	union sockaddr_ip *out;
	const char **reason;
	enum fit fit;
	int64_t now; /* clock_seconds(); INT64_MAX: also choose converters that rest or refuse */
};

static bool address_for(const struct pass *pass, enum fit fit, const union sockaddr_ip *addr)
{
	const struct converters_query *query = pass->query;
	struct in6_addr in6 = sockaddr_ip_in6(addr);

	*pass->out = *addr;
	if (addr->sa.sa_family == query->family)
		return true;
	if (fit == FIT_NATIVE)
		return false;
	if (addr->sa.sa_family != AF_INET || query->v6only)
		return fit == FIT_ANY;
	return sockaddr_ip_set(pass->out, query->family, &in6, sockaddr_ip_port(addr));
}

static const char other_family[] = "the converter has no address of the socket's family";

/* Returns why we must not ask converter @i, or NULL with its address in *out. */
static const char *obstacle(const struct pass *pass, int i)
{
	const char *refusal;

	if (converters_rests(i, pass->now))
		return "the converter is left alone for a while";
	refusal = pass->now < INT64_MAX ? converters_refusal(i, pass->query->destination) : NULL;
	if (refusal)
		return refusal;
	return address_for(pass, pass->fit, converters_address(i)) ? NULL : other_family;
}

/* Takes over the facts about converter @i that the user's other processes have learned. */
static void renew(int i)
{
	int64_t now = clock_seconds();
	struct cache_converter found;

	converters_noted(i, CACHE_FACTS_ALL, &found);
	converters_renew_facts(i, &found, now);
	renew_cookie(i, &found);
	converters_renew_path(i, &found);
}

/* Returns the first usable converter of a part of CONVERT_ADDR. If there is none, *@later tells whether a later pass takes one. */
static int choose_of(const struct pass *pass, size_t setting, bool *later)
{
	const enum fit last = pass->query->any_family ? FIT_ANY : FIT_SOCKET;
	int count = converters_count();

	*later = false;
	for (int i = 0; i < count; i++) {
		const char *why;

		if (converters[i].setting != setting || pass->query->tried >> i & 1)
			continue;
		renew(i);
		why = obstacle(pass, i);
		if (!why)
			return i;
		*later |= why == other_family && address_for(pass, last, converters_address(i));
		if (!*pass->reason) /* the first one is the most informative */
			*pass->reason = why;
	}
	return CONVERTERS_NONE;
}

static int choose_in_pass(const struct pass *pass)
{
	for (size_t i = 0; i < pass->settings->converter_count; i++) {
		bool later;
		int index = choose_of(pass, i, &later);

		if (index == CONVERTERS_NONE && !later && may_resolve(pass->settings, i)) {
			if (!pass->query->may_resolve)
				return CONVERTERS_UNRESOLVED;
			resolve(pass->settings, i, pass->reason);
			index = choose_of(pass, i, &later);
		}
		if (index != CONVERTERS_NONE)
			return index;
	}
	return CONVERTERS_NONE;
}

static int choose_best(struct pass *pass)
{
	const struct converters_query *query = pass->query;
	int index = CONVERTERS_NONE;

	/*
	 * In Linux 6.18 an IPv6 socket that was once connected to a v4-mapped address can't be connected to an IPv6 address any more (the
	 * SYN is lost). So native addresses come first for an IPv6 destination.
	 */
	pass->fit = FIT_NATIVE;
	if (query->family == AF_INET6 && !sockaddr_ip_is_v4(query->destination))
		index = choose_in_pass(pass);
	pass->fit = FIT_SOCKET;
	if (index == CONVERTERS_NONE)
		index = choose_in_pass(pass);
	if (query->any_family)
		pass->fit = FIT_ANY;
	if (index == CONVERTERS_NONE && query->any_family)
		index = choose_in_pass(pass);
	pass->now = INT64_MAX;
	if (index == CONVERTERS_NONE && pass->settings->fail_closed)
		index = choose_in_pass(pass);
	return index;
}

int converters_choose(const struct settings *settings, const struct converters_query *query,
		      union sockaddr_ip *out, enum policy_verdict *verdict, const char **reason)
{
	struct pass pass = { .settings = settings, .query = query, .out = out, .reason = reason };
	int index;

	*reason = NULL;
	if (resolve_is_running()) {
		*verdict = POLICY_DIRECT_RESOLVER;
		*reason = policy_reason(*verdict);
		return CONVERTERS_NONE;
	}
	pass.now = clock_seconds();
	index = choose_best(&pass);
	if (!*reason)
		*reason = "the converter's name has no address";
	if (!is_on_converter(query->destination))
		return index;
	*verdict = POLICY_DIRECT_CONVERTER;
	*reason = policy_reason(*verdict);
	return CONVERTERS_NONE;
}

void converters_forget(void)
{
	converters_facts_forget();
	converters_destinations_forget();
	paths_facts_forget();
}
