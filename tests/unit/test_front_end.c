/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_front_end.c - a front end that has nothing of src/shim: libclient, libcodec and libcommon are all that it links
 *
 * Its connections are function calls: a converter is a function that reads a request and writes a response. All else is
 * what any front end goes through: policy, the choice of a converter, request, response, and what is learned of both sides,
 * in the user's cache as well.
 */
#include "config.h"

#include "client/cache.h"
#include "client/client_log.h"
#include "client/converters.h"
#include "client/exchange.h"
#include "common/clock.h"
#include "convert/convert.h"

#include "run.h"
#include "tempdir.h"

#include <check.h>
#include <errno.h>
#include <linux/tcp.h>
#include <stdarg.h>
#include <sys/wait.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define REQUESTS_MAX 8
#define MS INT64_C(1000000)

static char directory[PATH_MAX];
static const char *cache_setting, *fallback;
static struct settings settings;
static char logged[256];

/* --- converters --- */

/* Writes the response to @request, or nothing: the converter is silent. */
typedef void converter(const struct convert_request *request, struct convert_writer *response);

static converter *converters[2];
static struct asked {
	int index;
	struct convert_request request;
	char cookie[16]; /* with its padding */
} asked[REQUESTS_MAX];
static size_t asked_count;

static void serves(const struct convert_request *request, struct convert_writer *response)
{
	static const struct convert_withholding withholding = { .withheld = true, .limit_ms = 700 };
	static const uint8_t kinds[] = { 30 };

	if (request->has_info) {
		convert_write_supported(response, kinds, sizeof(kinds));
		convert_write_withholding(response, &withholding);
	}
	convert_write_tcp_header(response, NULL, 0);
}

static void serves_mptcp_server(const struct convert_request *request, struct convert_writer *response)
{
	static const uint8_t options[] = { 30, 4, 0, 0 };

	(void)request;
	convert_write_tcp_header(response, options, sizeof(options));
}

/* Takes silent requests, and answers them as if the SYN had come without its data. */
static void offers_silence(const struct convert_request *request, struct convert_writer *response)
{
	static const struct convert_withholding withholding = { .withheld = true, .limit_ms = 700, .silent = true, .blind = true };
	static const uint8_t kinds[] = { 30 };

	if (request->has_info) {
		convert_write_supported(response, kinds, sizeof(kinds));
		convert_write_withholding(response, &withholding);
	}
	convert_write_tcp_header(response, NULL, 0);
}

/* Withholds SYNs, for as long as their clients want it. */
static void offers_hold_times(const struct convert_request *request, struct convert_writer *response)
{
	static const struct convert_withholding withholding = { .withheld = true, .limit_ms = 700, .hold_times = true };
	static const uint8_t kinds[] = { 30 };

	if (request->has_info) {
		convert_write_supported(response, kinds, sizeof(kinds));
		convert_write_withholding(response, &withholding);
	}
	convert_write_tcp_header(response, NULL, 0);
}

/* An older version of it. */
static void knows_no_hold_times(const struct convert_request *request, struct convert_writer *response)
{
	if (request->has_hold_time)
		convert_write_error_echo(response, CONVERT_ERROR_UNSUPPORTED_MESSAGE, NULL, 0);
	else
		serves(request, response);
}

/* What stands at the address by now: a server of another protocol. */
static void knows_no_silence(const struct convert_request *request, struct convert_writer *response)
{
	if (request->has_silence)
		convert_write_info(response); /* which isn't what a converter says */
	else
		serves(request, response);
}

static void wants_cookie(const struct convert_request *request, struct convert_writer *response)
{
	if (request->has_cookie)
		serves(request, response);
	else
		convert_write_error_cookie(response, (const uint8_t *)"biscuit", 7);
}

static void refuses(const struct convert_request *request, struct convert_writer *response)
{
	(void)request;
	convert_write_error(response, CONVERT_ERROR_NOT_AUTHORIZED, 0);
}

static void finds_server_closed(const struct convert_request *request, struct convert_writer *response)
{
	(void)request;
	convert_write_error(response, CONVERT_ERROR_CONNECTION_RESET, 0);
}

static void is_silent(const struct convert_request *request, struct convert_writer *response)
{
	(void)request;
	(void)response;
}

