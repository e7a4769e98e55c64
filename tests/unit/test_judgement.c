/* SPDX-License-Identifier: BSD-3-Clause */
/* test_judgement.c - a request is judged alike in a SYN and in a stream, but for what is told of the place */
#include "config.h"

#include "convertd/policy/judgement.h"

#include "convert/convert.h"
#include "daemon/log.h"
#include "convertd/config/convertd_settings.h"
#include "convertd/policy/cookies.h"

#include "bytes.h"
#include "run.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Port 80 of 8.8.8.8 or 8.8.8.255, base or with 4 or 8 bytes of options; an Info TLV. */
#define SERVER "0a05 0050 00*10 ffff 08080808 "
#define SERVER_4 "0a06 0050 00*10 ffff 08080808 "
#define OTHER "0a05 0050 00*10 ffff 080808ff "
#define INFO "0101 0000 "
#define CONNECT "0106 2263 " SERVER
#define COOKIE "1605 0000 00*16 "

#define CLIENT "198.51.100.7"
#define NO_ERROR (-1)

/* Unproven clients from which on cookies are demanded. */
#define UNPROVEN_MOST 2

/* The state before the request comes. */
enum {
	DEMANDED = 1 << 0, /* cookies are demanded */
	PROVEN = 1 << 1,   /* the client's address is proven: the third ACK has come */
	SPENT = 1 << 2,    /* the client has had all errors that it may have */
	CROWDED = 1 << 3,  /* it has so many sessions that none of them is told to come again */
	NO_ROUTE = 1 << 4, /* the kernel doesn't say where the server is */
	FULL = 1 << 5,     /* one of the client's requests is pending */
	WITHHELD = 1 << 6, /* so many SYNs are withheld as may be */
	SEND_BACK = 1 << 7, /* the server is this host, as its routes have it */
};

