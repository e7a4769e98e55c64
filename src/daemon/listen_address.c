/* SPDX-License-Identifier: BSD-3-Clause */
/* listen_address.c - the addresses of --listen and --metrics: text, comparison */
#include "config.h"

#include "daemon/listen_address.h"

#include <stdio.h>
#include <string.h>

bool listen_address_equal(const struct listen_address *a, const struct listen_address *b)
{
	return sockaddr_ip_equal(&a->address, &b->address) && strcmp(a->device, b->device) == 0;
}

const char *listen_address_format(const struct listen_address *where,
				  char buf[static LISTEN_ADDRESS_STRLEN])
{
	char text[SOCKADDR_STRLEN], *colon;

	sockaddr_ip_format(&where->address, text);
	colon = strrchr(text, ':');
	snprintf(buf, LISTEN_ADDRESS_STRLEN, "%.*s%s%s%s", (int)(colon - text), text,
		 where->device[0] ? "%" : "", where->device, colon);
	return buf;
}

/* ----- the addresses of --metrics: a TCP port, or a Unix socket ----- */

bool metrics_address_equal(const struct metrics_address *a, const struct metrics_address *b)
{
	return strcmp(a->path, b->path) == 0 &&
	       (a->path[0] || sockaddr_ip_equal(&a->address, &b->address));
}

const char *metrics_address_format(const struct metrics_address *where,
				   char buf[static METRICS_ADDRESS_STRLEN])
{
	char text[SOCKADDR_STRLEN];

	if (where->path[0])
		snprintf(buf, METRICS_ADDRESS_STRLEN, "unix:%s", where->path);
	else
		snprintf(buf, METRICS_ADDRESS_STRLEN, "%s", sockaddr_ip_format(&where->address, text));
	return buf;
}
