/* SPDX-License-Identifier: BSD-3-Clause */
/* resolve.h - the addresses of a converter that is configured by name */
#ifndef CLIENT_RESOLVE_H
#define CLIENT_RESOLVE_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * resolve_converter() - resolve a converter that is configured by name into its addresses, best first
 * @name: a host name, or "_convert._tcp.DOMAIN", to look up its SRV records (Section 10.1, RFC 2782)
 * @port: host byte order, for host names; SRV records have their own
 * @timeout_ms: about how long all of it may take; resolver_state_limit() says how exactly
 * @out, @max: filled with distinct addresses of both families: the targets of SRV records in their order, those of one target in the order
 * of getaddrinfo(3). No target takes all the room: each later target keeps two places, and each family of a target gets half of its room if
 * necessary. Leaves out addresses that no converter can have (unspecified, multicast, broadcast).
 * @reason: set to a static text if 0 is returned; may be NULL
 *
 * Returns the number of addresses, or 0 if there is none now. Leaves the calling thread's resolver (_res, h_errno) and errno unchanged, and
 * works whatever state the application has put that resolver into. Uses the C library's files, nsswitch modules and name servers. Allocates
 * memory, and blocks.
 */
size_t resolve_converter(const char *name, uint16_t port, int timeout_ms, union sockaddr_ip *out,
			 size_t max, const char **reason);

/*
 * resolve_is_running() - is the calling thread inside of resolve_converter()?
 * A module of nsswitch.conf may make connections there, and so may a signal handler meanwhile: they can't wait for the converter's address.
 * resolve_converter() itself returns 0 then.
 */
bool resolve_is_running(void);

#endif
