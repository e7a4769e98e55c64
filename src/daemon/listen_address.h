/* SPDX-License-Identifier: BSD-3-Clause */
/* listen_address.h - the addresses of --listen and --metrics: text, comparison */
#ifndef DAEMON_LISTEN_ADDRESS_H
#define DAEMON_LISTEN_ADDRESS_H

#include "common/sockaddr.h"

#include <net/if.h>
#include <stdbool.h>

/* The most addresses of --listen. */
#define LISTEN_ADDRESSES_MAX 64

struct listen_address {
	union sockaddr_ip address; /* with its port; :: takes IPv4 as well */
	char device[IFNAMSIZ]; /* accepts only connections by this interface; "": by any */
};

/* Tells whether address, port and interface are the same. */
bool listen_address_equal(const struct listen_address *a, const struct listen_address *b);

/* Writes the address as ss(8) does, "192.0.2.1%eth0:1234", "[::]:1234". Returns @buf. */
#define LISTEN_ADDRESS_STRLEN (SOCKADDR_STRLEN + IFNAMSIZ)
const char *listen_address_format(const struct listen_address *where,
				  char buf[static LISTEN_ADDRESS_STRLEN]);

/* ----- the addresses of --metrics: a TCP port, or a Unix socket ----- */

/* The most addresses of --metrics. */
#define METRICS_ADDRESSES_MAX 4

/* Bytes of a Unix socket's path, with the NUL: unix(7). */
#define METRICS_PATH_MAX 108

struct metrics_address {
	union sockaddr_ip address;
	char path[METRICS_PATH_MAX]; /* of a Unix socket; "": @address is in use */
};

/* Tells whether address and port, or the paths, are the same. */
bool metrics_address_equal(const struct metrics_address *a, const struct metrics_address *b);

/* Writes the address as --metrics takes it, "127.0.0.1:9103", "unix:/run/convertd/metrics.sock". Returns @buf. */
#define METRICS_ADDRESS_STRLEN 128
const char *metrics_address_format(const struct metrics_address *where,
				   char buf[static METRICS_ADDRESS_STRLEN]);

#endif