static const struct {
	const char *name;
	const char *words; /* of the command line */
	unsigned before;
	const char *request;
	enum request_action action;
	int error;         /* code of the Error TLV, or NO_ERROR */
	enum outcome exceeded;
	/* Where a SYN differs: what is said of it; else as above. */
	bool syn_differs;
	enum request_action syn_action;
	bool syn_passes; /* REQUEST_CONNECT, and the SYN is not to be withheld */
} cases[] = {
	/* the request */
	{ .name = "nothing", .request = "", .action = REQUEST_WAIT, .error = NO_ERROR },
	{ .name = "part of a request", .request = "0106 2263 0a05", .action = REQUEST_WAIT, .error = NO_ERROR },
	{ .name = "not Convert", .request = "4745 5420", .action = REQUEST_IGNORE, .error = NO_ERROR },
	{ .name = "Total Length 0", .request = "0100 2263", .action = REQUEST_RESET, .error = NO_ERROR },
	{ .name = "another version", .request = "0206 2263", .action = REQUEST_ANSWER,
	  .error = CONVERT_ERROR_UNSUPPORTED_VERSION },
	{ .name = "nothing asked for", .request = "0101 2263", .action = REQUEST_ANSWER,
	  .error = CONVERT_ERROR_MALFORMED_MESSAGE },
	{ .name = "information", .request = "0102 2263 " INFO, .action = REQUEST_ANSWER, .error = NO_ERROR },
	{ .name = "an unsupported option", .request = "0107 2263 " SERVER_4 "1302 0000", .action = REQUEST_ANSWER,
	  .error = CONVERT_ERROR_UNSUPPORTED_TCP_OPTION },
	{ .name = "Fast Open towards the server", .request = "0107 2263 " SERVER_4 "2202 0000", .action = REQUEST_ANSWER,
	  .error = CONVERT_ERROR_UNSUPPORTED_TCP_OPTION },
	{ .name = "a server", .request = CONNECT, .action = REQUEST_CONNECT, .error = NO_ERROR },
	{ .name = "a server, and data for it", .request = CONNECT "0102 03", .action = REQUEST_CONNECT, .error = NO_ERROR },

	/* a SYN+ACK can't say what these are told: their SYNs are not withheld */
	{ .name = "a server, and information", .request = "0107 2263 " INFO SERVER, .action = REQUEST_CONNECT,
	  .error = NO_ERROR, .syn_passes = true },

	/* who asks, and for what */
	{ .name = "a client that may", .words = "--allow-client " CLIENT, .request = CONNECT, .action = REQUEST_CONNECT,
	  .error = NO_ERROR },
	{ .name = "a client that may not", .words = "--allow-client 192.0.2.77", .request = CONNECT,
	  .action = REQUEST_ANSWER, .error = CONVERT_ERROR_NOT_AUTHORIZED },
	{ .name = "a client that may not: it isn't told what is supported either",
	  .words = "--deny-client " CLIENT, .request = "0102 2263 " INFO, .action = REQUEST_ANSWER,
	  .error = CONVERT_ERROR_NOT_AUTHORIZED },
	{ .name = "a client that may not, with bytes that are no request", .words = "--deny-client " CLIENT,
	  .request = "4745 5420", .action = REQUEST_IGNORE, .error = NO_ERROR },
	{ .name = "a server that may not be asked for", .words = "--deny-destination 8.8.8.0/24", .request = CONNECT,
	  .action = REQUEST_ANSWER, .error = CONVERT_ERROR_NOT_AUTHORIZED },
	{ .name = "this host, by its routes", .before = SEND_BACK, .request = CONNECT, .action = REQUEST_ANSWER,
	  .error = CONVERT_ERROR_NOT_AUTHORIZED },
	{ .name = "this host, which a NAT translates to it", .words = "--own-address 8.8.8.8", .request = CONNECT,
	  .action = REQUEST_ANSWER, .error = CONVERT_ERROR_NOT_AUTHORIZED },
	{ .name = "an address that other converters have as well", .words = "--shared-address 8.8.8.8",
	  .request = CONNECT, .action = REQUEST_ANSWER, .error = CONVERT_ERROR_NOT_AUTHORIZED },
	{ .name = "the kernel doesn't say where the server is", .before = NO_ROUTE, .request = CONNECT,
	  .action = REQUEST_ANSWER, .error = CONVERT_ERROR_RESOURCE_EXCEEDED },
	{ .name = "the broadcast address of a network", .request = "0106 2263 " OTHER, .action = REQUEST_ANSWER,
	  .error = CONVERT_ERROR_MALFORMED_MESSAGE },

	/* cookies: errors are told, and counted, in the stream alone */
	{ .name = "no cookie is demanded of whoever is proven", .before = DEMANDED | PROVEN, .request = CONNECT,
	  .action = REQUEST_CONNECT, .error = NO_ERROR, .syn_differs = true, .syn_action = REQUEST_ANSWER },
	{ .name = "a cookie is demanded", .before = DEMANDED, .request = CONNECT, .action = REQUEST_ANSWER,
	  .error = CONVERT_ERROR_MISSING_COOKIE },
	{ .name = "a cookie is demanded, and the client has had its errors", .before = DEMANDED | SPENT,
	  .request = CONNECT, .action = REQUEST_PROVE, .error = NO_ERROR, .syn_differs = true,
	  .syn_action = REQUEST_ANSWER },
	{ .name = "a cookie is demanded of many at one address", .before = DEMANDED | CROWDED, .request = CONNECT,
	  .action = REQUEST_PROVE, .error = NO_ERROR, .syn_differs = true, .syn_action = REQUEST_ANSWER },
	{ .name = "a cookie is demanded, and another converter's is there", .words = "--shared-address 203.0.113.1",
	  .before = DEMANDED, .request = "010b 2263 " SERVER COOKIE, .action = REQUEST_PROVE, .error = NO_ERROR },
	{ .name = "a cookie that nobody wants", .request = "010b 2263 " SERVER COOKIE, .action = REQUEST_CONNECT,
	  .error = NO_ERROR },

	/* room */
	{ .name = "one request too many", .words = "--max-pending-per-client 1", .before = FULL, .request = CONNECT,
	  .action = REQUEST_ANSWER, .error = CONVERT_ERROR_RESOURCE_EXCEEDED, .exceeded = OUTCOME_LIMIT_CLIENT_PENDING },
	{ .name = "information needs no room", .words = "--max-pending-per-client 1", .before = FULL,
	  .request = "0102 2263 " INFO, .action = REQUEST_ANSWER, .error = NO_ERROR },
	{ .name = "as many are withheld as may be", .words = "--max-pending 4", .before = WITHHELD, .request = CONNECT,
	  .action = REQUEST_CONNECT, .error = NO_ERROR, .syn_passes = true },
};

