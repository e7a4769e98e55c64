/* SPDX-License-Identifier: BSD-3-Clause */
/* family_routes.h - watches the kernel's routes: tells families.c which address families lead out of this host */
#ifndef CONVERTD_FAMILY_ROUTES_H
#define CONVERTD_FAMILY_ROUTES_H

struct event_base;
struct family_routes;
struct settings;

/* Watches routes and addresses in the thread of @base; logs a warning where it can't. Returns NULL without memory. */
struct family_routes *family_routes_create(struct event_base *base);

/* NULL is fine. */
void family_routes_destroy(struct family_routes *routes);

/*
 * family_routes_check() - looks at the routes when @settings come into force, and again after each change of routes
 * Warns of a family that destinations are allowed in and no route leads out of. @settings must stay valid until the
 * next call or family_routes_destroy().
 */
void family_routes_check(struct family_routes *routes, const struct settings *settings);

#endif
