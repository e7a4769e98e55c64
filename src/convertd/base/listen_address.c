/* SPDX-License-Identifier: BSD-3-Clause */
/* listen_address.c - where clients are accepted: an address, a port, perhaps an interface */
#include "config.h"

#include "convertd/base/listen_address.h"

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