/* The response of converter @index to a request, as the bytes that come. Returns how many. */
static size_t network(int index, const uint8_t *bytes, size_t len, uint8_t response[CONVERT_MESSAGE_MAX])
{
	struct convert_writer writer;
	struct asked *now = &asked[asked_count++];

	ck_assert_uint_le(asked_count, REQUESTS_MAX);
	memset(now, 0, sizeof(*now));
	now->index = index;
	ck_assert_int_eq(convert_request_parse(bytes, len, &now->request), CONVERT_STATUS_OK);
	memcpy(now->cookie, now->request.cookie.data ? now->request.cookie.data : bytes, now->request.cookie.len);
	if (converters[index] == is_silent)
		return 0;
	convert_writer_init(&writer, response, CONVERT_MESSAGE_MAX);
	converters[index](&now->request, &writer);
	return (size_t)convert_writer_finish(&writer);
}

/* --- the front end --- */

enum outcome { CONVERTED, DIRECT, BYPASSED, FAILED };

__attribute__((format(printf, 1, 2))) void log_line(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(logged, sizeof(logged), format, args);
	va_end(args);
}

/* One request and its response, which comes byte by byte. */
static struct handshake_step exchange_bytes(int index, const union sockaddr_ip *server, const struct handshake_ask *ask)
{
	static uint8_t response[CONVERT_MESSAGE_MAX]; /* what a step points into */
	struct handshake_step step = { .verdict = HANDSHAKE_NEED_MORE };
	uint8_t request[CONVERT_MESSAGE_MAX];
	ssize_t len = handshake_request(request, sizeof(request), server, ask);
	size_t came;

	ck_assert_int_gt(len, 0);
	came = network(index, request, (size_t)len, response);
	for (size_t i = 1; i <= came && step.verdict == HANDSHAKE_NEED_MORE; i++)
		step = handshake_on_bytes(response, i, server, ask);
	return came ? step : exchange_silent(index, server, false);
}

/* Asks converter @index, again where it has said how it would serve the request. */
static struct handshake_step ask(int index, const union sockaddr_ip *server)
{
	converters_cookie_number number = converters_cookie_current(index);
	struct handshake_ask ask = exchange_ask(&settings, index, server, true, number);
	const struct path_id path = { .converter = index };
	bool cookie_asked = false;

	for (;;) {
		struct handshake_step step;

		ask.hold_ms = ask.info ? 0 : exchange_hold_ms(&settings, &path, true, false);
		step = exchange_bytes(index, server, &ask);
		if (step.verdict == HANDSHAKE_DONE) {
			exchange_done(index, server, &step, true);
			return step;
		}
		if (!exchange_take_remedy(index, number, &step, &cookie_asked, &ask.mptcp, &ask.silent)) {
			exchange_failed(index, server, &step);
			return step;
		}
		number = converters_cookie_current(index);
		ask.cookie = converters_cookie(&settings, index, number);
	}
}

static enum outcome front_end_connect(const char *where, int *error)
{
	union sockaddr_ip server, addr;
	struct converters_query query = { .destination = &server, .family = AF_INET, .may_resolve = true };
	enum policy_verdict verdict = POLICY_CONVERT;
	const char *reason;
	int index;

	asked_count = 0;
	ck_assert_int_eq(sockaddr_ip_parse(&server, where, 443), 0);
	if (policy_decide(&settings, &server) != POLICY_CONVERT)
		return DIRECT;
	user_cache_open(-1);
	if (exchange_bypasses(&settings, &server))
		return BYPASSED;
	while ((index = converters_choose(&settings, &query, &addr, &verdict, &reason)) >= 0) {
		struct handshake_step step = ask(index, &server);

		if (step.verdict == HANDSHAKE_DONE)
			return CONVERTED;
		*error = step.error;
		if (step.fault == HANDSHAKE_FAULT_SERVER)
			return FAILED;
		query.tried |= 1u << index;
	}
	return settings.fail_closed && verdict == POLICY_CONVERT ? FAILED : DIRECT;
}

static const char *lookup(const char *name)
{
	return strcmp(name, "CONVERT_ADDR") == 0	 ? "192.0.2.1,192.0.2.2" :
	       strcmp(name, "CONVERT_CACHE") == 0	 ? cache_setting :
	       strcmp(name, "CONVERT_FALLBACK") == 0	 ? fallback :
	       strcmp(name, "CONVERT_BYPASS_MPTCP") == 0 ? "1" :
							   NULL;
}

