/* SPDX-License-Identifier: BSD-3-Clause */
/* uplink.h - watching the kernel's routes: which address families lead out of this host? */
#ifndef CONVERTD_UPLINK_H
#define CONVERTD_UPLINK_H

#include <stdbool.h>

struct event_base;
struct uplink;

/* Called in the thread of the event base, about a second after routes or addresses have changed. */
typedef void uplink_changed_fn(void *arg);

/*
 * uplink_create() - watch routes and addresses from now on
 * @changed: called with @arg after changes
 * Returns the watch, for uplink_destroy(), or NULL with errno set; convertd then runs without.
 */
struct uplink *uplink_create(struct event_base *base, uplink_changed_fn *changed, void *arg);

/* NULL is fine. */
void uplink_destroy(struct uplink *uplink);

/*
 * uplink_has_route() - tell whether a route of this family leads beyond the networks of this host's interfaces
 * @family: AF_INET or AF_INET6
 * Returns true as well where the kernel can't be asked.
 */
bool uplink_has_route(struct uplink *uplink, int family);

#endif
