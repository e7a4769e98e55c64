/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c - decides from a client's bytes what the converter does, and writes its answers (no I/O)
 *
 * The message library says what a request contains, or what is wrong with it. This file has the converter's policy
 * where RFC 8803 leaves a choice:
 *
 * - TCP options (Section 7). We ignore 0, 1, 2, 3 and 5. We support SACK-permitted (4), timestamps (8) and Multipath
 *   TCP (30) if this host's own SYNs have them, and only without a value, which the kernel chooses. For all others,
 *   Section 6.2.5 wants the error Unsupported TCP Option, which lists each such kind. Fast Open (34) is among them,
 *   since Linux takes no cookie from a program. For 4 and 8 there is nothing to do: the host sends them in each SYN
 *   or in none.
 * - Info and Connect in one request get one answer, which may be an error: what the converter supports is true
 *   whether or not the server was reached.
 * - A message with nothing but a cookie is malformed. judgement.c decides whether a cookie is required, and whether
 *   it is valid.
 */
#include "config.h"

#include "convertd/policy/judgement.h"

#include "convertd/policy/families.h"

#include "hold/syn_packet.h"

#include "common/tcp.h"

#include <limits.h>
#include <string.h>

/* The most kinds that an option list can hold without repetition: all of them. */
#define KINDS_MAX 256

static bool kind_is_ignored(uint8_t kind)
{
	return kind <= TCP_KIND_WINDOW_SCALE || kind == TCP_KIND_SACK;
}

static bool kind_is_supported(const struct request_features *features, uint8_t kind)
{
	switch (kind) {
	case TCP_KIND_SACK_PERMITTED:
		return features->sack;
	case TCP_KIND_TIMESTAMPS:
		return features->timestamps;
	case TCP_KIND_MPTCP:
		return features->mptcp;
	default:
		return false;
	}
}

/* Writes the answer to an Info TLV (Section 6.2.4). */
static void write_supported(const struct request_features *features, struct convert_writer *writer)
{
	static const uint8_t candidates[] = { TCP_KIND_SACK_PERMITTED, TCP_KIND_TIMESTAMPS,
					      TCP_KIND_MPTCP };
	uint8_t kinds[sizeof(candidates)];
	struct convert_withholding withholding = features->withholding;
	size_t count = 0;

	for (size_t i = 0; i < sizeof(candidates); i++)
		if (kind_is_supported(features, candidates[i]))
			kinds[count++] = candidates[i];
	convert_write_supported(writer, kinds, count);
	withholding.no_way = families_reach_nothing();
	if (withholding.withheld || withholding.corrects || withholding.no_way)
		convert_write_withholding(writer, &withholding);
}

static void answer_start(const struct request_features *features, bool info,
			 struct convert_writer *writer, uint8_t *out)
{
	convert_writer_init(writer, out, CONVERT_MESSAGE_MAX);
	if (info)
		write_supported(features, writer);
}

/* Returns the length of an answer. It is made from valid parts, so only a bug could make it fail; then it is 0. */
static size_t answer_finish(struct convert_writer *writer)
{
	ssize_t len = convert_writer_finish(writer);

	return len < 0 ? 0 : (size_t)len;
}

size_t request_write_connected(const struct request_features *features, bool info,
			       const uint8_t *options, size_t options_len,
			       uint8_t out[static CONVERT_MESSAGE_MAX])
{
	struct convert_writer writer;

	answer_start(features, info, &writer, out);
	convert_write_tcp_header(&writer, options, options_len);
	return answer_finish(&writer);
}

size_t request_write_error(const struct request_features *features, bool info,
			   enum convert_error_code code, uint8_t value,
			   uint8_t out[static CONVERT_MESSAGE_MAX])
{
	struct convert_writer writer;

	answer_start(features, info, &writer, out);
	if (code == CONVERT_ERROR_UNSUPPORTED_TCP_OPTION)
		convert_write_error_options(&writer, &value, 1);
	else
		convert_write_error(&writer, code, value);
	return answer_finish(&writer);
}

/* Makes it a refusal with the answer that was written. */
static void refuse(struct request_decision *decision, struct convert_writer *writer, const char *reason)
{
	decision->verdict.action = REQUEST_ANSWER;
	decision->verdict.refused = true;
	decision->verdict.echo = 0;
	decision->verdict.reason = reason;
	decision->answer_len = answer_finish(writer);
}

/* Answers a message that isn't a valid request with an Error TLV (Section 6.2.8). */
static void refuse_message(enum convert_error_code code, const uint8_t *message, size_t len, const char *reason,
			   struct request_decision *decision)
{
	struct convert_writer writer;

	convert_writer_init(&writer, decision->answer, sizeof(decision->answer));
	if (code == CONVERT_ERROR_UNSUPPORTED_VERSION)
		convert_write_error_versions(&writer);
	else
		convert_write_error_echo(&writer, code, message, len);
	refuse(decision, &writer, reason);
}

void request_refuse(const struct request_features *features, bool info,
		    enum convert_error_code code, uint8_t value, const char *reason,
		    struct request_decision *decision)
{
	struct convert_writer writer;

	answer_start(features, info, &writer, decision->answer);
	convert_write_error(&writer, code, value);
	refuse(decision, &writer, reason);
}

void request_refuse_cookie(const uint8_t *cookie, size_t len, const char *reason,
			   struct request_decision *decision)
{
	struct convert_writer writer;

	convert_writer_init(&writer, decision->answer, sizeof(decision->answer));
	convert_write_error_cookie(&writer, cookie, len);
	refuse(decision, &writer, reason);
}

