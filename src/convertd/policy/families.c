/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * families.c - finds out whether each address family works from this host (no I/O)
 *
 * The problem: a converter whose IPv6 leads nowhere must not make its clients' IPv6 fail, since they may well reach the
 * servers themselves. One server that is silent looks the same as a family that doesn't work, so the judgement
 * about a family rests on all of its servers. Its states:
 *
 *     UNKNOWN   No server has answered yet. After FAMILIES_PATIENCE_MS without an answer the client is told to connect
 *               directly, as nothing shows that we could do better; so are clients that ask for the
 *               same server within SILENCE_MS. The server is tested once more: if it is silent again, or
 *               another one that was asked for later is, the family becomes SILENT.
 *     WORKS     When SILENT_SERVERS different servers in a row were silent, it becomes DOUBTED.
 *     DOUBTED   Requests are served as before. Servers that have answered before are tested, since no client
 *               can choose those to be dead: after FAILED_TESTS silent ones it becomes SILENT.
 *     SILENT    Requests are refused at once. Servers are tested, both those that clients ask for and those that
 *               have answered before: at most once a second while clients ask, at least once a minute.
 *
 * Any answer, even a refusal, makes it WORKS. So a wrong judgement costs little: for about a second clients connect
 * directly. When the route out of this host appears or goes, it becomes UNKNOWN. One lock guards all but the atomic members.
 */
#include "config.h"

#include "convertd/policy/families.h"

#include "daemon/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define SILENT_SERVERS 3   /* this many silent servers in a row make WORKS DOUBTED */
#define FAILED_TESTS 2     /* this many failed tests make DOUBTED SILENT */
#define REMEMBERED 4       /* the number of servers remembered that have answered, and that were asked for */
#define SILENCE_MS 10000   /* in UNKNOWN, requests for a silent server are refused for this long */
#define TEST_MIN_MS 1000
#define TEST_MAX_MS 60000
#define ANSWER_NOTED_MS 1000 /* further answers within this time aren't noted */

/* The last few servers, the latest first. */
struct servers {
	union sockaddr_ip server[REMEMBERED];
	size_t count, next; /* @next: the index of the one that is tested next */
};

struct health {
	_Atomic uint32_t state;   /* enum family_state; written with the lock */
	_Atomic bool unrouted;
	_Atomic uint64_t answered_ms; /* the time of the last answer; 0: never */
	_Atomic bool doubts;          /* @silent has servers, which the next answer removes */
	struct in6_addr silent[SILENT_SERVERS];
	size_t silent_count;
	uint64_t first_silence_ms, last_silence_ms;
	struct servers good, asked;
	bool test_asked; /* the next test takes a server of @asked */
	uint64_t last_test_ms, next_test_ms, interval_ms;
	unsigned tests_failed;
};

/* The prefix that denies the servers of a family, and not those of the other: ::/0 matches both. */
static const char *const public_prefix[FAMILY_COUNT] = { [FAMILY_V4] = "0.0.0.0/0", [FAMILY_V6] = "2000::/3" };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct health families[FAMILY_COUNT];

enum family families_of(const union sockaddr_ip *server)
{
	return sockaddr_ip_is_v4(server) ? FAMILY_V4 : FAMILY_V6;
}

const char *families_name(enum family family)
{
	return family == FAMILY_V4 ? "IPv4" : "IPv6";
}

enum family_state families_state(enum family family)
{
	return (enum family_state)atomic_load_explicit(&families[family].state, memory_order_relaxed);
}

bool families_is_routed(enum family family)
{
	return !atomic_load_explicit(&families[family].unrouted, memory_order_relaxed);
}

static void remember(struct servers *servers, const union sockaddr_ip *server)
{
	size_t place = 0;

	while (place < servers->count && !sockaddr_ip_equal(&servers->server[place], server))
		place++;
	if (place == servers->count && servers->count < REMEMBERED)
		servers->count++;
	else if (place == servers->count)
		place--;
	memmove(&servers->server[1], &servers->server[0], place * sizeof(servers->server[0]));
	servers->server[0] = *server;
}

