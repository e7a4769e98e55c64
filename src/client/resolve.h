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
 * works with any state into which the application has put that resolver. Uses the C library's files, nsswitch modules and name servers.
 * Allocates memory, and blocks.
 */
size_t resolve_converter(const char *name, uint16_t port, int timeout_ms, union sockaddr_ip *out,
			 size_t max, const char **reason);

/*
 * resolve_is_running() - is the calling thread inside of resolve_converter()?
 * A module of nsswitch.conf may make connections there, and so may a signal handler meanwhile: they can't wait for the converter's address.
 * resolve_converter() itself returns 0 then.
 */
bool resolve_is_running(void);

/* --- converters that a domain announces by SRV records (Section 10.1, RFC 2782): srv.c --- */

#define SRV_NAME_MAX 254 /* bytes of a name as text, NUL included (RFC 1035 2.3.4) */

struct srv_target {
	char name[SRV_NAME_MAX];   /* absolute, in lower case, no dot at the end, never empty */
	uint16_t port;             /* host byte order, never 0 */
	uint16_t priority, weight; /* as RFC 2782 has them: the lowest priority comes first */
};

/* Is @name "_convert._tcp." and a domain, in upper or lower case? */
bool srv_is_service(const char *name);

/*
 * srv_parse() - read a name server's response to a question for SRV records
 * @data, @len: the response, from its header on (RFC 1035 4.1); any bytes
 * @owner: the name in the question. Follows its aliases (CNAME) in the response.
 * @out, @max: the targets, in no order; of more than @max those with the lowest priorities
 *
 * Ignores records of other names, types and classes, and the sections behind the answers: the caller asks for the addresses of targets.
 * Ignores unusable targets: the root, which says that there is no such service (RFC 2782), names that no host can have, and port 0. Uses
 * the whole records of a truncated response.
 *
 * Returns the number of targets, 0 if no record is usable; -ENOENT if there is no record; -EAGAIN if the server says that it failed;
 * -EBADMSG if the bytes aren't a response to a question.
 */
int srv_parse(const uint8_t *data, size_t len, const char *owner, struct srv_target *out,
	      size_t max);

/* Returns a number from 0 to below @limit, all equally likely; @limit is at least 1. */
typedef uint32_t srv_random(void *arg, uint32_t limit);

/*
 * srv_order() - sort targets into the order in which to try them
 * By priority; among equals at random, with the weights of RFC 2782 ("Weight").
 */
void srv_order(struct srv_target *targets, size_t count, srv_random *random, void *arg);

#endif