/* ----- a converter without I/O ----- */

static struct limits_member others[32]; /* of the same client */
static size_t other_count;
static struct limits_owner owner;
static struct convertd_settings *settings;
static struct request_features features;
static struct admission_rules rules;
static struct admission admission;
static enum route_kind route;

static enum route_kind find_route(void *arg, const struct in6_addr *address)
{
	(void)arg;
	return address->s6_addr[15] == 0xff ? ROUTE_BROADCAST : route;
}

static void on_wake(struct limits_owner *woken)
{
	(void)woken;
}

static struct in6_addr client_address(void)
{
	union sockaddr_ip address;

	ck_assert_int_eq(sockaddr_ip_parse(&address, CLIENT, 1), 0);
	return sockaddr_ip_in6(&address);
}

/* One more session or SYN of the client. */
static void add_other(enum limits_class class)
{
	struct limits_member *member = &others[other_count++];
	struct in6_addr address = client_address();

	*member = (struct limits_member){ .owner = &owner };
	ck_assert_int_eq(limits_enter(admission.limits, member, &address, class), 0);
}

static void set_before(unsigned before)
{
	struct demand_settings demand = { .most = UNPROVEN_MOST, .lifetime = 3600,
					  .shared = settings->shared_address };

	demand_configure(admission.demand, &demand);
	for (int i = 0; before & DEMANDED && i < UNPROVEN_MOST; i++) {
		demand_enter(admission.demand);
		add_other(LIMITS_PENDING);
	}
	for (int i = 0; before & CROWDED && i < 16; i++)
		add_other(LIMITS_OPEN);
	if (before & FULL)
		add_other(LIMITS_PENDING);
	if (before & WITHHELD)
		add_other(LIMITS_WITHHELD);
	route = before & NO_ROUTE ? ROUTE_UNKNOWN : before & SEND_BACK ? ROUTE_OWN : ROUTE_ELSEWHERE;
}

static void begin(const char *words, unsigned before)
{
	static char copy[256];
	char *argv[16] = { (char *)"convertd" };
	struct problems problems = { 0 };
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", words ? words : "");
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	settings = convertd_settings_read(argc, argv, &problems);
	ck_assert_msg(settings && !problems.count, "%s", problems.first);
	log_set_level(LOG_LEVEL_ERROR);
	owner.wake = on_wake;
	features = (struct request_features){ .mptcp = true };
	rules = (struct admission_rules){
		.number = 7, .features = &features, .access = &settings->access, .cookies = settings->cookies,
		.cookie_lifetime = settings->cookie_lifetime, .retry_delay = 3,
	};
	admission = (struct admission){ .rules = &rules, .demand = demand_create(), .limits = limits_create(),
					.find_route = find_route };
	limits_configure(admission.limits, &settings->limits);
	set_before(before);
}

static void end(void)
{
	while (other_count)
		limits_leave(admission.limits, &others[--other_count], 0);
	ck_assert_uint_eq(limits_members(admission.limits), 0);
	limits_destroy(admission.limits);
	demand_destroy(admission.demand);
	convertd_settings_destroy(settings);
}

/* Judges @request, which is to be freed once the judgement isn't looked at any more. */
static void judge(enum judgement_place place, const struct bytes *request, bool proven, struct limits_member *member,
		  const struct judgement_grant *grant, struct request_decision *decision)
{
	const struct judgement_case c = {
		.place = place, .bytes = request->data, .len = request->len, .now_ms = 1000000,
		.client = { .address = client_address(), .proven = proven }, .member = member, .grant = grant,
	};

	memset(decision, 0xa5, sizeof(*decision));
	judgement_make(&admission, &c, decision);
}

static int error_of(const struct request_decision *decision)
{
	struct convert_response response;

	if (decision->verdict.action != REQUEST_ANSWER ||
	    convert_response_parse(decision->answer, decision->answer_len, &response) != CONVERT_STATUS_OK || !response.has_error)
		return NO_ERROR;
	return response.error_code;
}

/* A session that has been accepted, whose client may have had all of its errors already. */
static void judge_stream(const struct bytes *request, unsigned before, struct request_decision *decision)
{
	struct limits_member member = { .owner = &owner };
	struct in6_addr address = client_address();

	ck_assert_int_eq(limits_enter(admission.limits, &member, &address, LIMITS_PENDING), 0);
	while (before & SPENT && limits_take_error(admission.limits, &member, 1000000))
		;
	judge(JUDGEMENT_STREAM, request, before & PROVEN, &member, NULL, decision);
	limits_leave(admission.limits, &member, 1000000);
}

