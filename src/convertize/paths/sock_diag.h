/* SPDX-License-Identifier: BSD-3-Clause */
/* sock_diag.h - the connections that are open to a converter from one of this host's addresses, by sock_diag(7) */
#ifndef CONVERTIZE_SOCK_DIAG_H
#define CONVERTIZE_SOCK_DIAG_H

#include "common/sockaddr.h"

#include <stddef.h>
#include <stdint.h>

struct subflows {
	size_t count;            /* each is a subflow, or a connection by plain TCP */
	uint64_t received, sent; /* bytes: that have come, and that the converter has acknowledged */
	uint32_t heard_ms;       /* since something came over one of them, at the latest; 0 if there are none */
};

/* subflows_read() - add those between two addresses to @out, whatever the local port; returns 0 or -errno. No privilege is needed. */
int subflows_read(const union sockaddr_ip *local, const union sockaddr_ip *converter, struct subflows *out);

#endif
