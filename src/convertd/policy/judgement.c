/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judgement.c - decides what the converter does with a request; no other place does (no I/O)
 *
 * The problem. A request comes in a SYN that is withheld until its server has answered, in the SYN of a connection
 * that the kernel has accepted, or behind one. In all three cases the client has the same rights. But we don't know
 * yet who has sent a SYN, and can't answer it. So a SYN is treated differently:
 *
 * - We count an error when we send it. A SYN gets no answer: its connection is judged again, and answered.
 * - A connection is counted when we accept it. A withheld SYN is counted when it is judged, among the withheld SYNs
 *   and among the pending requests.
 * - A grant to a SYN holds for its connection if that asks for the same server. The connection needs no further room,
 *   no cookie, and under the same rules no second check.
 *
 * A silent request is judged like any other. How its client learns the result is a separate decision, which rests on
 * facts that both ends see (reply_of()).
 *
 * This file has no state. limits.c and cookies.c count; the verdict says whether the caller has to give counted room
 * back.
 */
#include "config.h"

#include "convertd/policy/judgement.h"

#include "common/clock.h"
#include "convertd/policy/cookies.h"
#include "convertd/policy/families.h"

#include <time.h>

/*
 * ----- the decision about a valid request -----
 *
 * The first failed check decides. A client that may not use the converter learns nothing else: neither what the
 * converter supports, nor what is wrong with the options or the server of its request.
 */

static enum access_verdict judge_destination(const struct admission *admission, const union sockaddr_ip *server, const char **reason)
{
	const struct in6_addr address = sockaddr_ip_in6(server);

	return access_destination(admission->rules->access, &address, sockaddr_ip_port(server), admission->find_route, admission->route,
				  reason);
}

bool admission_still_allows(const struct admission *admission, const union sockaddr_ip *server)
{
	const char *reason;

	/* If the kernel can't tell now, the earlier check stands. */
	switch (judge_destination(admission, server, &reason)) {
	case ACCESS_ALLOWED:
	case ACCESS_UNKNOWN:
		return true;
	case ACCESS_DENIED:
	case ACCESS_BROADCAST:
		break;
	}
	return false;
}

/* Refuses a server of a family that doesn't work here: the client does better to connect directly. */
static void check_family(const struct request_features *features, struct request_decision *decision)
{
	const struct in6_addr address = sockaddr_ip_in6(&decision->verdict.server);

	if (!families_refuse(&address, clock_now_ms()))
		return;
	request_refuse(features, decision->verdict.responds, CONVERT_ERROR_NOT_AUTHORIZED, 0,
		       IN6_IS_ADDR_V4MAPPED(&address) ? "IPv4 doesn't work here" : "IPv6 doesn't work here", decision);
	decision->verdict.no_way_here = true;
}

static void check_destination(const struct admission *admission, const uint8_t *message,
			      struct request_decision *decision)
{
	const struct request_features *features = admission->rules->features;
	const char *reason = NULL;

	switch (judge_destination(admission, &decision->verdict.server, &reason)) {
	case ACCESS_ALLOWED:
		check_family(features, decision);
		return;
	case ACCESS_DENIED:
		request_refuse(features, decision->verdict.responds, CONVERT_ERROR_NOT_AUTHORIZED, 0, reason,
			       decision);
		return;
	case ACCESS_BROADCAST:
		request_refuse_malformed(message, reason, decision);
		return;
	case ACCESS_UNKNOWN:
		request_refuse(features, decision->verdict.responds, CONVERT_ERROR_RESOURCE_EXCEEDED,
			       admission->rules->retry_delay, reason, decision);
		return;
	}
}

/* Section 6.2.7, where all clients need a cookie. Returns false if it has refused the request. */
static bool check_required(const struct admission_rules *rules, const struct in6_addr *client,
			   struct request_decision *decision)
{
	uint64_t epoch = (uint64_t)time(NULL) / rules->cookie_lifetime;
	const struct convert_span *cookie = &decision->cookie;
	uint8_t computed[COOKIES_LEN];

	if (decision->has_cookie)
		decision->verdict.proven = cookies_prove(rules->cookies, client, epoch, cookie->data, cookie->len);
	if (decision->verdict.proven ||
	    (decision->has_cookie && cookies_check(rules->cookies, client, epoch, cookie->data, cookie->len)))
		return true;
	if (decision->has_cookie)
		request_refuse(rules->features, false, CONVERT_ERROR_NOT_AUTHORIZED, 0, "invalid cookie",
			       decision);
	else if (cookies_make(rules->cookies, client, epoch, computed))
		request_refuse_cookie(computed, sizeof(computed), "missing cookie", decision);
	else
		request_refuse(rules->features, false, CONVERT_ERROR_NOT_AUTHORIZED, 0, "missing cookie",
			       decision);
	return false;
}

