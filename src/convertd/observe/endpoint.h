/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoint.h - answers HTTP requests about the converter, and can't get into its way */
#ifndef CONVERTD_ENDPOINT_H
#define CONVERTD_ENDPOINT_H

#include "convertd/base/metrics_address.h"

#include <stdbool.h>
#include <stddef.h>

struct endpoint;
struct event_base;
struct problems;

/* Descriptors that an endpoint uses at most. */
#define ENDPOINT_FILES_MAX 20

struct endpoint_answer {
	unsigned status;   /* of HTTP */
	const char *type;  /* Content-Type, a constant */
	char *body;        /* from malloc() */
	size_t len;
};

/* Fills the answer to GET @path. Returns false where there is no such page. */
typedef bool endpoint_answer_fn(void *arg, const char *path, struct endpoint_answer *answer);

/*
 * endpoint_create() - listen, and answer from now on
 * @inherited: a socket that listens there already, which it takes over; -1: none
 * Returns NULL after telling @problems.
 */
struct endpoint *endpoint_create(struct event_base *base, const struct metrics_address *where,
				 int inherited, endpoint_answer_fn *answer, void *arg,
				 struct problems *problems);

/* Where clients arrive; it stays the endpoint's. */
int endpoint_socket(const struct endpoint *endpoint);

/* Another process has the socket now: endpoint_destroy() will not unlink its path. */
void endpoint_leave(struct endpoint *endpoint);

/* Where it listens. */
const struct metrics_address *endpoint_address(const struct endpoint *endpoint);

/* Ends all connections. NULL is fine. */
void endpoint_destroy(struct endpoint *endpoint);

#endif
