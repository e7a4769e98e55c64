/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tlvdump.c - shows a Convert message in words
 *
 * Hexadecimal digits on stdin, a line for each TLV on stdout: its name, a tab, and what it says, so
 * that programs can read it too. It decodes with the library that the shim and convertd are made of.
 * Ends with 0 for a valid message, with 1 for anything else.
 */
#include "config.h"

#include "common/sockaddr.h"
#include "convert/convert.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static int hex_digit(int c)
{
	const char *digits = "0123456789abcdef", *found = strchr(digits, tolower(c));

	return c && found ? (int)(found - digits) : -1;
}

/* All of stdin, white space left out. False for what isn't hexadecimal, or is more than fits. */
static bool read_hex(uint8_t *buf, size_t capacity, size_t *len)
{
	int c, high = -1;

	*len = 0;
	while ((c = getchar()) != EOF) {
		int digit = hex_digit(c);

		if (isspace(c))
			continue;
		if (digit < 0 || *len == capacity)
			return false;
		if (high < 0) {
			high = digit;
		} else {
			buf[(*len)++] = (uint8_t)(high << 4 | digit);
			high = -1;
		}
	}
	return high < 0;
}

static void print_span(const char *label, struct convert_span span)
{
	if (!span.len)
		return;
	printf("%s", label);
	for (size_t i = 0; i < span.len; i++)
		printf("%02x", span.data[i]);
}

static void print_connect(const struct convert_request *request)
{
	union sockaddr_ip server;
	char text[SOCKADDR_STRLEN];

	sockaddr_ip_set(&server, AF_UNSPEC, &request->address, request->port);
	printf("%s", sockaddr_ip_format(&server, text));
	print_span(", with TCP options ", request->tcp_options);
}

static void print_error(const struct convert_response *response)
{
	printf("%u, %s", response->error_code, convert_error_name(response->error_code));
	print_span(", value ", response->error_value);
}

/* The message's TLVs, in their order on the wire; @request or @response is NULL. */
static void print_tlvs(size_t length, const struct convert_request *request,
		       const struct convert_response *response)
{
	struct convert_span list = request ? request->tlvs : response->tlvs;
	struct convert_tlv tlv;

	printf("Convert header\tversion %d, %zu bytes\n", CONVERT_PROTOCOL_VERSION, length);
	while (convert_tlv_next(&list, &tlv) == CONVERT_STATUS_OK) {
		printf("%s\t", convert_tlv_name(tlv.type));
		if (request && tlv.type == CONVERT_TLV_CONNECT)
			print_connect(request);
		else if (response && tlv.type == CONVERT_TLV_ERROR)
			print_error(response);
		else if (response && tlv.type == CONVERT_TLV_WITHHOLDING &&
			 response->has_withholding)
			printf("SYNs are %swithheld, %u ms at most",
			       response->withholding.withheld ? "" : "not ",
			       response->withholding.limit_ms);
		else if (response && tlv.type == CONVERT_TLV_ECHO && response->has_echo)
			printf("what follows the request comes back, %u KiB at most",
			       response->echo_kib);
		else if (tlv.type == CONVERT_TLV_INFO)
			printf("what do you support?");
		else
			print_span("", tlv.value);
		putchar('\n');
	}
}

int main(void)
{
	uint8_t message[CONVERT_MESSAGE_MAX + 65536];
	struct convert_request request;
	struct convert_response response;
	enum convert_status as_request, as_response;
	size_t len;

	if (!read_hex(message, sizeof(message), &len)) {
		fprintf(stderr, "tlvdump: stdin isn't an even number of hexadecimal digits\n");
		return 1;
	}
	as_request = convert_request_parse(message, len, &request);
	as_response = convert_response_parse(message, len, &response);
	if (as_request == CONVERT_STATUS_OK) {
		print_tlvs(request.length, &request, NULL);
		len -= request.length;
	} else if (as_response == CONVERT_STATUS_OK) {
		print_tlvs(response.length, NULL, &response);
		len -= response.length;
	} else {
		printf("invalid\tas a request: %s; as a response: %s\n",
		       convert_status_name(as_request), convert_status_name(as_response));
		return 1;
	}
	if (len)
		printf("data behind it\t%zu bytes\n", len);
	return 0;
}
