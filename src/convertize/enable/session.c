/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.c - login sessions that are converted by default
 *
 * Whatever is wrong, a session must start. So nothing is printed for it then, and the reason goes to standard error, which the
 * session's scripts throw away and "convertize list" shows again. A set-user-ID program that the session starts isn't affected:
 * its loader takes no library from LD_PRELOAD whose name has a slash (ld.so(8)).
 */
#include "config.h"

#include "convertize/enable/session.h"

#include "convertize/run/launch.h"
#include "convertize/run/library.h"
#include "convertize/enable/unit_dropin.h"
#include "convertize/enable/unit_place.h"
#include "convertize/run/wrapper.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS_MAX 1024

/* Finds out who runs this. The names of groups stay allocated: it is done once. */
static void find_user(struct session_user *user)
{
	static const char *names[GROUPS_MAX + 2];
	static gid_t groups[GROUPS_MAX + 1];
	const struct passwd *passwd = getpwuid(getuid());
	int count = getgroups(GROUPS_MAX, groups), known = 0;

	user->uid = getuid();
	user->name = passwd ? strdup(passwd->pw_name) : NULL;
	groups[count < 0 ? 0 : count] = getgid();
	for (int i = 0; i <= (count < 0 ? 0 : count); i++) {
		const struct group *group = getgrgid(groups[i]);

		names[known] = group ? strdup(group->gr_name) : NULL;
		known += names[known] != NULL;
	}
	names[known] = NULL;
	user->groups = names;
}

/* Are this user's sessions converted? Returns 1, 0 or, if the files are wrong, -1. */
static int is_wanted(struct conf_files *files, struct options *options, bool system_only, const char **file)
{
	struct session_user user;

	*file = NULL;
	if (!conf_load(files, options, system_only))
		return -1;
	find_user(&user);
	return session_decide(files, &user, file);
}

/* Prints a variable: in double quotes shells and systemd take the same escapes. */
static void print_variable(bool shell, const char *name, const char *value)
{
	printf("%s%s=\"", shell ? "export " : "", name);
	for (; *value; value++)
		printf("%s%c", strchr("\"\\`$", *value) ? "\\" : "", *value);
	fputs("\"\n", stdout);
}

static bool print_session(const struct options *options, const struct library *library)
{
	char *preload = wrapper_preloads_with(getenv("LD_PRELOAD"), library_preload(library, &library->builds[0]));
	bool right = preload && unit_value_is_plain(preload);

	for (int i = 0; right && i < OPTION_COUNT; i++) {
		const char *variable = option_table[i].variable, *value = variable ? getenv(variable) : NULL;

		right = !value || !options->origin[i].file || unit_value_is_plain(value);
	}
	for (int i = 0; right && i < OPTION_COUNT; i++)
		if (option_is_library_variable((enum option_id)i) &&
		    (options->origin[i].file || options_has(options, (enum option_id)i)))
			print_variable(options->shell, option_table[i].variable, getenv(option_table[i].variable));
	/* the last one: a shell that ends the program that reads this early has nothing preloaded without a converter */
	if (right)
		print_variable(options->shell, "LD_PRELOAD", preload);
	free(preload);
	return right && fflush(stdout) == 0;
}

int session_environment(struct options *options)
{
	static char problem[LIBRARY_PROBLEM_MAX];
	static struct settings settings;
	static struct conf_files files;
	static struct library library;
	const char *file;
	int wanted;

	/* it was decided already: by a session around this one, or by the user, for whom an empty one means no */
	if (getenv("CONVERT_ADDR") && !options_has(options, OPTION_CONVERTER))
		return EXIT_SUCCESS;
	wanted = is_wanted(&files, options, false, &file);
	if (wanted < 0)
		return OPTIONS_UNITS_USAGE;
	if (!wanted)
		return EXIT_SUCCESS;
	if (!launch_read_settings(&settings, options))
		return OPTIONS_UNITS_USAGE;
	options_find_library(options);
	if (!library_find(&library, options->library, problem)) {
		fprintf(stderr, "convertize: %s\n", problem);
		return OPTIONS_UNITS_FAILED;
	}
	return print_session(options, &library) ? EXIT_SUCCESS : OPTIONS_UNITS_FAILED;
}

/* Can a value stand in a line of the file as it is? A # behind a blank would begin a comment. */
static bool is_line(const char *value)
{
	size_t len = strlen(value);

	return unit_value_is_plain(value) && len && !strchr(" #", value[0]) && value[len - 1] != ' ' && !strstr(value, " #");
}