START_TEST(in_a_stream)
{
	struct bytes request = bytes_hex(cases[_i].request);
	const char *name = cases[_i].name;
	struct request_decision decision;

	begin(cases[_i].words, cases[_i].before);
	judge_stream(&request, cases[_i].before, &decision);
	ck_assert_msg(decision.verdict.action == cases[_i].action, "%s: action %d", name, decision.verdict.action);
	ck_assert_msg(error_of(&decision) == cases[_i].error, "%s: error %d", name, error_of(&decision));
	ck_assert_msg(decision.verdict.exceeded == cases[_i].exceeded, "%s: %s", name, outcome_text(decision.verdict.exceeded));
	ck_assert_msg(decision.verdict.error_taken == (cases[_i].error == CONVERT_ERROR_MISSING_COOKIE), "%s", name);
	ck_assert_msg(!decision.verdict.by_grant && !decision.verdict.withhold, "%s", name);
	end();
	bytes_fini(&request);
}
END_TEST

/* A SYN is judged by the rules for the stream, and takes a place only if it is withheld. */
START_TEST(in_a_syn)
{
	enum request_action action = cases[_i].syn_differs ? cases[_i].syn_action : cases[_i].action;
	bool withhold = action == REQUEST_CONNECT && !cases[_i].syn_passes;
	struct bytes request = bytes_hex(cases[_i].request);
	struct limits_member member = { .owner = &owner };
	const char *name = cases[_i].name;
	struct request_decision decision;

	begin(cases[_i].words, cases[_i].before);
	judge(JUDGEMENT_SYN, &request, false, &member, NULL, &decision);
	ck_assert_msg(decision.verdict.action == action, "%s: action %d", name, decision.verdict.action);
	if (!cases[_i].syn_differs)
		ck_assert_msg(error_of(&decision) == cases[_i].error, "%s: error %d", name,
			      error_of(&decision));
	ck_assert_msg(decision.verdict.exceeded == cases[_i].exceeded, "%s: %s", name, outcome_text(decision.verdict.exceeded));
	ck_assert_msg(decision.verdict.withhold == withhold, "%s", name);
	ck_assert_msg(!decision.verdict.by_grant && !decision.verdict.error_taken, "%s", name);
	ck_assert_uint_eq(limits_members(admission.limits), other_count + withhold);
	if (withhold)
		limits_leave(admission.limits, &member, 1000000);
	end();
	bytes_fini(&request);
}
END_TEST

/* What is withheld has its room, and was granted without a cookie: all else is judged as ever. */
START_TEST(while_withheld)
{
	enum request_action action = cases[_i].action;
	struct bytes request = bytes_hex(cases[_i].request);
	struct request_decision decision;

	if (cases[_i].before & DEMANDED || cases[_i].exceeded != OUTCOME_NONE)
		action = REQUEST_CONNECT;
	begin(cases[_i].words, cases[_i].before);
	judge(JUDGEMENT_WITHHELD, &request, false, NULL, NULL, &decision);
	ck_assert_msg(decision.verdict.action == action, "%s: action %d", cases[_i].name, decision.verdict.action);
	ck_assert_msg(!decision.verdict.withhold && !decision.verdict.error_taken && !decision.verdict.by_grant, "%s", cases[_i].name);
	ck_assert_uint_eq(limits_members(admission.limits), other_count);
	end();
	bytes_fini(&request);
}
END_TEST

/* ----- what a SYN was granted holds for its connection ----- */

static struct judgement_grant grant_of(unsigned number, const char *server, bool mptcp)
{
	struct judgement_grant grant = { .settings_number = number, .mptcp = mptcp };

	ck_assert_int_eq(sockaddr_ip_parse(&grant.server, server, 1), 0);
	return grant;
}

/* Judges a request with that grant, while cookies are demanded and other requests of the client are pending. */
static void judge_granted(const char *words, const char *hex, const struct judgement_grant *grant,
			  struct request_decision *decision)
{
	struct limits_member member = { .owner = &owner };
	struct in6_addr address = client_address();
	struct bytes request = bytes_hex(hex);

