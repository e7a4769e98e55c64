/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_query.h - what is known of a unit: by asking systemd, or from its files */
#ifndef CONVERTIZE_UNIT_QUERY_H
#define CONVERTIZE_UNIT_QUERY_H

#include "convertize/enable/unit_name.h"
#include "convertize/enable/unit_properties.h"

#include <stdbool.h>

/* Where units are looked for. */
struct unit_scope {
	bool user;    /* in the user's own service manager */
	bool offline; /* in files, without asking systemd */
};

struct unit {
	char name[UNIT_NAME_MAX]; /* its own, where an alias was asked for; a template's */
	struct unit_properties properties;
	char *text; /* of the properties */
};

/*
 * unit_query() - find a service
 * @name: complete. @out: to be ended by unit_fini(), unless the result is negative.
 * Returns 0; 1 if there is no such service; or -errno after saying on standard error why it can't be known.
 */
int unit_query(struct unit *out, const struct unit_scope *scope, const char *name);

void unit_fini(struct unit *unit);

#endif