static void begin(void)
{
	settings_read(&settings, lookup);
	ck_assert_msg(settings.enabled, "%s", settings.problem);
	user_cache_init(&settings);
	converters_init(&settings);
}

static void setup(void)
{
	tempdir_make(directory);
	cache_setting = directory;
	converters[0] = converters[1] = serves;
}

static void teardown(void)
{
	tempdir_remove(directory);
}

static void expect(const char *where, enum outcome expected, size_t requests, int last)
{
	int error;

	ck_assert_int_eq(front_end_connect(where, &error), expected);
	ck_assert_uint_eq(asked_count, requests);
	if (requests)
		ck_assert_int_eq(asked[requests - 1].index, last);
}

START_TEST(converter_is_asked_for_the_server)
{
	union sockaddr_ip server;
	struct in6_addr address;

	begin();
	expect("203.0.113.1:8080", CONVERTED, 1, 0);
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.1", 0), 0);
	address = sockaddr_ip_in6(&server);
	ck_assert_mem_eq(&asked[0].request.address, &address, sizeof(address));
	ck_assert_uint_eq(asked[0].request.port, 8080);
	ck_assert(asked[0].request.has_info);
	ck_assert_uint_eq(converters_withholds_ms(&settings, 0), 700);
	/* it is proven by that, and not asked again what it supports */
	expect("203.0.113.2", CONVERTED, 1, 0);
	ck_assert(!asked[0].request.has_info);
	expect("127.0.0.1", DIRECT, 0, 0);
	expect("192.0.2.2:22", DIRECT, 0, 0);
	ck_assert_str_eq(logged, "");
}
END_TEST

START_TEST(cookie_is_learned_and_kept)
{
	converters[0] = wants_cookie;
	begin();
	expect("203.0.113.1", CONVERTED, 2, 0);
	ck_assert_str_eq(asked[1].cookie, "biscuit");
	expect("203.0.113.2", CONVERTED, 1, 0);
	ck_assert_str_eq(asked[0].cookie, "biscuit");
}
END_TEST

START_TEST(next_converter_follows_one_that_refuses)
{
	converters[0] = refuses;
	begin();
	expect("203.0.113.1", CONVERTED, 2, 1);
	expect("203.0.113.1", CONVERTED, 1, 1);
	/* the refusal is about that server */
	converters[0] = serves;
	expect("203.0.113.2", CONVERTED, 1, 0);
}
END_TEST

START_TEST(failure_of_the_server_is_final)
{
	int error = 0;

	converters[0] = finds_server_closed;
	begin();
	ck_assert_int_eq(front_end_connect("203.0.113.1", &error), FAILED);
	ck_assert_int_eq(error, ECONNREFUSED);
	ck_assert_uint_eq(asked_count, 1);
}
END_TEST

START_TEST(silent_converters_are_left_alone)
{
	converters[0] = converters[1] = is_silent;
	begin();
	expect("203.0.113.1", DIRECT, 2, 1);
	expect("203.0.113.2", DIRECT, 0, 0);
}
END_TEST

START_TEST(fallback_none_fails)
{
	converters[0] = converters[1] = is_silent;
	fallback = "none";
	begin();
	expect("203.0.113.1", FAILED, 2, 1);
}
END_TEST

START_TEST(server_that_speaks_mptcp_is_bypassed)
{
	converters[0] = serves_mptcp_server;
	begin();
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert(asked[0].request.extended);
	expect("203.0.113.1", BYPASSED, 0, 0);
}
END_TEST

/* Another process of the user's finds the one converter silent, refuses the other for a server, and knows a third thing. */
START_TEST(processes_share_what_they_learn)
{
	int status;
	pid_t pid;

	begin();
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		converters[0] = is_silent;
		converters[1] = wants_cookie;
		expect("203.0.113.1", CONVERTED, 3, 1);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	converters[1] = wants_cookie;
	expect("203.0.113.1", CONVERTED, 1, 1);
	ck_assert_str_eq(asked[0].cookie, "biscuit");
	ck_assert(!asked[0].request.has_info);
}
END_TEST

START_TEST(log_is_told_where_nothing_is_kept)
{
	cache_setting = "/dev/null";
	begin();
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert_ptr_nonnull(strstr(logged, "not kept in /dev/null: "));
}
END_TEST

