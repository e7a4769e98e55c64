/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_address.h - where questions about the converter are answered by HTTP: a TCP port, or a Unix socket */
#ifndef CONVERTD_METRICS_ADDRESS_H
#define CONVERTD_METRICS_ADDRESS_H

#include "common/sockaddr.h"

#include <stdbool.h>

/* There may be so many addresses. */
#define METRICS_ADDRESSES_MAX 4

/* Bytes of a Unix socket's path, with the NUL: unix(7). */
#define METRICS_PATH_MAX 108

struct metrics_address {
	union sockaddr_ip address;
	char path[METRICS_PATH_MAX]; /* of a Unix socket; "": the address counts */
};

/* Same address and port, or same path? */
bool metrics_address_equal(const struct metrics_address *a, const struct metrics_address *b);

/* Writes it as --metrics takes it, "127.0.0.1:9103", "unix:/run/convertd/metrics.sock"; returns @buf. */
#define METRICS_ADDRESS_STRLEN 128
const char *metrics_address_format(const struct metrics_address *where,
				   char buf[static METRICS_ADDRESS_STRLEN]);

#endif
