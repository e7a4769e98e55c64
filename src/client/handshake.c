/* SPDX-License-Identifier: BSD-3-Clause */
/* handshake.c - the client's side of one conversion, as a machine without I/O */
#include "config.h"

#include "client/handshake.h"

#include "common/clock.h"
#include "common/tcp.h"
#include "common/thread.h"
#include "convert/convert.h"

#include <errno.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <string.h>

/*
 * Padding of a silent request. A silent client that waits for the server to speak sends nothing behind its third ACK. If that ACK is lost,
 * only another SYN+ACK makes the client send it again, and until then the converter sends at most a multiple of the bytes it got (convertd:
 * three times). This padding pays for five SYN+ACKs over IPv6. Without it there would be two, and one connection of 200 would fail if 5% of
 * the packets are lost.
 */
#define SILENT_PADDING 21 /* words of 32 bits */

/* The place of the repeat count in a silent request (doc/private-tlvs.md): behind two headers, of the message and of the TLV. */
#define REPEAT_AT (CONVERT_HEADER_LEN + 4)

static ssize_t request_write(uint8_t *buf, size_t capacity, const union sockaddr_ip *server, const struct handshake_ask *ask,
			     unsigned int hold_ms)
{
	static const uint8_t mptcp[] = { TCP_KIND_MPTCP, 2 }; /* without content: Section 7.5 */
	const struct convert_silence silence = {
		.blind = ask->blind, .mptcp = ask->over_mptcp, .attempt = ask->attempt, .padding = SILENT_PADDING,
	};
	struct in6_addr address = sockaddr_ip_in6(server);
	struct convert_writer w;

	convert_writer_init(&w, buf, capacity);
	if (ask->silent)
		convert_write_silence(&w, &silence);
	if (hold_ms)
		convert_write_hold_time(&w, hold_ms < UINT16_MAX ? (uint16_t)hold_ms : UINT16_MAX);
	convert_write_connect(&w, &address, sockaddr_ip_port(server), mptcp,
			      ask->mptcp ? sizeof(mptcp) : 0);
	if (ask->info)
		convert_write_info(&w);
	if (ask->cookie.len)
		convert_write_cookie(&w, ask->cookie.data, ask->cookie.len);
	return convert_writer_finish(&w);
}

ssize_t handshake_request(uint8_t *buf, size_t capacity, const union sockaddr_ip *server,
			  const struct handshake_ask *ask)
{
	ssize_t len = request_write(buf, capacity, server, ask, ask->hold_ms);

	return len == -ENOBUFS && ask->hold_ms ? request_write(buf, capacity, server, ask, 0) : len;
}

void handshake_count_repeat(uint8_t *request, unsigned int repeats)
{
	request[REPEAT_AT] = (uint8_t)(repeats >> 8);
	request[REPEAT_AT + 1] = (uint8_t)repeats;
}

static struct handshake_step fail(enum handshake_fault fault, int error, const char *reason)
{
	return (struct handshake_step){
		.verdict = HANDSHAKE_FAIL,
		.fault = fault,
		.error = error,
		.reason = reason,
		.rest = fault == HANDSHAKE_FAULT_SERVER ? 0 : HANDSHAKE_REST_SECONDS,
	};
}

#define SERVER_CLASS_FIRST 96
#define SERVER_CLASS_LAST 127

/* Did the server cause it (96-127), rather than the client or the converter? */
static bool is_server_error(uint8_t code)
{
	return code >= SERVER_CLASS_FIRST && code <= SERVER_CLASS_LAST;
}

static enum handshake_fault fault_of(uint8_t code)
{
	/*
	 * A converter reports a server that never answers as Network Failure. If we blamed the converter, one dead server would keep
	 * clients away from it.
	 */
	if (is_server_error(code) || code == CONVERT_ERROR_NETWORK_FAILURE)
		return HANDSHAKE_FAULT_SERVER;
	return code == CONVERT_ERROR_NOT_AUTHORIZED ? HANDSHAKE_FAULT_REFUSED :
						      HANDSHAKE_FAULT_CONVERTER;
}