/* Refuses a request without the cookie that is demanded for now (cookies.h), or makes the client prove its address. */
static void demand_cookie(const struct admission *admission, const struct in6_addr *client,
			  struct request_decision *decision)
{
	const uint8_t *cookie = decision->has_cookie ? decision->cookie.data : NULL;
	uint8_t computed[COOKIES_LEN];

	/* A request has room for one cookie, and here that is the fixed one. */
	if (admission->rules->cookies ||
	    !demand_make(admission->demand, client, cookie, decision->cookie.len, computed)) {
		decision->verdict.action = REQUEST_PROVE;
		return;
	}
	request_refuse_cookie(computed, sizeof(computed), "missing cookie", decision);
	decision->verdict.demanded = true;
}

/* Returns false if it has refused the request, or if the client has to prove its address first. */
static bool check_cookie(const struct admission *admission, const struct judgement_client *client,
			 struct request_decision *decision)
{
	const struct admission_rules *rules = admission->rules;

	if (rules->cookies && !check_required(rules, &client->address, decision))
		return false;
	if (!rules->cookies && decision->has_cookie)
		decision->verdict.proven = demand_check(admission->demand, &client->address, decision->cookie.data,
						decision->cookie.len);
	if (client->proven || decision->verdict.proven ||
	    !demand_is_for(admission->demand, admission->limits, &client->address))
		return true;
	demand_cookie(admission, &client->address, decision);
	return false;
}

/*
 * Decides whether a valid request is granted. If not, @decision becomes REQUEST_ANSWER or REQUEST_PROVE.
 * @message: the request
 */
static void check_admission(const struct admission *admission, const struct judgement_client *client, const uint8_t *message,
			    struct request_decision *decision)
{
	const struct admission_rules *rules = admission->rules;

	if (!access_client(rules->access, &client->address)) {
		request_refuse(rules->features, false, CONVERT_ERROR_NOT_AUTHORIZED, 0, "client denied",
			       decision);
		return;
	}
	if (check_cookie(admission, client, decision) && decision->verdict.server.sa.sa_family)
		check_destination(admission, message, decision);
}

/* ----- the judgement: grants, room, and how the client learns the result ----- */

/* A client with this many sessions is many users behind one address, or a program that needs them. */
#define CROWD 16

/* Returns the grant for this request, or NULL. */
static const struct judgement_grant *find_grant(const struct judgement_case *c, const struct serve_verdict *verdict)
{
	const struct judgement_grant *grant = verdict->action == REQUEST_CONNECT ? c->grant : NULL;

	while (grant && (grant->mptcp != verdict->mptcp || !sockaddr_ip_equal(&grant->server, &verdict->server)))
		grant = grant->next;
	return grant;
}

/*
 * Tells whether we may tell the client that a cookie is demanded. Errors are so few that a flood could use up all of
 * them. A client that gets no error proves its address by its handshake, and is served. This also serves the many
 * connections that come from one address at once: with an error, each of them would have to come again.
 */
static bool may_demand(const struct admission *admission, const struct judgement_case *c)
{
	return limits_members_of(admission->limits, c->member) < CROWD && demand_take_error(admission->demand) &&
	       limits_take_error(admission->limits, c->member, c->now_ms);
}

static void demand_or_prove(const struct admission *admission, const struct judgement_case *c, struct serve_verdict *verdict)
{
	verdict->error_taken = may_demand(admission, c);
	if (!verdict->error_taken)
		verdict->action = REQUEST_PROVE;
}

static void refuse_exceeding(const struct admission *admission, enum outcome exceeded, struct request_decision *decision)
{
	decision->verdict.exceeded = exceeded;
	request_refuse(admission->rules->features, decision->verdict.responds, CONVERT_ERROR_RESOURCE_EXCEEDED,
		       admission->rules->retry_delay, outcome_text(exceeded), decision);
}

/* Counts a session, which was counted when it was accepted, among the pending requests. */
static void find_room(const struct admission *admission, const struct judgement_case *c, struct request_decision *decision)
{
	enum outcome exceeded;

	limits_move(admission->limits, c->member, LIMITS_PENDING);
	exceeded = limits_admit(admission->limits, c->member);
	if (exceeded != OUTCOME_NONE)
		refuse_exceeding(admission, exceeded, decision);
}

