/* SPDX-License-Identifier: BSD-3-Clause */
/* surroundings.h - warns when this host's addresses, endpoints or routes aren't as a converter needs them */
#ifndef CONVERTD_SURROUNDINGS_H
#define CONVERTD_SURROUNDINGS_H

struct event_base;
struct settings;
struct surroundings;

/*
 * surroundings_create() - watch routes and addresses in the thread of @base
 * If that is impossible, a warning is logged. Returns NULL without memory.
 */
struct surroundings *surroundings_create(struct event_base *base);

/* NULL is fine. */
void surroundings_destroy(struct surroundings *surroundings);

/*
 * surroundings_check() - warn of what is missing for @settings, which come into force
 * They must stay valid until the next call, or surroundings_destroy(), for checks after changes.
 */
void surroundings_check(struct surroundings *surroundings, const struct settings *settings);

#endif