static struct handshake_step fail_by_error(const struct convert_response *response,
					   const union sockaddr_ip *server,
					   const struct handshake_ask *ask)
{
	uint8_t code = response->error_code;
	struct convert_span value = response->error_value;
	struct handshake_step step = fail(fault_of(code),
					  errno_map_error(code, value.data[0],
							  sockaddr_ip_is_v4(server)),
					  convert_error_name(code));

	switch (code) {
	case CONVERT_ERROR_RESOURCE_EXCEEDED:
	case CONVERT_ERROR_NETWORK_FAILURE:
		step.rest = value.data[0] ? value.data[0] : HANDSHAKE_REST_SECONDS;
		break;
	case CONVERT_ERROR_MISSING_COOKIE: /* behind one byte of zero */
		if (value.len <= 1)
			break;
		step.remedy = HANDSHAKE_REMEDY_COOKIE;
		step.cookie = (struct convert_span){ value.data + 1, value.len - 1 };
		break;
	case CONVERT_ERROR_UNSUPPORTED_TCP_OPTION:
		if (ask->mptcp && memchr(value.data, TCP_KIND_MPTCP, value.len))
			step.remedy = HANDSHAKE_REMEDY_NO_OPTION;
		break;
	case CONVERT_ERROR_UNSUPPORTED_MESSAGE: /* the converter that offered it was replaced by another one, or by another version */
		if (ask->hold_ms)
			step.remedy = HANDSHAKE_REMEDY_NO_HOLD_TIME;
		break;
	}
	return step;
}

/* Evaluates the options, which come from the server: they may contain any bytes. */
static enum handshake_server_mptcp server_mptcp(const struct convert_response *response)
{
	struct convert_span list = response->tcp_header;
	struct convert_tcp_option option;

	if (!response->has_tcp_header)
		return HANDSHAKE_SERVER_UNKNOWN;
	while (convert_tcp_option_next(&list, &option) == CONVERT_STATUS_OK)
		if (option.kind == TCP_KIND_MPTCP)
			return HANDSHAKE_SERVER_MPTCP;
	return HANDSHAKE_SERVER_PLAIN;
}

struct handshake_step handshake_on_bytes(const uint8_t *buf, size_t len,
					 const union sockaddr_ip *server,
					 const struct handshake_ask *ask)
{
	struct convert_response response;
	enum convert_status status;
	size_t length = 0;

	status = convert_message_length(buf, len, &length);
	if (status == CONVERT_STATUS_NEED_MORE)
		return (struct handshake_step){ .verdict = HANDSHAKE_NEED_MORE,
						.length = CONVERT_HEADER_LEN };
	if (status == CONVERT_STATUS_OK)
		status = convert_response_parse(buf, len, &response);
	if (status == CONVERT_STATUS_NEED_MORE)
		return (struct handshake_step){ .verdict = HANDSHAKE_NEED_MORE, .length = length };
	/* Sections 6.1, 6.2.1, 6.2.2: reset. ECONNRESET would wrongly blame the server. */
	if (status != CONVERT_STATUS_OK)
		return fail(HANDSHAKE_FAULT_PROTOCOL, ECONNREFUSED, convert_status_name(status));
	if (response.has_error)
		return fail_by_error(&response, server, ask);
	return (struct handshake_step){
		.verdict = HANDSHAKE_DONE,
		.length = response.length,
		.has_supported = response.has_supported,
		.supported = response.supported,
		.withholding = response.withholding,
		.server_mptcp = ask->mptcp ? server_mptcp(&response) : HANDSHAKE_SERVER_UNKNOWN,
	};
}

struct handshake_step handshake_on_close(void)
{
	return fail(HANDSHAKE_FAULT_PROTOCOL, ECONNREFUSED, "closed without a response");
}

struct handshake_step handshake_on_silence(bool alive)
{
	return fail(alive ? HANDSHAKE_FAULT_REFUSED : HANDSHAKE_FAULT_CONVERTER, ETIMEDOUT, "no answer in time");
}

struct handshake_step handshake_on_error(int error, bool proven)
{
	/* A socket that has already reported its error returns ENOTCONN: probably a refusal. */
	error = error == ENOTCONN ? ECONNREFUSED : error;
	return fail(error == ECONNRESET && proven ? HANDSHAKE_FAULT_REFUSED : HANDSHAKE_FAULT_CONVERTER, error,
		    error_text(error));
}

