/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_address.c - where questions about the converter are answered by HTTP: a TCP port, or a Unix socket */
#include "config.h"

#include "convertd/base/metrics_address.h"

#include <stdio.h>
#include <string.h>

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
