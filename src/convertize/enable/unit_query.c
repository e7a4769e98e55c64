/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_query.c - what is known of a unit: by asking systemd, or from its files */
#include "config.h"

#include "convertize/enable/unit_query.h"

#include "convertize/enable/systemctl.h"
#include "convertize/enable/unit_judge.h"
#include "convertize/enable/unit_programs.h"
#include "convertize/enable/unit_search.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROPERTIES \
	"--property=Id,LoadState,LoadError,ActiveState,MainPID,Environment," UNIT_PROGRAMS_PROPERTIES "," UNIT_JUDGE_PROPERTIES

int unit_query(struct unit *out, const struct unit_scope *scope, const char *name)
{
	char instance[UNIT_NAME_MAX];
	const char *words[] = { "show", PROPERTIES, "--", instance, NULL };
	const char *id;
	int ret;

	memset(out, 0, sizeof(*out));
	unit_name_instance(instance, name);
	if (scope->offline) {
		out->text = unit_search(instance);
		if (!out->text) {
			fputs("convertize: out of memory\n", stderr);
			return -ENOMEM;
		}
	} else {
		ret = systemctl(scope->user, words, &out->text);
		if (ret)
			return ret;
	}
	unit_properties_parse(&out->properties, out->text);
	id = unit_property(&out->properties, "Id");
	snprintf(out->name, sizeof(out->name), "%s", *id ? id : instance);
	if (unit_name_is_template(name))
		unit_name_template(out->name);
	return strcmp(unit_property(&out->properties, "LoadState"), "not-found") == 0;
}

void unit_fini(struct unit *unit)
{
	free(unit->text);
	unit->text = NULL;
}