/* --- silence --- */

START_TEST(requests_are_silent_once_the_converter_is_known)
{
	converters[0] = offers_silence;
	begin();
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert(asked[0].request.has_info && !asked[0].request.has_silence);
	expect("203.0.113.2", CONVERTED, 1, 0); /* does that server speak Multipath TCP? */
	ck_assert(asked[0].request.extended && asked[0].request.has_silence);
	expect("203.0.113.2", CONVERTED, 1, 0);
	ck_assert(!asked[0].request.extended);
	ck_assert(asked[0].request.has_silence && asked[0].request.silence.mptcp && !asked[0].request.silence.blind);
	/* After a fallback, by a lost packet perhaps, one connection has to keep Multipath TCP under the eyes of the front end. */
	converters_note_fallback(0, clock_ns());
	expect("203.0.113.2", CONVERTED, 1, 0);
	ck_assert(!asked[0].request.has_silence);
	expect("203.0.113.2", CONVERTED, 1, 0);
	ck_assert(asked[0].request.has_silence);
	for (int i = 0; i < 2; i++)
		converters_note_fallback(0, clock_ns() + CLOCK_NS_PER_MS);
	expect("203.0.113.2", CONVERTED, 1, 0);
	ck_assert(!asked[0].request.has_silence);
}
END_TEST

/* Silence says that the server doesn't speak Multipath TCP, to whoever has asked. */
START_TEST(silence_is_an_answer)
{
	union sockaddr_ip server;

	converters[0] = offers_silence;
	begin();
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.2", 443), 0);
	exchange_done_silently(0, &server, false);
	ck_assert(exchange_ask(&settings, 0, &server, true, 0).mptcp);
	exchange_done_silently(0, &server, true);
	ck_assert(!exchange_ask(&settings, 0, &server, true, 0).mptcp);
	ck_assert(!exchange_bypasses(&settings, &server));
}
END_TEST

START_TEST(blind_requests_ask_for_nothing)
{
	union sockaddr_ip server;
	struct handshake_ask ask;

	converters[0] = offers_silence;
	begin();
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.2", 443), 0);
	ask = exchange_ask(&settings, 0, &server, true, 0);
	ck_assert(!exchange_ask_blindly(&settings, 0, &ask));
	ck_assert(ask.info && ask.mptcp && !ask.silent && !ask.blind);
	expect("203.0.113.1", CONVERTED, 1, 0);
	ask = exchange_ask(&settings, 0, &server, true, 0);
	ck_assert(ask.mptcp && ask.silent && !ask.blind);
	ck_assert(exchange_ask_blindly(&settings, 0, &ask));
	ck_assert(!ask.mptcp && !ask.info && ask.silent && ask.blind && ask.over_mptcp);
	settings.silence = false;
	ask = exchange_ask(&settings, 0, &server, true, 0);
	ck_assert(!exchange_ask_blindly(&settings, 0, &ask));
}
END_TEST

START_TEST(who_knows_no_silence_is_asked_without)
{
	converters[0] = offers_silence;
	begin();
	expect("203.0.113.1", CONVERTED, 1, 0);
	converters[0] = knows_no_silence;
	expect("203.0.113.1", CONVERTED, 2, 0);
	ck_assert(asked[0].request.has_silence && !asked[1].request.has_silence);
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert(!asked[0].request.has_silence);
}
END_TEST

/* What is left of the second after which a SYN is sent again, where that is less than the converter's limit. */
START_TEST(far_clients_say_for_how_long)
{
	static const struct {
		unsigned int rtt_ms, hold_ms, numbered_ms;
	} cases[] = {
		{ 20, 0, 0 }, { 88, 0, 0 }, { 90, 0, 699 }, { 177, 0, 601 }, { 180, 698, 598 }, { 400, 450, 350 },
		{ 700, 113, 50 }, { 760, 50, 50 }, { 2000, 50, 50 },
	};

	converters[0] = offers_hold_times;
	begin();
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert(asked[0].request.has_info && !asked[0].request.has_hold_time);
	expect("203.0.113.1", CONVERTED, 1, 0); /* its round trip isn't known */
	ck_assert(!asked[0].request.has_hold_time);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct path_id path = { .source = { .s6_addr = { 0xfd, [15] = (uint8_t)(i + 1) } } };

		ck_assert_uint_eq(exchange_hold_ms(&settings, &path, true, false), 0);
		paths_note_answer(&path, cases[i].rtt_ms, true);
		ck_assert_uint_eq(exchange_hold_ms(&settings, &path, true, false), cases[i].hold_ms);
		ck_assert_uint_eq(exchange_hold_ms(&settings, &path, true, true), cases[i].numbered_ms);
		/* Without Multipath TCP a SYN may be sent again. */
		ck_assert_uint_eq(exchange_hold_ms(&settings, &path, false, false), 0);
	}
	settings.withheld_ms = 0;
	ck_assert_uint_eq(exchange_hold_ms(&settings, &(struct path_id){ .source = { .s6_addr = { 0xfd, [15] = 6 } } }, true, false), 0);
}
END_TEST

