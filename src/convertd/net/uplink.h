/* SPDX-License-Identifier: BSD-3-Clause */
/* uplink.h - watching the kernel's routes: which address families lead out of this host? */
#ifndef CONVERTD_UPLINK_H
#define CONVERTD_UPLINK_H

#include <stdbool.h>

struct event_base;
struct uplink;

/* Called in the thread of the event base some time after routes or addresses have changed. */
typedef void uplink_changed_fn(void *arg);

/*
 * uplink_create() - watch from now on
 * Returns NULL with errno set; convertd then runs without.
 */
struct uplink *uplink_create(struct event_base *base, uplink_changed_fn *changed, void *arg);

/* NULL is fine. */
void uplink_destroy(struct uplink *uplink);

/*
 * uplink_has_route() - is there a route that leads beyond the networks of this host's interfaces?
 * @family: AF_INET or AF_INET6
 * True as well where the kernel can't say.
 */
bool uplink_has_route(struct uplink *uplink, int family);

#endif