	begin(words, FULL | DEMANDED);
	ck_assert_int_eq(limits_enter(admission.limits, &member, &address, LIMITS_PENDING), 0);
	judge(JUDGEMENT_STREAM, &request, false, &member, grant, decision);
	limits_leave(admission.limits, &member, 1000000);
	end();
	bytes_fini(&request);
}

START_TEST(granted_by_these_rules)
{
	struct judgement_grant grant = grant_of(7, "8.8.8.8:80", false);
	struct request_decision decision;

	/* It isn't looked at again, as the rules can't have changed. */
	judge_granted("--max-pending-per-client 1 --deny-client " CLIENT, CONNECT, &grant, &decision);
	ck_assert(decision.verdict.by_grant && decision.verdict.action == REQUEST_CONNECT);
}
END_TEST

START_TEST(granted_by_other_rules)
{
	struct judgement_grant grant = grant_of(6, "8.8.8.8:80", false);
	struct request_decision decision;

	judge_granted("--max-pending-per-client 1", CONNECT, &grant, &decision);
	ck_assert(decision.verdict.by_grant && decision.verdict.action == REQUEST_CONNECT);
	judge_granted("--max-pending-per-client 1 --deny-client " CLIENT, CONNECT, &grant, &decision);
	ck_assert(!decision.verdict.by_grant);
	ck_assert_int_eq(error_of(&decision), CONVERT_ERROR_NOT_AUTHORIZED);
}
END_TEST

/* Another server, another kind of connection, no connection at all: it is judged as if nothing had been granted. */
START_TEST(granted_something_else)
{
	struct judgement_grant port = grant_of(7, "8.8.8.8:81", false);
	struct judgement_grant address = grant_of(7, "8.8.8.9:80", false);
	struct judgement_grant mptcp = grant_of(7, "8.8.8.8:80", true);
	const struct judgement_grant *grants[] = { &port, &address, &mptcp };
	struct request_decision decision;

	for (size_t i = 0; i < ARRAY_SIZE(grants); i++) {
		judge_granted(NULL, CONNECT, grants[i], &decision);
		ck_assert(!decision.verdict.by_grant);
		ck_assert_int_eq(error_of(&decision), CONVERT_ERROR_MISSING_COOKIE);
	}
	judge_granted(NULL, "4745 5420", &address, &decision);
	ck_assert(!decision.verdict.by_grant && decision.verdict.action == REQUEST_IGNORE);
	judge_granted(NULL, "0107 2263 " SERVER_4 "1e02 0000", &mptcp, &decision);
	ck_assert(decision.verdict.by_grant);
}
END_TEST

/* An incomplete request can't be compared with the grant: the converter waits for the rest. */
START_TEST(granted_and_incomplete)
{
	struct judgement_grant grant = grant_of(7, "8.8.8.8:80", false);
	struct request_decision decision;

	judge_granted(NULL, "0106 2263 0a05", &grant, &decision);
	ck_assert(!decision.verdict.by_grant && decision.verdict.action == REQUEST_WAIT);
}
END_TEST

/* A cookie that was computed for the client proves its address, wherever it comes. */
START_TEST(cookie_of_ours)
{
	struct in6_addr address = client_address();
	struct bytes connect = bytes_hex("010b 2263 " SERVER COOKIE);
	struct limits_member member = { .owner = &owner };
	struct request_decision decision;

	begin(NULL, DEMANDED);
	ck_assert(demand_make(admission.demand, &address, NULL, 0, connect.data + connect.len - COOKIES_LEN));
	judge_stream(&connect, 0, &decision);
	ck_assert(decision.verdict.action == REQUEST_CONNECT && decision.verdict.proven);
	judge(JUDGEMENT_SYN, &connect, false, &member, NULL, &decision);
	ck_assert(decision.verdict.action == REQUEST_CONNECT && decision.verdict.proven && decision.verdict.withhold);
	limits_leave(admission.limits, &member, 1000000);
	end();
	bytes_fini(&connect);
}
END_TEST

/* ----- how a silent client hears of it ----- */

#define SILENCE "f202 0100 0000 6c63 "
#define BLIND "f202 0101 0000 6c63 "
#define SILENCE_MPTCP "f202 0102 0000 6c63 "
#define BLIND_MPTCP "f202 0103 0000 6c63 "