START_TEST(who_knows_no_hold_times_is_asked_without)
{
	converters[0] = offers_hold_times;
	begin();
	expect("203.0.113.1", CONVERTED, 1, 0);
	paths_note_answer(&(struct path_id){ .converter = 0 }, 400, true);
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert(asked[0].request.has_hold_time);
	ck_assert_uint_eq(asked[0].request.hold_ms, 450);
	converters[0] = knows_no_hold_times;
	expect("203.0.113.1", CONVERTED, 2, 0);
	ck_assert(asked[0].request.has_hold_time && !asked[1].request.has_hold_time);
	expect("203.0.113.1", CONVERTED, 1, 0);
	ck_assert(!asked[0].request.has_hold_time);
}
END_TEST

/* Only what came in the place of a response has that remedy, and only for a silent request. */
START_TEST(what_silence_is_the_remedy_for)
{
	const struct {
		struct handshake_step step;
		bool remedy;
	} steps[] = {
		{ handshake_on_close(), true },
		{ handshake_on_error(ECONNRESET, true), true },
		{ handshake_on_error(ECONNRESET, false), true },
		{ handshake_on_error(ECONNREFUSED, true), false },
		{ handshake_on_silence(false), false },
		{ { .verdict = HANDSHAKE_FAIL, .fault = HANDSHAKE_FAULT_SERVER, .error = ECONNRESET }, false },
	};

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		bool cookie_asked = false, ask_mptcp = false, silent = false;

		ck_assert(!exchange_take_remedy(0, 0, &steps[i].step, &cookie_asked, &ask_mptcp, &silent));
		silent = true;
		ck_assert_int_eq(exchange_take_remedy(0, 0, &steps[i].step, &cookie_asked, &ask_mptcp, &silent), steps[i].remedy);
		ck_assert_int_eq(silent, !steps[i].remedy);
	}
}
END_TEST

START_TEST(both_ends_know_when_there_is_no_response)
{
	const uint8_t both = TCPI_OPT_SYN_DATA | TCPI_OPT_TIMESTAMPS;

	ck_assert(synack_is_silent(both | TCPI_OPT_SACK, true));
	ck_assert(!synack_is_silent(both, false));
	ck_assert(!synack_is_silent(TCPI_OPT_SYN_DATA, true));
	ck_assert(!synack_is_silent(TCPI_OPT_TIMESTAMPS, true));
}
END_TEST

/* --- ways of asking --- */

static const struct {
	struct synack_seen seen;
	bool goes_on;
	enum ask_way next;
} synacks[] = {
	{ { .syn_data = true, .acknowledged = true }, true, ASK_MPTCP },
	{ { .syn_data = true }, false, ASK_MPTCP },
	{ { .syn_data = true, .acknowledged = true, .sent_again = true }, false, ASK_MPTCP },
	{ { .syn_data = true, .acknowledged = true, .fallen_back = true }, true, ASK_MPTCP }, /* the response tells */
	{ { .syn_data = false }, true, ASK_TCP },
	{ { .sent_again = true }, true, ASK_TCP },
	{ { .fallen_back = true }, false, ASK_TCP },
};

START_TEST(what_a_synack_leads_to)
{
	enum ask_way next = ASK_WAY_COUNT;

	ck_assert_int_eq(synack_keeps_way(&synacks[_i].seen, &next), synacks[_i].goes_on);
	if (!synacks[_i].goes_on)
		ck_assert_int_eq(next, synacks[_i].next);
}
END_TEST

