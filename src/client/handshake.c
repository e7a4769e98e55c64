/* SPDX-License-Identifier: BSD-3-Clause */
/* handshake.c - the client's side of one conversion, as a machine without I/O */
#include "config.h"

#include "client/handshake.h"

#include "client/errno_map.h"

#include <errno.h>

ssize_t handshake_request(uint8_t *buf, size_t capacity, const union sockaddr_ip *server,
			  const uint8_t *cookie, size_t cookie_len)
{
	struct in6_addr address = sockaddr_ip_in6(server);
	struct convert_writer w;

	convert_writer_init(&w, buf, capacity);
	convert_write_connect(&w, &address, sockaddr_ip_port(server), NULL, 0);
	if (cookie_len)
		convert_write_cookie(&w, cookie, cookie_len);
	return convert_writer_finish(&w);
}

static struct handshake_step fail(enum handshake_fault fault, int error, const char *reason)
{
	return (struct handshake_step){
		.verdict = HANDSHAKE_FAIL, .fault = fault, .error = error, .reason = reason
	};
}

static struct handshake_step fail_by_error(const struct convert_response *response,
					   const union sockaddr_ip *server)
{
	uint8_t code = response->error_code;
	struct convert_span value = response->error_value;
	struct handshake_step step;

	step = fail(errno_map_is_server(code) ? HANDSHAKE_FAULT_SERVER : HANDSHAKE_FAULT_CONVERTER,
		    errno_map_error(code, value.data[0], sockaddr_ip_is_v4(server)),
		    convert_error_name(code));
	/* Behind one byte of zero (Section 6.2.8). */
	if (code == CONVERT_ERROR_MISSING_COOKIE && value.len > 1)
		step.cookie = (struct convert_span){ value.data + 1, value.len - 1 };
	return step;
}

struct handshake_step handshake_on_bytes(const uint8_t *buf, size_t len,
					 const union sockaddr_ip *server)
{
	struct convert_response response;
	enum convert_status status;
	size_t length = 0;

	status = convert_message_length(buf, len, &length);
	if (status == CONVERT_NEED_MORE)
		return (struct handshake_step){ .verdict = HANDSHAKE_NEED_MORE,
						.length = CONVERT_HEADER_LEN };
	if (status == CONVERT_OK)
		status = convert_response_parse(buf, len, &response);
	if (status == CONVERT_NEED_MORE)
		return (struct handshake_step){ .verdict = HANDSHAKE_NEED_MORE, .length = length };
	/* Sections 6.1, 6.2.1, 6.2.2: reset. ECONNRESET would be a lie of the server. */
	if (status != CONVERT_OK)
		return fail(HANDSHAKE_FAULT_PROTOCOL, ECONNREFUSED, convert_status_name(status));
	if (response.has_error)
		return fail_by_error(&response, server);
	return (struct handshake_step){ .verdict = HANDSHAKE_DONE, .length = response.length };
}

struct handshake_step handshake_on_close(void)
{
	return fail(HANDSHAKE_FAULT_PROTOCOL, ECONNREFUSED, "closed without a response");
}