void request_refuse_malformed(const uint8_t *message, const char *reason,
			      struct request_decision *decision)
{
	refuse_message(CONVERT_ERROR_MALFORMED_MESSAGE, message, decision->verdict.length, reason, decision);
}

/* Decides as the RFC wants for a fault that the message library found. */
static void decide_fault(enum convert_status status, const uint8_t *buf, size_t len,
			 size_t message_len, struct request_decision *decision)
{
	enum convert_error_code code = CONVERT_ERROR_MALFORMED_MESSAGE;

	decision->verdict.reason = convert_status_name(status);
	switch (convert_request_answer(status, &code)) {
	case CONVERT_ANSWER_NONE:
		decision->verdict.action = REQUEST_WAIT;
		decision->verdict.reason = NULL;
		return;
	case CONVERT_ANSWER_IGNORE:
		decision->verdict.action = REQUEST_IGNORE;
		return;
	case CONVERT_ANSWER_RESET:
		decision->verdict.action = REQUEST_RESET;
		return;
	case CONVERT_ANSWER_ERROR:
		refuse_message(code, buf, message_len < len ? message_len : len, decision->verdict.reason, decision);
		return;
	}
}

/*
 * Reads the TCP Options field of a Connect TLV: notes the options that the SYN is to have, fills @kinds with each
 * unsupported kind once, and returns their number.
 */
static size_t options_unsupported(const struct request_features *features,
				  const struct convert_request *request,
				  struct request_decision *decision,
				  uint8_t kinds[static KINDS_MAX])
{
	struct convert_span list = request->tcp_options;
	struct convert_tcp_option option;
	size_t count = 0;

	if (!request->extended)
		return 0;
	while (convert_tcp_option_next(&list, &option) == CONVERT_STATUS_OK) {
		if (kind_is_ignored(option.kind))
			continue;
		/* Section 6.2.5: the client leaves the value to us. */
		if (!option.value.len && kind_is_supported(features, option.kind))
			decision->verdict.mptcp |= option.kind == TCP_KIND_MPTCP;
		else if (!memchr(kinds, option.kind, count))
			kinds[count++] = option.kind;
	}
	return count;
}

static void decide_connect(const struct request_features *features,
			   const struct convert_request *request, struct request_decision *decision)
{
	struct convert_writer writer;
	uint8_t kinds[KINDS_MAX];
	size_t count = options_unsupported(features, request, decision, kinds);

	decision->verdict.responds = request->has_info;
	sockaddr_ip_set(&decision->verdict.server, AF_UNSPEC, &request->address, request->port);
	decision->verdict.action = REQUEST_CONNECT;
	if (count) {
		answer_start(features, request->has_info, &writer, decision->answer);
		convert_write_error_options(&writer, kinds, count);
		refuse(decision, &writer, "unsupported TCP option");
	}
}

/* A client to which we never offered silence takes any answer for the server's. */
static bool silence_is_offered(const struct request_features *features, const struct convert_silence *silence)
{
	return features->withholding.silent && (features->withholding.blind || !silence->blind);
}

void request_decide(const struct request_features *features, const uint8_t *buf, size_t len,
		    struct request_decision *decision)
{
	struct convert_request request = { 0 };
	struct convert_writer writer;
	enum convert_status status;

	memset(decision, 0, offsetof(struct request_decision, answer));
	decision->verdict.hold_ms = UINT_MAX;
	decision->answer_len = 0;
	status = convert_request_parse(buf, len, &request);
	decision->verdict.silent = request.has_silence;
	decision->verdict.blind = request.silence.blind;
	decision->verdict.needs_mptcp = request.silence.mptcp;
	decision->verdict.attempt = request.silence.blind ? request.silence.attempt : 0;
	decision->verdict.repeat = request.silence.repeat;
	if (request.has_silence && !silence_is_offered(features, &request.silence)) {
		decision->verdict.action = REQUEST_RESET;
		decision->verdict.reason = "silence that isn't offered";
		return;
	}
	if (status != CONVERT_STATUS_OK) {
		decide_fault(status, buf, len, request.length, decision);
		return;
	}
	decision->verdict.length = request.length;
	decision->valid = request.has_connect || request.has_info;
	decision->has_cookie = request.has_cookie;
	decision->cookie = request.cookie;
	/*
	 * This holds even if we don't offer it: a client remembers an offer longer than until the next reload, and
	 * the value harms nobody.
	 */
	if (request.has_hold_time)
		decision->verdict.hold_ms = request.hold_ms;
	if (request.has_connect) {
		decide_connect(features, &request, decision);
	} else if (request.has_info) {
		answer_start(features, true, &writer, decision->answer);
		if (request.has_echo)
			convert_write_echo(&writer, REQUEST_ECHO_KIB);
		decision->verdict.echo = request.has_echo ? REQUEST_ECHO_KIB * 1024 : 0;
		decision->verdict.action = REQUEST_ANSWER;
		decision->verdict.reason = "information";
		decision->answer_len = answer_finish(&writer);
	} else {
		refuse_message(CONVERT_ERROR_MALFORMED_MESSAGE, buf, request.length, "nothing asked for", decision);
	}
}

uint8_t request_native_refusal(enum convert_error_code code, uint8_t value, bool server_v4, bool client_v4)
{
	switch (code) {
	case CONVERT_ERROR_CONNECTION_RESET:
		return NATIVE_RESET;
	case CONVERT_ERROR_NETWORK_FAILURE:
		return native_no_host(client_v4);
	case CONVERT_ERROR_DESTINATION_UNREACHABLE:
		return native_unreachable(value, server_v4, client_v4);
	default:
		return native_prohibited(client_v4);
	}
}