START_TEST(when_the_syn_carries_the_request)
{
	for (int way = 0; way < ASK_WAY_COUNT; way++)
		ck_assert_int_eq(ask_way_syn_data((enum ask_way)way, way != ASK_TCP, false, true), SYN_DATA_NEVER);
	ck_assert_int_eq(ask_way_syn_data(ASK_MPTCP, true, true, true), SYN_DATA_NEVER);
	ck_assert_int_eq(ask_way_syn_data(ASK_MPTCP_SYN, true, true, true), SYN_DATA_ALWAYS);
	ck_assert_int_eq(ask_way_syn_data(ASK_MPTCP_SYN, true, true, false), SYN_DATA_ON_ONE_PATH);
	ck_assert_int_eq(ask_way_syn_data(ASK_TCP, false, true, false), SYN_DATA_ALWAYS);
}
END_TEST

START_TEST(when_a_synack_confirms_the_server)
{
	const uint8_t both = TCPI_OPT_SYN_DATA | TCPI_OPT_TIMESTAMPS;

	ck_assert(synack_confirms(both, 700, 1000 * MS, 1700 * MS - 1));
	ck_assert(synack_confirms(both | TCPI_OPT_SACK, 700, 1000 * MS, 1000 * MS));
	ck_assert(!synack_confirms(both, 700, 1000 * MS, 1700 * MS));
	ck_assert(!synack_confirms(TCPI_OPT_SYN_DATA, 700, 1000 * MS, 1001 * MS));
	ck_assert(!synack_confirms(TCPI_OPT_TIMESTAMPS, 700, 1000 * MS, 1001 * MS));
	ck_assert(!synack_confirms(both, 0, 1000 * MS, 1000 * MS));
}
END_TEST

/* The client remembers a way of asking that failed, and the next connection takes the safer one. */
START_TEST(a_failed_way_is_remembered)
{
	const struct path_id usual = { .converter = 0 }, other = { .converter = 0, .source.s6_addr = { 0xfd, [15] = 1 } };

	begin();
	exchange_way_failed(&usual, ASK_MPTCP, clock_ns());
	exchange_way_failed(&other, ASK_MPTCP, clock_ns());
	ck_assert(paths_take_syn_data(&usual));
	exchange_way_failed(&usual, ASK_MPTCP, clock_ns() + CLOCK_NS_PER_MS);
	ck_assert(!paths_take_syn_data(&usual));
	ck_assert(paths_take_syn_data(&other));
	ck_assert_int_eq(converters_mptcp(0), CACHE_MPTCP_UNKNOWN);
	exchange_way_failed(&usual, ASK_TCP, clock_ns());
	ck_assert_int_eq(converters_mptcp(0), CACHE_MPTCP_LOST);
	ck_assert(!exchange_keeps_mptcp(&settings, 0));
	expect("203.0.113.1", CONVERTED, 1, 0); /* over Multipath TCP, as this front end always says */
	ck_assert(exchange_keeps_mptcp(&settings, 0));
}
END_TEST

START_TEST(bypass_is_for_servers_that_some_converter_vouches_for)
{
	union sockaddr_ip server;

	begin();
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.1", 443), 0);
	/* a converter that isn't the one to be asked */
	servers_note_mptcp(1, &server, HANDSHAKE_SERVER_MPTCP);
	ck_assert(!exchange_bypasses(&settings, &server));
	servers_note_mptcp(0, &server, HANDSHAKE_SERVER_MPTCP);
	ck_assert(exchange_bypasses(&settings, &server));
	settings.fail_closed = true;
	ck_assert(!exchange_bypasses(&settings, &server));
	settings.fail_closed = false;
	settings.bypass_mptcp = false;
	ck_assert(!exchange_bypasses(&settings, &server));
	settings.bypass_mptcp = true;
	/* no converter can be asked: that is no bypass */
	converters_rest(0, 30);
	converters_rest(1, 30);
	ck_assert(!exchange_bypasses(&settings, &server));
}
END_TEST