/* Changes the state. The caller holds the lock, as for all functions below that take a struct health. */
static void set_state(struct health *health, enum family_state state, uint64_t now_ms)
{
	const char *name = families_name((enum family)(health - families));
	enum family_state before = families_state((enum family)(health - families));

	if (before == state)
		return;
	atomic_store(&health->state, state);
	health->tests_failed = 0;
	health->interval_ms = TEST_MIN_MS;
	health->next_test_ms = state >= FAMILY_DOUBTED ? now_ms : 0;
	if (state == FAMILY_SILENT)
		log_warning("no %s server answers: requests for %s are refused (Not Authorized), so that "
			    "clients connect directly; is the uplink's %s broken? It is tested now and "
			    "then; deny the family, if that is meant, with --deny-destination %s",
			    name, name, name, public_prefix[health - families]);
	else if (before == FAMILY_SILENT)
		log_info("%s servers answer again", name);
}

static void forget_silences(struct health *health)
{
	health->silent_count = 0;
	atomic_store(&health->doubts, false);
}

void families_answered(const union sockaddr_ip *server, uint64_t now_ms)
{
	enum family family = families_of(server);
	struct health *health = &families[family];

	/* The usual case takes no lock. */
	if (families_state(family) == FAMILY_WORKS && !atomic_load(&health->doubts) &&
	    now_ms - atomic_load(&health->answered_ms) < ANSWER_NOTED_MS)
		return;
	pthread_mutex_lock(&lock);
	atomic_store(&health->answered_ms, now_ms);
	remember(&health->good, server);
	forget_silences(health);
	set_state(health, FAMILY_WORKS, now_ms);
	pthread_mutex_unlock(&lock);
}

static void note_silence(struct health *health, const union sockaddr_ip *server, uint64_t now_ms)
{
	struct in6_addr address = sockaddr_ip_in6(server);

	if (!health->silent_count)
		health->first_silence_ms = now_ms;
	health->last_silence_ms = now_ms;
	atomic_store(&health->doubts, true);
	for (size_t i = 0; i < health->silent_count; i++)
		if (IN6_ARE_ADDR_EQUAL(&health->silent[i], &address))
			return;
	if (health->silent_count < SILENT_SERVERS)
		health->silent[health->silent_count++] = address;
}

static bool judge_silence(struct health *health, const union sockaddr_ip *server, uint64_t started_ms,
			  uint64_t now_ms, bool silent)
{
	enum family_state state = families_state((enum family)(health - families));

	if (atomic_load(&health->answered_ms) > started_ms)
		return false;
	switch (state) {
	case FAMILY_UNKNOWN:
		/* A router's message that a server can't be reached says something about that server's network only. */
		if (!silent)
			return false;
		if (health->silent_count && started_ms >= health->first_silence_ms)
			set_state(health, FAMILY_SILENT, now_ms);
		note_silence(health, server, now_ms);
		remember(&health->asked, server);
		if (families_state((enum family)(health - families)) == FAMILY_UNKNOWN && !health->next_test_ms)
			health->next_test_ms = now_ms;
		return true;
	case FAMILY_WORKS:
		note_silence(health, server, now_ms);
		if (health->silent_count == SILENT_SERVERS)
			set_state(health, FAMILY_DOUBTED, now_ms);
		return false;
	case FAMILY_DOUBTED:
		return false;
	case FAMILY_SILENT:
		remember(&health->asked, server);
		return true;
	case FAMILY_STATE_COUNT:
		break;
	}
	return false;
}

bool families_unanswered(const union sockaddr_ip *server, uint64_t started_ms, uint64_t now_ms,
			 bool silent)
{
	struct health *health = &families[families_of(server)];
	bool ours;

	pthread_mutex_lock(&lock);
	ours = judge_silence(health, server, started_ms, now_ms, silent);
	pthread_mutex_unlock(&lock);
	return ours;
}

/* Tells whether this server was silent within SILENCE_MS, in the state UNKNOWN. The caller holds the lock. */
static bool was_silent(const struct health *health, const struct in6_addr *address, uint64_t now_ms)
{
	for (size_t i = 0; i < health->silent_count; i++)
		if (IN6_ARE_ADDR_EQUAL(&health->silent[i], address))
			return now_ms - health->last_silence_ms < SILENCE_MS;
	return false;
}

bool families_reach_nothing(void)
{
	bool all = true;

	for (int i = 0; i < FAMILY_COUNT; i++) {
		const enum family_state state = families_state((enum family)i);

		if (!families_is_routed((enum family)i))
			continue;
		if (state == FAMILY_WORKS || state == FAMILY_DOUBTED)
			return false;
		all = all && state == FAMILY_SILENT;
	}
	/* silent IPv4 suffices: perhaps nobody has tried this host's IPv6 yet */
	return all || (families_is_routed(FAMILY_V4) && families_state(FAMILY_V4) == FAMILY_SILENT);
}