/* Composes the user's file, to be freed: what the command line and the environment say. NULL: a value can't stand in it. */
static char *compose(const struct options *options, bool on)
{
	char *text = NULL;
	bool right = true;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out,
		UNIT_MARKER ": \"convertize enable --session\" writes this file anew, and \"convertize disable --session\"\n"
			    "# takes it back. Without this line it is yours alone. See convertize.conf(5).\n"
			    "session %s\n",
		on ? "yes" : "no");
	for (int i = 0; on && i < OPTION_COUNT; i++) {
		const struct option_row *row = &option_table[i];
		const char *value = option_is_setting((enum option_id)i) ? getenv(row->variable) : NULL;

		if (!value || !*value || options->origin[i].file || !(row->scope & SCOPE(COMMAND_ENABLE)))
			continue;
		if (!row->argument)
			value = strcmp(value, row->value) == 0 ? "yes" : "no";
		if (!is_line(value)) {
			fprintf(stderr, "convertize: %s: \"%.100s\" can't stand in a file of lines\n", row->variable, value);
			right = false;
		}
		fprintf(out, "%s = %s\n", row->name, value);
	}
	right = !ferror(out) && right;
	if (fclose(out) == 0 && right)
		return text;
	free(text);
	return NULL;
}

/* Finds the user's file. Returns false, with the reason said, if there is none, or if the user has written it. */
static bool find_file(char path[static PATH_MAX], const char *line)
{
	char *text;
	bool exists, ours;

	if (!conf_user_path(path)) {
		fputs("convertize: --session: HOME is not set to a directory; set it\n", stderr);
		return false;
	}
	exists = access(path, F_OK) == 0;
	text = exists ? place_read(path) : NULL;
	ours = text;
	free(text);
	if (exists && !ours)
		fprintf(stderr, "convertize: %s: you have written it yourself: write the line \"%s\" into it\n", path, line);
	return !exists || ours;
}

static int write_file(const struct options *options, const char *path, bool on)
{
	char *text = compose(options, on);
	enum place_result result = PLACE_FAILED;

	if (text && options->dry_run) {
		printf("# %s\n%s", path, text);
		result = PLACE_NOTHING;
	} else if (text) {
		result = place_write(path, text, 0600); /* it may have a cookie */
	}
	free(text);
	if (result == PLACE_FAILED)
		return OPTIONS_UNITS_FAILED;
	if (!options->dry_run)
		printf("Login sessions of this user are %sconverted, from the next one on (%s).\n", on ? "" : "not ", path);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : OPTIONS_UNITS_FAILED;
}

int session_enable(struct options *options)
{
	static char problem[LIBRARY_PROBLEM_MAX];
	static struct settings settings;
	static struct conf_files files;
	static struct library library;
	char path[PATH_MAX];

	/* the user's own file is replaced: what it says now doesn't count */
	if (!find_file(path, "session yes") || !conf_load(&files, options, true) || !launch_read_settings(&settings, options))
		return OPTIONS_UNITS_USAGE;
	options_find_library(options);
	if (!library_find(&library, options->library, problem)) {
		fprintf(stderr, "convertize: %s\n", problem);
		return OPTIONS_UNITS_FAILED;
	}
	return write_file(options, path, true);
}

int session_disable(struct options *options)
{
	static struct conf_files files;
	char path[PATH_MAX];
	const char *file;

	if (!find_file(path, "session no"))
		return OPTIONS_UNITS_USAGE;
	/* where the administrator's file converts sessions, or can't be understood, the user's has to say no */
	if (is_wanted(&files, options, true, &file) != 0)
		return write_file(options, path, false);
	if (options->dry_run)
		printf("remove %s\n", path);
	else if (place_remove(path, false) == PLACE_FAILED)
		return OPTIONS_UNITS_FAILED;
	else
		puts("Login sessions of this user are not converted, from the next one on.");
	return fflush(stdout) == 0 ? EXIT_SUCCESS : OPTIONS_UNITS_FAILED;
}

void session_list(void)
{
	static struct options options;
	static struct conf_files files;
	const char *file, *converters;
	int wanted = is_wanted(&files, &options, false, &file);

	converters = getenv("CONVERT_ADDR");
	if (wanted < 0)
		printf("Login sessions of this user are not converted: see above.\n");
	else if (!file)
		printf("Login sessions of this user are not converted.\n");
	else
		printf("Login sessions of this user are %sconverted, by %s%s%s.\n", wanted ? "" : "not ", file,
		       wanted ? ": " : "", !wanted ? "" : converters ? converters : "no converter is named");
}
