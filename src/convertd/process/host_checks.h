/* SPDX-License-Identifier: BSD-3-Clause */
/* host_checks.h - watches the kernel's routes: tells families.c which address families lead out of this host */
#ifndef CONVERTD_HOST_CHECKS_H
#define CONVERTD_HOST_CHECKS_H

#include <stdbool.h>

struct event_base;
struct family_routes;
struct settings;

/* Watches routes and addresses in the thread of @base; logs a warning if that fails. Returns NULL without memory. */
struct family_routes *family_routes_create(struct event_base *base);

/* NULL is fine. */
void family_routes_destroy(struct family_routes *routes);

/*
 * family_routes_check() - look at the routes when @settings come into force, and again after each change of routes
 * Warns if destinations of a family are allowed but no route of that family leads out of this host. @settings must
 * stay valid until the next call or family_routes_destroy().
 */
void family_routes_check(struct family_routes *routes, const struct settings *settings);

/* ----- the sysctls that convertd wants, with the consequences of other values ----- */

enum sysctl_rule {
	SYSCTL_IS,    /* it should be this value */
	SYSCTL_LEAST, /* it should be this value or more */
	SYSCTL_MOST,  /* it should be this value or less */
	SYSCTL_BITS,  /* it should have these bits, and may have others */
};

struct sysctl_wish {
	const char *name; /* as sysctl(8) writes it */
	enum sysctl_rule rule;
	int value;
	const char *otherwise; /* the consequence of another value, for the log */
};

/* The list, whose last entry has no name. contrib/sysctl.d/50-convertd.conf has the same sysctls. */
extern const struct sysctl_wish sysctl_wishes[];

/* Tells whether @value is as wished. */
bool sysctl_wish_met(const struct sysctl_wish *wish, int value);

/* Returns the value that the sysctl should have instead of @value, which isn't as wished. */
int sysctl_wish_remedy(const struct sysctl_wish *wish, int value);

#endif