static const struct {
	const char *name, *request;
	bool mptcp; /* the client's connection, or SYN */
	enum judgement_reply confirmed, unconfirmed, syn;
} replies[] = {
	{ "an ordinary request", CONNECT, true, JUDGEMENT_RESPONSE, JUDGEMENT_RESPONSE, JUDGEMENT_RESPONSE },
	{ "silent", "0108 6c63 " SILENCE SERVER, false, JUDGEMENT_SILENT, JUDGEMENT_RESPONSE, JUDGEMENT_SILENT },
	{ "blind", "0108 6c63 " BLIND SERVER, true, JUDGEMENT_SILENT, JUDGEMENT_RESET, JUDGEMENT_SILENT },
	{ "silent, MPTCP", "0108 6c63 " SILENCE_MPTCP SERVER, true, JUDGEMENT_SILENT, JUDGEMENT_RESPONSE, JUDGEMENT_SILENT },
	{ "blind, MPTCP", "0108 6c63 " BLIND_MPTCP SERVER, true, JUDGEMENT_SILENT, JUDGEMENT_RESET, JUDGEMENT_SILENT },
	{ "silent, MPTCP lost", "0108 6c63 " SILENCE_MPTCP SERVER, false, JUDGEMENT_RESET, JUDGEMENT_RESPONSE, JUDGEMENT_RESPONSE },
	{ "blind, MPTCP lost", "0108 6c63 " BLIND_MPTCP SERVER, false, JUDGEMENT_RESET, JUDGEMENT_RESET, JUDGEMENT_RESET },
};

START_TEST(reply)
{
	struct bytes request = bytes_hex(replies[_i].request);
	struct limits_member member = { .owner = &owner };
	struct in6_addr address = client_address();
	struct request_decision decision;
	struct judgement_case c = {
		.place = JUDGEMENT_STREAM, .bytes = request.data, .len = request.len, .now_ms = 1000000,
		.client = { .address = address, .proven = true }, .member = &member, .mptcp = replies[_i].mptcp,
	};

	begin(NULL, 0);
	features.withholding = (struct convert_withholding){ .withheld = true, .silent = true, .blind = true };
	ck_assert_int_eq(limits_enter(admission.limits, &member, &address, LIMITS_PENDING), 0);
	for (int confirmed = 0; confirmed < 2; confirmed++) {
		c.confirmed = confirmed;
		judgement_make(&admission, &c, &decision);
		ck_assert_int_eq(decision.verdict.action, REQUEST_CONNECT);
		ck_assert_msg(decision.verdict.reply == (confirmed ? replies[_i].confirmed : replies[_i].unconfirmed), "%s", replies[_i].name);
	}
	limits_leave(admission.limits, &member, 1000000);
	c.place = JUDGEMENT_SYN;
	judgement_make(&admission, &c, &decision);
	ck_assert_msg(decision.verdict.reply == replies[_i].syn, "%s", replies[_i].name);
	/* What isn't to be silent isn't withheld: nothing may confirm it. */
	ck_assert_msg(decision.verdict.withhold == (!decision.verdict.silent || decision.verdict.reply == JUDGEMENT_SILENT), "%s",
		      replies[_i].name);
	if (decision.verdict.withhold)
		limits_leave(admission.limits, &member, 1000000);
	end();
	bytes_fini(&request);
}
END_TEST

/* A SYN that wasn't withheld has been answered: a blind client has a connection, and is served once it has proved its address. */
static const struct {
	const char *request;
	bool mptcp, proven, confirmed, syn_data, demanded;
	enum judgement_reply reply;
	enum request_action action;
} connected[] = {
	{ "0108 6c63 " BLIND SERVER, false, false, false, true, false, JUDGEMENT_SILENT, REQUEST_PROVE },
	{ "0108 6c63 " BLIND SERVER, false, false, false, true, true, JUDGEMENT_SILENT, REQUEST_PROVE },
	{ "0108 6c63 " BLIND SERVER, false, true, false, true, true, JUDGEMENT_SILENT, REQUEST_CONNECT },
	{ "0108 6c63 " BLIND_MPTCP SERVER, true, false, false, true, true, JUDGEMENT_SILENT, REQUEST_PROVE },
	{ "0108 6c63 " BLIND_MPTCP SERVER, true, true, false, true, false, JUDGEMENT_SILENT, REQUEST_CONNECT },
	{ "0108 6c63 " BLIND_MPTCP SERVER, false, true, false, true, false, JUDGEMENT_RESET, REQUEST_CONNECT },
	/* confirmed, or behind the handshake */
	{ "0108 6c63 " BLIND SERVER, false, false, true, true, false, JUDGEMENT_SILENT, REQUEST_CONNECT },
	{ "0108 6c63 " BLIND SERVER, false, true, false, false, false, JUDGEMENT_RESET, REQUEST_CONNECT },
	/* a client that isn't blind has a response */
	{ "0108 6c63 " SILENCE SERVER, false, false, false, true, true, JUDGEMENT_RESPONSE, REQUEST_ANSWER },
	{ CONNECT, false, false, false, true, true, JUDGEMENT_RESPONSE, REQUEST_ANSWER },
};

