/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_place.c - does a session lead back to this host?
 *
 * An address of this host's that it can't see itself (own.h) is found out in two ways. When a server has
 * answered, and before it gets a byte, it is looked for among the host's own sockets; that finds
 * services and convertd behind a NAT that keeps ports. And where what a client sends to its server
 * begins as a request of this protocol does, as it has to where convertd is to be made to connect to
 * itself, the same server is sent a token; if that comes back to us, by whatever way, the
 * server's address is our own. Sessions that lead there end then, whichever worker has them.
 *
 * Clients that use another converter through this one cost it one such connection in ten minutes.
 */
#include "config.h"

#include "convertd/session/session_place.h"

#include "convertd/base/clock.h"
#include "convert/convert.h"
#include "convertd/policy/admission.h"
#include "convertd/policy/own.h"
#include "convertd/net/own_look.h"
#include "convertd/net/probe.h"
#include "convertd/config/settings.h"
#include "convertd/session/session_socket.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

/* The fixed header is version, length, magic number (Section 6.1). */
#define REQUEST_VERSION 1
#define REQUEST_MAGIC_1 0x22
#define REQUEST_MAGIC_2 0x63
#define REQUEST_BEGINNING 4

/* Servers that were sent a token lately; by hash, where the newer one makes room. */
#define ASKED_PLACES 256u
#define ASKED_MS (600 * UINT64_C(1000))

/* For so long a session waits for what comes of it. */
#define AWAITED_MS 1000

static struct asked {
	_Atomic uint64_t key, at_ms;
	_Atomic bool ended;
} asked[ASKED_PLACES];

/* Could these be the first bytes of a request, as far as they go? */
static bool may_be_request(const uint8_t *bytes, size_t len)
{
	return len > 0 && bytes[0] == REQUEST_VERSION && (len < 3 || bytes[2] == REQUEST_MAGIC_1) &&
	       (len < 4 || bytes[3] == REQUEST_MAGIC_2);
}

static uint64_t key_of(const union sockaddr_ip *server)
{
	struct in6_addr address = sockaddr_ip_in6(server);
	uint64_t words[2];

	memcpy(words, &address, sizeof(words));
	return ((words[0] ^ words[1] * UINT64_C(0x9e3779b97f4a7c15)) + sockaddr_ip_port(server)) *
		       UINT64_C(0xd6e8feb86659fd93) |
	       1;
}

static struct asked *place_of(uint64_t key)
{
	return &asked[(key >> 40) % ASKED_PLACES];
}

/* Returns false if it was asked lately; else it is from now on. Two threads may both ask: no harm. */
static bool is_to_be_asked(const union sockaddr_ip *server)
{
	uint64_t key = key_of(server), now_ms = clock_now_ms();
	struct asked *place = place_of(key);

	if (atomic_load(&place->key) == key && now_ms - atomic_load(&place->at_ms) < ASKED_MS)
		return false;
	atomic_store(&place->ended, false);
	atomic_store(&place->at_ms, now_ms);
	atomic_store(&place->key, key);
	return true;
}

static void on_asked(const union sockaddr_ip *server, int error)
{
	uint64_t key = key_of(server);
	struct asked *place = place_of(key);

	(void)error;
	if (atomic_load(&place->key) == key)
		atomic_store(&place->ended, true);
}

static void send_token(struct session *s)
{
	uint8_t token[OWN_TOKEN_LEN], message[PROBE_MESSAGE_MAX];
	struct downstream_plan plan = { .server = &s->server, .route = s->pool->context.route, .congestion = "" };
	struct convert_writer writer;
	ssize_t len;

	if (!is_to_be_asked(&s->server))
		return;
	own_make_token(&s->server, token);
	convert_writer_init(&writer, message, sizeof(message));
	convert_write_info(&writer);
	convert_write_cookie(&writer, token, sizeof(token));
	len = convert_writer_finish(&writer);
	plan.choice = sources_choose(&s->pool->context.terms->settings->sources, &s->client, &s->server,
				     &plan.source);
	if (len < 0 || !probes_start(s->pool->context.probes, &plan, message, (size_t)len, on_asked))
		on_asked(&s->server, -EAGAIN);
}

/* What the client sends to its server begins with these bytes. */
static void look_at(struct session *s, const uint8_t *first, size_t len)
{
	s->first_seen = true;
	s->doubted = may_be_request(first, len);
	if (s->doubted)
		send_token(s);
}

bool session_awaits_token(struct session *s)
{
	uint64_t key = key_of(&s->server);
	struct asked *place = place_of(key);

	if (!s->doubted)
		return false;
	s->doubted = atomic_load(&place->key) == key && !atomic_load(&place->ended) &&
		     clock_now_ms() - atomic_load(&place->at_ms) < AWAITED_MS;
	if (s->doubted)
		session_set_deadline(s, SESSION_TIMEOUT_RESET_POLL);
	return s->doubted;
}

void session_look_early(struct session *s, const uint8_t *early, size_t len)
{
	if (len >= REQUEST_BEGINNING)
		look_at(s, early, len);
}

void session_look_first(struct session *s)
{
	const uint8_t *first;
	size_t len;

	if (s->first_seen || !s->relay.side[RELAY_UPSTREAM].readable)
		return;
	/* Fewer bytes than a header has, and more before them: nothing that is worth the trouble. */
	s->first_seen = s->relay.flow[RELAY_UPSTREAM].bytes > 0;
	if (s->first_seen)
		return;
	len = relay_begin(&s->relay, RELAY_UPSTREAM, s->pool->scratch, &first);
	if (len)
		look_at(s, first, len);
}

bool session_leads_here(struct session *s, const struct tcp_info *info)
{
	const struct settings *settings = s->pool->context.terms->settings;
	unsigned generation = own_generation();
	bool found = info && own_look_meets(s->pool->context.own_look, settings->listen, settings->listen_count,
					    s->pool->context.route, s->relay.side[RELAY_DOWNSTREAM].fd,
					    &s->server, info);

	if (found) {
		struct in6_addr address = sockaddr_ip_in6(&s->server);

		own_learn(&address, 0, clock_now_ms());
	}
	if (!found && generation == s->own_generation)
		return false;
	s->own_generation = generation;
	return !admission_still_allows(&s->pool->context.admission, &s->server);
}
