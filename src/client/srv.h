/* SPDX-License-Identifier: BSD-3-Clause */
/* srv.h - converters that a domain announces by SRV records (Section 10.1, RFC 2782) */
#ifndef CLIENT_SRV_H
#define CLIENT_SRV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SRV_NAME_MAX 254 /* bytes of a name as text, NUL included (RFC 1035 2.3.4) */

struct srv_target {
	char name[SRV_NAME_MAX];   /* absolute, in lower case, no dot at the end, never empty */
	uint16_t port;             /* host byte order, never 0 */
	uint16_t priority, weight; /* as RFC 2782 has them: the lowest priority comes first */
};

/* Is @name "_convert._tcp." and a domain, in whatever case? */
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
