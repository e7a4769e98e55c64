/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoint.h - answers HTTP requests about a daemon, without delaying the daemon, and asks a daemon that runs */
#ifndef OBSERVE_ENDPOINT_H
#define OBSERVE_ENDPOINT_H

#include "common/problems.h"
#include "daemon/listen_address.h"

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct endpoint;

/* The most descriptors that an endpoint uses. */
#define ENDPOINT_FILES_MAX 20

struct endpoint_answer {
	unsigned status;   /* the HTTP status code */
	const char *type;  /* the Content-Type, a constant */
	char *body;        /* from malloc(); the endpoint frees it */
	size_t len;        /* of the body, in bytes */
};

/* Fills the answer to GET @path. Returns false if there is no such page. */
typedef bool endpoint_answer_fn(void *arg, const char *path, struct endpoint_answer *answer);

/*
 * endpoint_create() - listen at @where, and answer from now on
 * @answer: called with @arg for each request
 * Returns the endpoint, for endpoint_destroy(), or NULL after adding the error to @problems.
 */
struct endpoint *endpoint_create(struct event_base *base, const struct metrics_address *where,
				 endpoint_answer_fn *answer, void *arg, struct problems *problems);

/* Returns the address at which the endpoint listens. */
const struct metrics_address *endpoint_address(const struct endpoint *endpoint);

/* Ends all connections and stops listening. NULL is fine. */
void endpoint_destroy(struct endpoint *endpoint);

/*
 * endpoint_ask() - print the status of the daemon whose --metrics address is @where: "convertd status"
 * @program: the name of the daemon
 * Returns the exit status: EXIT_FAILURE after saying why on standard error.
 */
int endpoint_ask(const char *program, const struct metrics_address *where);

#endif
