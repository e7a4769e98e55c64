/* SPDX-License-Identifier: BSD-3-Clause */
/* surroundings.h - what is missing around this host for it to be a good converter: told when it is so */
#ifndef CONVERTD_SURROUNDINGS_H
#define CONVERTD_SURROUNDINGS_H

struct event_base;
struct settings;
struct surroundings;

/*
 * surroundings_create() - for the thread of @base, where changes of routes and addresses are seen
 * Where they can't be watched, the log says so. Returns NULL without memory.
 */
struct surroundings *surroundings_create(struct event_base *base);

/* NULL is fine. */
void surroundings_destroy(struct surroundings *surroundings);

/*
 * surroundings_check() - @settings come into force: warn of what is missing for them
 * They are kept for later looks, until the next call.
 */
void surroundings_check(struct surroundings *surroundings, const struct settings *settings);

#endif