/* --- the ways of asking --- */

bool synack_keeps_way(const struct synack_seen *seen, enum ask_way *next)
{
	*next = seen->syn_data ? ASK_MPTCP : ASK_TCP;
	return seen->syn_data ? seen->acknowledged && !seen->sent_again : !seen->fallen_back;
}

enum syn_data_use ask_way_syn_data(enum ask_way way, bool mptcp, bool taken, bool corrected)
{
	if (way == ASK_MPTCP || !taken)
		return SYN_DATA_NEVER;
	return !mptcp || corrected ? SYN_DATA_ALWAYS : SYN_DATA_ON_ONE_PATH;
}

/* A rule at the converter removes the timestamps from each SYN with a request that gets through without the server's answer. */
bool synack_is_silent(uint8_t options)
{
	const int wanted = TCPI_OPT_SYN_DATA | TCPI_OPT_TIMESTAMPS;

	return (options & wanted) == wanted;
}

bool synack_confirms(uint8_t options, unsigned int withheld_ms, int64_t started_ns, int64_t now_ns)
{
	return synack_is_silent(options) && now_ns < started_ns + (int64_t)withheld_ms * CLOCK_NS_PER_MS;
}

/* --- the errno for an Error TLV --- */

/* Linux's errno for each code of ICMP Destination Unreachable: icmp_err_convert[], net/ipv4/icmp.c. */
static const int icmp_errno[] = {
	ENETUNREACH, EHOSTUNREACH, ENOPROTOOPT,	 ECONNREFUSED, EMSGSIZE,     EOPNOTSUPP,
	ENETUNREACH, EHOSTDOWN,	   ENONET,	 ENETUNREACH,  EHOSTUNREACH, ENETUNREACH,
	EHOSTUNREACH, EHOSTUNREACH, EHOSTUNREACH, EHOSTUNREACH,
};

/* Linux's errno for each code of ICMPv6 Destination Unreachable: tab_unreach[], net/ipv6/icmp.c. */
static const int icmpv6_errno[] = {
	ENETUNREACH, EACCES, EHOSTUNREACH, EHOSTUNREACH, ECONNREFUSED, EACCES, EACCES,
};

static const struct {
	uint8_t code;
	int error;
} table[] = {
	{ CONVERT_ERROR_CONNECTION_RESET, ECONNREFUSED },  /* an RST to a SYN */
	{ CONVERT_ERROR_NETWORK_FAILURE, ETIMEDOUT },      /* the server didn't answer */
	{ CONVERT_ERROR_NOT_AUTHORIZED, EHOSTUNREACH },    /* as "administratively prohibited" */
	{ CONVERT_ERROR_MISSING_COOKIE, EHOSTUNREACH },    /* likewise */
	{ CONVERT_ERROR_RESOURCE_EXCEEDED, ECONNREFUSED }, /* as a server with a full backlog */
	{ CONVERT_ERROR_UNSUPPORTED_VERSION, ECONNREFUSED },
	{ CONVERT_ERROR_MALFORMED_MESSAGE, ECONNREFUSED },
	{ CONVERT_ERROR_UNSUPPORTED_MESSAGE, ECONNREFUSED },
	{ CONVERT_ERROR_UNSUPPORTED_TCP_OPTION, ECONNREFUSED },
};

static int icmp_to_errno(const int *errors, size_t count, uint8_t code)
{
	return code < count ? errors[code] : EHOSTUNREACH;
}

int errno_map_error(uint8_t code, uint8_t value, bool ipv4)
{
	if (code == CONVERT_ERROR_DESTINATION_UNREACHABLE)
		return ipv4 ? icmp_to_errno(icmp_errno, sizeof(icmp_errno) / sizeof(int), value) :
			      icmp_to_errno(icmpv6_errno, sizeof(icmpv6_errno) / sizeof(int), value);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].code == code)
			return table[i].error;
	return is_server_error(code) ? EHOSTUNREACH : ECONNREFUSED;
}