START_TEST(multipath_tcp_has_to_hold_for_silence_over_it_alone)
{
	struct handshake_ask ask;
	union sockaddr_ip server;

	converters[0] = offers_silence;
	begin();
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.1", 443), 0);
	expect("203.0.113.1", CONVERTED, 1, 0);
	converters_note_fallback(0, clock_ns() + CLOCK_NS_PER_MS);
	ck_assert(!exchange_ask(&settings, 0, &server, true, 0).silent);
	ask = exchange_ask(&settings, 0, &server, true, 0);
	ck_assert(!exchange_ask_blindly(&settings, 0, &ask));
	ck_assert(!ask.silent && !ask.blind);
	/* TCP has nothing to lose */
	ask = exchange_ask(&settings, 0, &server, false, 0);
	ck_assert(ask.silent);
	ck_assert(exchange_ask_blindly(&settings, 0, &ask));
	/* whoever says that converters withhold SYNs says that Multipath TCP may be relied on */
	settings.withheld_ms = 700;
	ck_assert(exchange_keeps_mptcp(&settings, 0));
	settings.withheld_ms = 0;
	ck_assert(!exchange_keeps_mptcp(&settings, 0));
}
END_TEST

START_TEST(refusal_rests_for_its_own_time)
{
	const struct handshake_step why = { .fault = HANDSHAKE_FAULT_REFUSED, .rest = 30 };
	union sockaddr_ip server, addr;
	struct converters_query query = { .destination = &server, .family = AF_INET };
	enum policy_verdict verdict;
	const char *reason;

	begin();
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.1", 443), 0);
	exchange_failed(0, &server, &why);
	ck_assert_int_eq(converters_choose(&settings, &query, &addr, &verdict, &reason), 1);
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.2", 443), 0);
	ck_assert_int_eq(converters_choose(&settings, &query, &addr, &verdict, &reason), 0);
}
END_TEST

/* The host is there, so that it may be no converter: then the silence is about that server, and the converter isn't told to be dead. */
START_TEST(silence_of_a_host_that_is_alive_is_about_the_server)
{
	union sockaddr_ip server;
	struct handshake_step why;

	begin();
	ck_assert_int_eq(sockaddr_ip_parse(&server, "203.0.113.1", 443), 0);
	ck_assert(!converters_admits(0, &server));
	why = exchange_silent(0, &server, false);
	ck_assert(!converters_admits(0, &server));
	ck_assert_int_eq(why.fault, HANDSHAKE_FAULT_CONVERTER);
	why = exchange_silent(0, &server, true);
	ck_assert(converters_admits(0, &server));
	ck_assert_int_eq(why.fault, HANDSHAKE_FAULT_REFUSED);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("front_end");
	TCase *tcase = tcase_create("front_end");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, converter_is_asked_for_the_server);
	tcase_add_test(tcase, cookie_is_learned_and_kept);
	tcase_add_test(tcase, next_converter_follows_one_that_refuses);
	tcase_add_test(tcase, failure_of_the_server_is_final);
	tcase_add_test(tcase, silent_converters_are_left_alone);
	tcase_add_test(tcase, fallback_none_fails);
	tcase_add_test(tcase, server_that_speaks_mptcp_is_bypassed);
	tcase_add_test(tcase, processes_share_what_they_learn);
	tcase_add_test(tcase, log_is_told_where_nothing_is_kept);
	tcase_add_test(tcase, requests_are_silent_once_the_converter_is_known);
	tcase_add_test(tcase, silence_is_an_answer);
	tcase_add_test(tcase, blind_requests_ask_for_nothing);
	tcase_add_test(tcase, who_knows_no_silence_is_asked_without);
	tcase_add_test(tcase, far_clients_say_for_how_long);
	tcase_add_test(tcase, who_knows_no_hold_times_is_asked_without);
	tcase_add_test(tcase, what_silence_is_the_remedy_for);
	tcase_add_test(tcase, both_ends_know_when_there_is_no_response);
	tcase_add_loop_test(tcase, what_a_synack_leads_to, 0, ARRAY_SIZE(synacks));
	tcase_add_test(tcase, when_the_syn_carries_the_request);
	tcase_add_test(tcase, when_a_synack_confirms_the_server);
	tcase_add_test(tcase, a_failed_way_is_remembered);
	tcase_add_test(tcase, bypass_is_for_servers_that_some_converter_vouches_for);
	tcase_add_test(tcase, multipath_tcp_has_to_hold_for_silence_over_it_alone);
	tcase_add_test(tcase, refusal_rests_for_its_own_time);
	tcase_add_test(tcase, silence_of_a_host_that_is_alive_is_about_the_server);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