START_TEST(connected_blindly)
{
	struct bytes request = bytes_hex(connected[_i].request);
	struct limits_member member = { .owner = &owner };
	struct in6_addr address = client_address();
	struct request_decision decision;
	const struct judgement_case c = {
		.place = JUDGEMENT_STREAM, .bytes = request.data, .len = request.len, .now_ms = 1000000,
		.client = { .address = address, .proven = connected[_i].proven }, .member = &member, .mptcp = connected[_i].mptcp,
		.confirmed = connected[_i].confirmed, .syn_data = connected[_i].syn_data,
	};

	begin(NULL, connected[_i].demanded ? DEMANDED : 0);
	features.withholding = (struct convert_withholding){ .withheld = true, .silent = true, .blind = true };
	ck_assert_int_eq(limits_enter(admission.limits, &member, &address, LIMITS_PENDING), 0);
	judgement_make(&admission, &c, &decision);
	ck_assert_int_eq(decision.verdict.reply, connected[_i].reply);
	ck_assert_int_eq(decision.verdict.action, connected[_i].action);
	limits_leave(admission.limits, &member, 1000000);
	end();
	bytes_fini(&request);
}
END_TEST

/* Several SYNs of one connection's addresses were granted: the one of this request counts. */
START_TEST(grant_of_several)
{
	struct bytes request = bytes_hex(CONNECT);
	struct limits_member member = { .owner = &owner };
	struct in6_addr address = client_address();
	struct request_decision decision;
	struct judgement_grant forged, own;
	struct judgement_case c = {
		.place = JUDGEMENT_STREAM, .bytes = request.data, .len = request.len, .now_ms = 1000000,
		.client = { .address = address }, .member = &member, .grant = &forged,
	};

	begin(NULL, 0);
	own = forged = (struct judgement_grant){ .settings_number = admission.rules->number };
	ck_assert_int_eq(sockaddr_ip_parse(&own.server, "8.8.8.8", 80), 0);
	ck_assert_int_eq(sockaddr_ip_parse(&forged.server, "8.8.8.8", 81), 0);
	forged.next = &own;
	ck_assert_int_eq(limits_enter(admission.limits, &member, &address, LIMITS_PENDING), 0);
	judgement_make(&admission, &c, &decision);
	ck_assert(decision.verdict.by_grant);
	ck_assert_ptr_eq(decision.verdict.grant, &own);
	c.grant = NULL;
	judgement_make(&admission, &c, &decision);
	ck_assert(!decision.verdict.by_grant);
	ck_assert_ptr_null(decision.verdict.grant);
	limits_leave(admission.limits, &member, 1000000);
	end();
	bytes_fini(&request);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("judgement");
	TCase *tcase = tcase_create("judgement");

	tcase_add_loop_test(tcase, in_a_stream, 0, ARRAY_SIZE(cases));
	tcase_add_loop_test(tcase, in_a_syn, 0, ARRAY_SIZE(cases));
	tcase_add_loop_test(tcase, while_withheld, 0, ARRAY_SIZE(cases));
	tcase_add_test(tcase, granted_by_these_rules);
	tcase_add_test(tcase, granted_by_other_rules);
	tcase_add_test(tcase, granted_something_else);
	tcase_add_test(tcase, granted_and_incomplete);
	tcase_add_test(tcase, cookie_of_ours);
	tcase_add_loop_test(tcase, reply, 0, ARRAY_SIZE(replies));
	tcase_add_loop_test(tcase, connected_blindly, 0, ARRAY_SIZE(connected));
	tcase_add_test(tcase, grant_of_several);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
