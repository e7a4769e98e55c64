/* SPDX-License-Identifier: BSD-3-Clause */
/* errno_map.c - translates an Error TLV into the errno of a direct connection */
#include "config.h"

#include "client/errno_map.h"

#include "convert/convert.h"

#include <errno.h>
#include <stddef.h>

#define SERVER_CLASS_FIRST 96
#define SERVER_CLASS_LAST 127

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
	return errno_map_is_server(code) ? EHOSTUNREACH : ECONNREFUSED;
}

bool errno_map_is_server(uint8_t code)
{
	return code >= SERVER_CLASS_FIRST && code <= SERVER_CLASS_LAST;
}
