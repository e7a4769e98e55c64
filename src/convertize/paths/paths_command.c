/* SPDX-License-Identifier: BSD-3-Clause */
/* paths_command.c - "convertize paths": settings are read, then paths are shown or managed */
#include "config.h"

#include "convertize/paths/paths_command.h"

#include "convertize/options/conf.h"
#include "paths/manage.h"

#include <stdlib.h>
#include <string.h>

static const char *environment(const char *name)
{
	return getenv(name);
}

static const char *value_of(enum option_id id)
{
	return getenv(option_table[id].variable);
}

/* Finds where a setting of the choice comes from: @problem begins with its name. */
static void tell_problem(const struct options *options, const char *problem)
{
	size_t len = strcspn(problem, ":");

	for (int i = 0; i < OPTION_COUNT; i++) {
		if (strlen(option_table[i].name) != len || strncmp(option_table[i].name, problem, len) != 0)
			continue;
		if (options->origin[i].file)
			fprintf(stderr, "convertize: %s:%u: %s\n", options->origin[i].file, options->origin[i].line, problem);
		else if (options_has(options, (enum option_id)i))
			fprintf(stderr, "convertize: --%s\n", problem);
		else
			fprintf(stderr, "convertize: %s%s\n", option_table[i].variable, problem + len);
	}
}

/* Does some path work? */
static int status_of(const struct paths_view *view)
{
	bool asked = false;

	for (size_t i = 0; i < view->count; i++) {
		if (view->rows[i].works == PATHS_WORKS_YES)
			return EXIT_SUCCESS;
		asked = asked || view->rows[i].works != PATHS_WORKS_UNASKED;
	}
	return asked || !view->count ? OPTIONS_CHECK_FAILED : EXIT_SUCCESS;
}

static int show(const struct options *options, const struct paths_choice *choice)
{
	static struct settings settings;
	static struct paths_view view;
	char option[OPTIONS_EXPLAIN_MAX];
	const char *rest;
	int status, error;

	settings_read(&settings, environment);
	if (!settings.enabled && getenv("CONVERT_ADDR")) {
		rest = options_explain(options, settings.problem, option);
		fprintf(stderr, "convertize: %s%s\n", option, rest);
		return OPTIONS_CHECK_USAGE;
	}
	error = -paths_look(&view, choice, &settings);
	if (error) {
		fprintf(stderr, "convertize: paths: networks can't be read: %s\n", strerror(error));
		return OPTIONS_CHECK_FAILED;
	}
	if (options->json)
		paths_print_json(stdout, &view);
	else
		paths_print(stdout, &view);
	status = status_of(&view);
	paths_view_fini(&view);
	return fflush(stdout) == 0 ? status : OPTIONS_CHECK_FAILED;
}

int paths(struct options *options)
{
	bool changes = options->manage || options->once || options->remove;
	enum paths_task task = options->once ? PATHS_TASK_ONCE : options->remove ? PATHS_TASK_REMOVE : PATHS_TASK_MANAGE;
	static struct conf_files files; /* messages name them */
	char problem[PATHS_PROBLEM_MAX];
	struct paths_choice choice;

	/* what is changed is changed for all users, and by the administrator's file alone */
	if (!conf_load(&files, options, changes))
		return OPTIONS_CHECK_USAGE;
	if (!paths_choice_read(&choice, value_of(OPTION_DEVICE), value_of(OPTION_NEVER_DEVICE), value_of(OPTION_BACKUP_DEVICE),
			       value_of(OPTION_TABLES), value_of(OPTION_BESIDE_VPN), problem)) {
		tell_problem(options, problem);
		return OPTIONS_CHECK_USAGE;
	}
	return changes ? paths_manage(&choice, task, options->dry_run) : show(options, &choice);
}
