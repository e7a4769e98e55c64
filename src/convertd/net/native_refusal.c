/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * native_refusal.c - an Error TLV as the network itself would say it: by a reset or an ICMP message (no I/O)
 *
 * An application's errno comes from the ICMP code (Linux: icmp_err_convert[], tab_unreach[]). Where client and server are of
 * one family the code is handed on. Between the families it becomes the one that gives the same errno, or the nearest.
 */
#include "config.h"

#include "convertd/net/native_refusal.h"

#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>

uint8_t native_prohibited(bool client_v4)
{
	return client_v4 ? ICMP_PKT_FILTERED : ICMP6_DST_UNREACH_ADMIN;
}

static uint8_t no_host(bool client_v4)
{
	return client_v4 ? ICMP_HOST_UNREACH : ICMP6_DST_UNREACH_ADDR;
}

/* What ICMPv6 has for a code of ICMP. */
static uint8_t v6_code(uint8_t v4)
{
	switch (v4) {
	case ICMP_NET_UNREACH:
	case ICMP_NET_UNKNOWN:
	case ICMP_NET_UNR_TOS:
		return ICMP6_DST_UNREACH_NOROUTE;
	case ICMP_PORT_UNREACH:
		return ICMP6_DST_UNREACH_NOPORT;
	case ICMP_NET_ANO:
	case ICMP_HOST_ANO:
	case ICMP_PKT_FILTERED:
		return ICMP6_DST_UNREACH_ADMIN;
	default:
		return ICMP6_DST_UNREACH_ADDR;
	}
}

/* What ICMP has for a code of ICMPv6. */
static uint8_t v4_code(uint8_t v6)
{
	switch (v6) {
	case ICMP6_DST_UNREACH_NOROUTE:
		return ICMP_NET_UNREACH;
	case ICMP6_DST_UNREACH_NOPORT:
		return ICMP_PORT_UNREACH;
	case ICMP6_DST_UNREACH_BEYONDSCOPE:
	case ICMP6_DST_UNREACH_ADDR:
		return ICMP_HOST_UNREACH;
	default: /* prohibited, or by a policy (RFC 4443 3.1) */
		return ICMP_PKT_FILTERED;
	}
}

uint8_t native_refusal(const struct downstream_error *refusal, bool server_v4, bool client_v4)
{
	uint8_t code = refusal->value;

	switch (refusal->code) {
	case CONVERT_ERROR_CONNECTION_RESET:
		return NATIVE_RESET;
	case CONVERT_ERROR_NETWORK_FAILURE:
		return no_host(client_v4);
	case CONVERT_ERROR_DESTINATION_UNREACHABLE:
		break;
	default:
		return native_prohibited(client_v4);
	}
	if (server_v4 != client_v4)
		code = client_v4 ? v4_code(code) : v6_code(code);
	/* A message that says that the packet was too large would have the client send a smaller one. */
	if (code >= NATIVE_CODES || (client_v4 && code == ICMP_FRAG_NEEDED))
		return no_host(client_v4);
	return code;
}