bool families_refuse(const struct in6_addr *address, uint64_t now_ms)
{
	enum family family = IN6_IS_ADDR_V4MAPPED(address) ? FAMILY_V4 : FAMILY_V6;
	enum family_state state = families_state(family);
	struct health *health = &families[family];
	bool refuse;

	if (state != FAMILY_UNKNOWN || !atomic_load_explicit(&health->doubts, memory_order_relaxed))
		return state == FAMILY_SILENT;
	pthread_mutex_lock(&lock);
	refuse = was_silent(health, address, now_ms);
	pthread_mutex_unlock(&lock);
	return refuse;
}

static void hasten_test(struct health *health, uint64_t now_ms)
{
	uint64_t earliest = health->last_test_ms + TEST_MIN_MS;

	health->interval_ms = TEST_MIN_MS;
	if (health->next_test_ms > earliest)
		health->next_test_ms = earliest > now_ms ? earliest : now_ms;
}

void families_asked(const union sockaddr_ip *server, uint64_t now_ms)
{
	struct health *health = &families[families_of(server)];

	pthread_mutex_lock(&lock);
	if (families_state(families_of(server)) == FAMILY_SILENT) {
		remember(&health->asked, server);
		hasten_test(health, now_ms);
	}
	pthread_mutex_unlock(&lock);
}

/* Chooses a server to test, alternately among those that have answered and those that clients ask for. Returns false without any. */
static bool choose_test(struct health *health, union sockaddr_ip *server)
{
	bool asked = health->asked.count && (health->test_asked || !health->good.count) &&
		     families_state((enum family)(health - families)) != FAMILY_DOUBTED;
	struct servers *servers = asked ? &health->asked : &health->good;

	health->test_asked = !asked;
	if (!servers->count)
		return false;
	*server = servers->server[servers->next++ % servers->count];
	return true;
}

bool families_take_test(enum family family, uint64_t now_ms, union sockaddr_ip *server)
{
	struct health *health = &families[family];
	bool due;

	pthread_mutex_lock(&lock);
	due = health->next_test_ms && now_ms >= health->next_test_ms;
	if (due) {
		health->last_test_ms = now_ms;
		if (health->interval_ms < TEST_MIN_MS)
			health->interval_ms = TEST_MIN_MS;
		health->next_test_ms = now_ms + health->interval_ms;
		if (families_state(family) == FAMILY_SILENT)
			health->interval_ms *= 2;
		if (health->interval_ms > TEST_MAX_MS)
			health->interval_ms = TEST_MAX_MS;
		due = choose_test(health, server);
	}
	pthread_mutex_unlock(&lock);
	return due;
}

void families_test_failed(const union sockaddr_ip *server, uint64_t now_ms)
{
	enum family family = families_of(server);
	struct health *health = &families[family];

	pthread_mutex_lock(&lock);
	if (families_state(family) == FAMILY_UNKNOWN ||
	    (families_state(family) == FAMILY_DOUBTED && ++health->tests_failed >= FAILED_TESTS))
		set_state(health, FAMILY_SILENT, now_ms);
	pthread_mutex_unlock(&lock);
}

uint64_t families_next_test_ms(enum family family)
{
	uint64_t next;

	pthread_mutex_lock(&lock);
	next = families[family].next_test_ms;
	pthread_mutex_unlock(&lock);
	return next;
}

void families_set_routed(enum family family, bool routed, bool tell, uint64_t now_ms)
{
	struct health *health = &families[family];
	const char *name = families_name(family);
	bool was;

	pthread_mutex_lock(&lock);
	was = families_is_routed(family);
	atomic_store(&health->unrouted, !routed);
	/* The judgement was made over other routes, or without any, so it is void. */
	if (was != routed) {
		forget_silences(health);
		set_state(health, FAMILY_UNKNOWN, now_ms);
	}
	pthread_mutex_unlock(&lock);
	if (!routed && tell)
		log_warning("this host has no route to %s servers: requests for them are refused (Not "
			    "Authorized), so that clients connect directly; add a route, or deny the "
			    "family, if that is meant, with --deny-destination %s",
			    name, public_prefix[family]);
	else if (!was && routed)
		log_info("this host has a route to %s servers now", name);
}

void families_routes_changed(uint64_t now_ms)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < FAMILY_COUNT; i++)
		if (families[i].next_test_ms)
			hasten_test(&families[i], now_ms);
	pthread_mutex_unlock(&lock);
}

void families_forget(void)
{
	pthread_mutex_lock(&lock);
	memset(families, 0, sizeof(families));
	pthread_mutex_unlock(&lock);
}
