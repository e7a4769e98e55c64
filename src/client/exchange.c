/* SPDX-License-Identifier: BSD-3-Clause */
/* exchange.c - one request to a converter and its response: the content of the request, and the lessons of its outcome */
#include "config.h"

#include "client/exchange.h"

#include "client/converters.h"
#include "common/tcp.h"

#include <errno.h>

bool exchange_bypasses(const struct settings *settings, const union sockaddr_ip *server)
{
	const struct converters_query query = { .destination = server, .family = server->sa.sa_family, .any_family = true };
	enum policy_verdict verdict = POLICY_CONVERT;
	union sockaddr_ip address;
	const char *reason;
	int converter;

	/* the kernel would choose the networks of a connection that isn't ours */
	if (!settings->bypass_mptcp || settings->fail_closed || path_preferences_restrict(&settings->paths) || !servers_any_mptcp(server))
		return false;
	converter = converters_choose(settings, &query, &address, &verdict, &reason);
	return converter >= 0 && servers_mptcp(converter, server) == HANDSHAKE_SERVER_MPTCP;
}

/* May the request be silent? Not with an Info TLV, and over Multipath TCP only if that holds on the path. */
static bool may_be_silent(const struct settings *settings, const struct path_id *path, const struct handshake_ask *ask)
{
	return !ask->info && (!ask->over_mptcp || exchange_keeps_mptcp(settings, path));
}

struct handshake_ask exchange_ask(const struct settings *settings, const struct path_id *path, const union sockaddr_ip *server,
				  bool mptcp)
{
	const int converter = path->converter;
	const enum converters_silence silence = converters_silence(settings, converter);
	struct handshake_ask ask = {
		.mptcp = mptcp && settings->bypass_mptcp && converters_takes_mptcp(converter) &&
			 servers_mptcp(converter, server) == HANDSHAKE_SERVER_UNKNOWN,
		.info = (!converters_is_proven(converter) || silence == CONVERTERS_OUTDATED) && settings->withheld_ms <= 0,
		.over_mptcp = mptcp,
	};

	ask.silent = (silence == CONVERTERS_SILENT || silence == CONVERTERS_BLIND) && may_be_silent(settings, path, &ask);
	return ask;
}

bool exchange_ask_blindly(const struct settings *settings, const struct path_id *path, struct handshake_ask *ask)
{
	if (converters_silence(settings, path->converter) != CONVERTERS_BLIND || !may_be_silent(settings, path, ask))
		return false;
	ask->mptcp = false;
	ask->silent = ask->blind = true;
	return true;
}

bool exchange_keeps_mptcp(const struct settings *settings, const struct path_id *path)
{
	return settings->withheld_ms > 0 || paths_mptcp(path) == CACHE_MPTCP_HOLDS;
}

/*
 * How long a converter may withhold the SYN of a distant client
 *
 * A Linux client repeats a SYN that isn't answered within a second, and gives up Multipath TCP for that connection. The server, which has
 * already been asked, then sees a second connection. So the time of withholding plus the round trip to the client must be shorter.
 *
 * A client that numbers its attempt repeats its request before that, and the converter asks the server once all the same
 * (doc/private-tlvs.md). So an early repeat costs one SYN, while a late one costs the connection: the kernel's own SYN carries no request.
 * HOLD_NUMBERED_MS leaves a busy machine 300 ms to make the request again.
 */

/* When a Linux client repeats its SYN; and by when one that numbers its attempt wants an answer. In milliseconds. */
#define HOLD_AGAIN_MS 1000
#define HOLD_NUMBERED_MS 700

/*
 * The margin besides the round trip: an eighth of the round trip for its variation, and this constant for the machines at both ends, where
 * a process may wait for a CPU for some tens of milliseconds.
 */
#define HOLD_MARGIN_MS 100

/* The shortest limit in milliseconds, also for a client with a long round trip: most servers answer by then. */
#define HOLD_MIN_MS 50

/*
 * hold_time_left_ms() - return for how many milliseconds a SYN may be withheld, so that its SYN+ACK comes in time
 * @rtt_ms: the round trip to its client
 * @until_ms: when the SYN+ACK must be there, in milliseconds after the client's SYN
 */
static unsigned int hold_time_left_ms(unsigned int rtt_ms, unsigned int until_ms)
{
	const unsigned int taken_ms = rtt_ms + rtt_ms / 8 + HOLD_MARGIN_MS;

	return taken_ms + HOLD_MIN_MS < until_ms ? until_ms - taken_ms : HOLD_MIN_MS;
}

