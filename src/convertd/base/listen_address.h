/* SPDX-License-Identifier: BSD-3-Clause */
/* listen_address.h - where clients are accepted: an address, a port, perhaps an interface */
#ifndef CONVERTD_LISTEN_ADDRESS_H
#define CONVERTD_LISTEN_ADDRESS_H

#include "common/sockaddr.h"

#include <net/if.h>
#include <stdbool.h>

/* There may be so many addresses. */
#define LISTEN_ADDRESSES_MAX 64

struct listen_address {
	union sockaddr_ip address; /* with its port; :: takes IPv4 as well */
	char device[IFNAMSIZ]; /* only what arrives by this interface; "": by whichever */
};

/* Same address, port and interface? */
bool listen_address_equal(const struct listen_address *a, const struct listen_address *b);

/* Writes it as ss(8) does, "192.0.2.1%eth0:1234", "[::]:1234"; returns @buf. */
#define LISTEN_ADDRESS_STRLEN (SOCKADDR_STRLEN + IFNAMSIZ)
const char *listen_address_format(const struct listen_address *where,
				  char buf[static LISTEN_ADDRESS_STRLEN]);

#endif