/*
 * Counts a SYN among the withheld ones and among the pending requests. If the client also asks what the converter
 * supports, we don't withhold its SYN: it learns that from the response, so that a confirmation by the SYN+ACK is of
 * no use to it.
 */
static void find_room_for_syn(const struct admission *admission, const struct judgement_case *c,
			      struct request_decision *decision)
{
	struct serve_verdict *verdict = &decision->verdict;
	enum outcome exceeded = OUTCOME_NONE;

	if (verdict->responds || (verdict->silent && verdict->reply != JUDGEMENT_SILENT) ||
	    limits_enter(admission->limits, c->member, &c->client.address, LIMITS_WITHHELD) < 0)
		return;
	verdict->withhold = limits_may_withhold(admission->limits, c->member);
	if (verdict->withhold)
		exceeded = limits_admit(admission->limits, c->member);
	if (exceeded != OUTCOME_NONE)
		refuse_exceeding(admission, exceeded, decision);
	verdict->withhold = verdict->withhold && exceeded == OUTCOME_NONE;
	if (!verdict->withhold)
		limits_leave(admission->limits, c->member, c->now_ms);
}

/*
 * Tells whether a blind client is connected by a SYN+ACK that has acknowledged its request without confirming it. Its
 * SYN wasn't withheld, for want of a cookie or of room, or because convertd didn't see it. Its program takes the
 * connection for established, so a reset would cost it a connection that it can have: we serve it in silence once it
 * has proved its address.
 */
static bool is_connected_blindly(const struct judgement_case *c, const struct serve_verdict *verdict)
{
	return verdict->blind && c->place == JUDGEMENT_STREAM && c->syn_data && !c->confirmed && (c->mptcp || !verdict->needs_mptcp);
}

/*
 * Returns how the client learns the result. We never serve a client in silence that wants Multipath TCP and hasn't
 * got it: such a client doesn't check for bytes that its kernel may lose then. If a response can still reach it, it
 * gets one.
 */
static enum judgement_reply reply_of(const struct judgement_case *c, const struct serve_verdict *verdict)
{
	bool confirmed = c->place != JUDGEMENT_STREAM || c->confirmed;

	if (!verdict->silent)
		return JUDGEMENT_RESPONSE;
	if (confirmed && (c->mptcp || !verdict->needs_mptcp))
		return JUDGEMENT_SILENT;
	if (is_connected_blindly(c, verdict))
		return JUDGEMENT_SILENT;
	/* The client takes this connection for a silent one, so it would take a response for the server's bytes. */
	if (verdict->blind || (c->place == JUDGEMENT_STREAM && c->confirmed))
		return JUDGEMENT_RESET;
	return JUDGEMENT_RESPONSE;
}

void judgement_make(const struct admission *admission, const struct judgement_case *c, struct request_decision *decision)
{
	struct serve_verdict *verdict = &decision->verdict;
	struct judgement_client client = c->client;
	bool granted;

	request_decide(admission->rules->features, c->bytes, c->len, decision);
	verdict->reply = reply_of(c, verdict);
	verdict->grant = find_grant(c, verdict);
	granted = verdict->grant != NULL;
	verdict->by_grant = granted && verdict->grant->settings_number == admission->rules->number;
	if (verdict->by_grant)
		return;
	/* A request that was granted while its SYN was withheld needs no cookie now. */
	client.proven |= granted || c->place == JUDGEMENT_WITHHELD;
	if (decision->valid)
		check_admission(admission, &client, c->bytes, decision);
	/* A grant by other rules holds only if these rules grant the request, too. */
	verdict->by_grant = granted && verdict->action == REQUEST_CONNECT;
	if (verdict->by_grant || c->place == JUDGEMENT_WITHHELD)
		return;
	if (is_connected_blindly(c, verdict) && !client.proven && !verdict->proven &&
	    (verdict->demanded || verdict->action == REQUEST_CONNECT))
		verdict->action = REQUEST_PROVE;
	else if (c->place == JUDGEMENT_STREAM && verdict->demanded)
		demand_or_prove(admission, c, verdict);
	else if (c->place == JUDGEMENT_STREAM && verdict->action == REQUEST_CONNECT)
		find_room(admission, c, decision);
	else if (verdict->action == REQUEST_CONNECT)
		find_room_for_syn(admission, c, decision);
}
