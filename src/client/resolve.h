/* SPDX-License-Identifier: BSD-3-Clause */
/* resolve.h - the addresses of a converter that is configured by name */
#ifndef CLIENT_RESOLVE_H
#define CLIENT_RESOLVE_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * resolve_converter() - the addresses of a converter that was configured by name, best first
 * @name: a host name, or "_convert._tcp.DOMAIN", whose SRV records are asked for (Section
 *        10.1, RFC 2782)
 * @port: host byte order, for host names; SRV records bring their own
 * @timeout_ms: about how long all of it may take; see resolver_state_limit() for how exactly
 * @out, @max: filled with distinct addresses of both families: the targets of SRV records in
 *              their order, those of one target as getaddrinfo(3) has them. None takes all the
 *              room: each of the targets that follow keeps two places, and each family of a
 *              target gets half of its room if need be. Addresses that no converter can have
 *              (unspecified, multicast, broadcast) are left out.
 * @reason: set to a static text where 0 is returned; may be NULL
 *
 * Returns how many, or 0 if there is none now. Nothing of the calling thread's resolver (_res,
 * h_errno) or of its errno has changed, and it doesn't matter what the application had made of
 * it; the C library's files, nsswitch modules and name servers are asked. It allocates memory,
 * and blocks.
 */
size_t resolve_converter(const char *name, uint16_t port, int timeout_ms, union sockaddr_ip *out,
			 size_t max, const char **reason);

/*
 * resolve_is_running() - is the calling thread inside of resolve_converter()?
 * A module of nsswitch.conf may make connections there, and so may a signal handler meanwhile:
 * they can't wait for the converter's address. resolve_converter() itself returns 0 then.
 */
bool resolve_is_running(void);

#endif