unsigned int exchange_hold_ms(const struct settings *settings, const struct path_id *path, bool mptcp, bool numbered)
{
	const unsigned int limit_ms = converters_withholds_ms(settings, path->converter);
	unsigned int rtt_ms, most_ms;

	if (!mptcp || !limit_ms || !converters_takes_hold_times(path->converter))
		return 0;
	rtt_ms = paths_facts_kept(path).rtt_ms;
	most_ms = hold_time_left_ms(rtt_ms, numbered ? HOLD_NUMBERED_MS : HOLD_AGAIN_MS);
	return rtt_ms && most_ms < limit_ms ? most_ms : 0;
}

void exchange_way_failed(const struct path_id *path, enum ask_way next, int64_t syn_at)
{
	if (next == ASK_TCP)
		paths_note_fallback(path, syn_at);
	else
		paths_note_syn_data(path, false, syn_at);
}

void exchange_done(const struct path_id *path, const union sockaddr_ip *server, const struct handshake_step *told, bool mptcp)
{
	const int converter = path->converter;

	if (mptcp)
		paths_note_mptcp(path);
	converters_answered(converter, told);
	converters_reached(converter, server);
	converters_admitted(converter, server);
	if (told->server_mptcp != HANDSHAKE_SERVER_UNKNOWN)
		servers_note_mptcp(converter, server, told->server_mptcp);
}

void exchange_done_silently(int converter, const union sockaddr_ip *server, bool asked_mptcp)
{
	converters_reached(converter, server);
	converters_admitted(converter, server);
	if (asked_mptcp)
		servers_note_mptcp(converter, server, HANDSHAKE_SERVER_PLAIN);
}

void exchange_reset_silently(const struct path_id *path)
{
	converters_doubt_silence(path->converter);
	paths_forget_mptcp(path);
}

/* Did other bytes, the end of the stream or a reset come in place of a response? */
static bool is_no_response(const struct handshake_step *told)
{
	return told->fault == HANDSHAKE_FAULT_PROTOCOL || (told->fault != HANDSHAKE_FAULT_SERVER && told->error == ECONNRESET);
}

bool exchange_take_remedy(int converter, converters_cookie_number number, const struct handshake_step *told,
			  bool *cookie_asked, bool *ask_mptcp, bool *silent)
{
	if (*silent && is_no_response(told)) {
		if (told->fault == HANDSHAKE_FAULT_PROTOCOL)
			converters_forget_silence(converter);
		else /* a reset, which says little */
			converters_doubt_silence(converter);
		*silent = false;
		return true;
	}
	if (told->fault == HANDSHAKE_FAULT_REFUSED)
		return !*cookie_asked && converters_forget_cookie(converter, number);
	switch (told->remedy) {
	case HANDSHAKE_REMEDY_NONE:
		break;
	case HANDSHAKE_REMEDY_COOKIE:
		if (*cookie_asked || !converters_learn_cookie(converter, told->cookie))
			break;
		*cookie_asked = true;
		return true;
	case HANDSHAKE_REMEDY_NO_OPTION:
		converters_note_no_mptcp(converter);
		*ask_mptcp = false;
		return true;
	case HANDSHAKE_REMEDY_NO_HOLD_TIME:
		converters_forget_hold_times(converter);
		return true;
	}
	return false;
}

void exchange_failed(int converter, const union sockaddr_ip *server, const struct handshake_step *why)
{
	switch (why->fault) {
	case HANDSHAKE_FAULT_NONE:
		break;
	case HANDSHAKE_FAULT_SERVER:
		if (why->rest)
			converters_refused(converter, server, why->rest);
		else
			converters_admitted(converter, server);
		break;
	case HANDSHAKE_FAULT_REFUSED:
		converters_refused(converter, server, why->rest);
		break;
	case HANDSHAKE_FAULT_CONVERTER:
	case HANDSHAKE_FAULT_PROTOCOL:
		converters_rest(converter, why->rest);
		break;
	}
}

struct handshake_step exchange_unanswered(int converter, const union sockaddr_ip *server, bool alive)
{
	converters_doubt(converter);
	if (alive) {
		converters_unanswered(converter, server);
		converters_admitted(converter, server); /* a converter sends refusals at once */
	}
	return handshake_on_silence(alive);
}
