/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * front_end_world.c - a front end that has nothing of src/shim: libclient, libcodec and libcommon are all that it links
 *
 * Its connections are function calls: a converter is a function that reads a request and writes a response. The rest is
 * what every front end does: policy, the choice of a converter, request, response, and notes about both sides, in the user's
 * cache as well.
 */
#include "config.h"

#include "front_end_world.h"

#include "client/cache.h"
#include "client/client_log.h"
#include "client/exchange.h"

#include "tempdir.h"

#include <check.h>
#include <stdarg.h>

static char directory[PATH_MAX];
const char *cache_setting, *fallback;
struct settings settings;
char logged[256];

/* --- converters --- */

converter *converters[2];
struct asked asked[REQUESTS_MAX];
size_t asked_count;

void serves(const struct convert_request *request, struct convert_writer *response)
{
	static const struct convert_withholding withholding = { .withheld = true, .limit_ms = 700 };
	static const uint8_t kinds[] = { 30 };

	if (request->has_info) {
		convert_write_supported(response, kinds, sizeof(kinds));
		convert_write_withholding(response, &withholding);
	}
	convert_write_tcp_header(response, NULL, 0);
}

void serves_mptcp_server(const struct convert_request *request, struct convert_writer *response)
{
	static const uint8_t options[] = { 30, 4, 0, 0 };

	(void)request;
	convert_write_tcp_header(response, options, sizeof(options));
}

/* Offers to take silent requests, but answers them, as if the SYN had come without its data. */
void offers_silence(const struct convert_request *request, struct convert_writer *response)
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
void offers_hold_times(const struct convert_request *request, struct convert_writer *response)
{
	static const struct convert_withholding withholding = { .withheld = true, .limit_ms = 700, .hold_times = true };
	static const uint8_t kinds[] = { 30 };

	if (request->has_info) {
		convert_write_supported(response, kinds, sizeof(kinds));
		convert_write_withholding(response, &withholding);
	}
	convert_write_tcp_header(response, NULL, 0);
}

/* An older version of that converter. */
void knows_no_hold_times(const struct convert_request *request, struct convert_writer *response)
{
	if (request->has_hold_time)
		convert_write_error_echo(response, CONVERT_ERROR_UNSUPPORTED_MESSAGE, NULL, 0);
	else
		serves(request, response);
}

/* A converter that takes no silent requests: it answers them with bytes that are no response. */
void knows_no_silence(const struct convert_request *request, struct convert_writer *response)
{
	if (request->has_silence)
		convert_write_info(response); /* a TLV that no converter sends */
	else
		serves(request, response);
}

void wants_cookie(const struct convert_request *request, struct convert_writer *response)
{
	if (request->has_cookie)
		serves(request, response);
	else
		convert_write_error_cookie(response, (const uint8_t *)"biscuit", 7);
}

void refuses(const struct convert_request *request, struct convert_writer *response)
{
	(void)request;
	convert_write_error(response, CONVERT_ERROR_NOT_AUTHORIZED, 0);
}

void finds_server_closed(const struct convert_request *request, struct convert_writer *response)
{
	(void)request;
	convert_write_error(response, CONVERT_ERROR_CONNECTION_RESET, 0);
}

void is_silent(const struct convert_request *request, struct convert_writer *response)
{
	(void)request;
	(void)response;
}

/* Writes the response of converter @index to a request. Returns how many bytes come back. */
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
	return came ? step : exchange_unanswered(index, server, false);
}

/* Asks converter @index, and again if its answer says how it would serve the request. */
static struct handshake_step ask(int index, const union sockaddr_ip *server)
{
	converters_cookie_number number = converters_cookie_current(index);
	struct handshake_ask ask = exchange_ask(&settings, &(struct path_id){ .converter = index }, server, true);
	const struct path_id path = { .converter = index };
	bool cookie_asked = false;

	for (;;) {
		struct handshake_step step;

		ask.cookie = converters_cookie(&settings, index, number);
		ask.hold_ms = ask.info ? 0 : exchange_hold_ms(&settings, &path, true, false);
		step = exchange_bytes(index, server, &ask);
		if (step.verdict == HANDSHAKE_DONE) {
			exchange_done(&(struct path_id){ .converter = index }, server, &step, true);
			return step;
		}
		if (!exchange_take_remedy(index, number, &step, &cookie_asked, &ask.mptcp, &ask.silent)) {
			exchange_failed(index, server, &step);
			return step;
		}
		number = converters_cookie_current(index);
	}
}

enum outcome front_end_connect(const char *where, int *error)
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

void begin(void)
{
	settings_read(&settings, lookup);
	ck_assert_msg(settings.enabled, "%s", settings.problem);
	user_cache_init(&settings);
	converters_init(&settings);
}

void setup(void)
{
	tempdir_make(directory);
	cache_setting = directory;
	converters[0] = converters[1] = serves;
}

void teardown(void)
{
	tempdir_remove(directory);
}

void expect(const char *where, enum outcome expected, size_t requests, int last)
{
	int error;

	ck_assert_int_eq(front_end_connect(where, &error), expected);
	ck_assert_uint_eq(asked_count, requests);
	if (requests)
		ck_assert_int_eq(asked[requests - 1].index, last);
}
