/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * units.c - services that are converted by default: "convertize enable" and "convertize disable"
 *
 * A service gets a drop-in with the variables that convertize would set for a program. It is looked at first, as a program is:
 * one that can't be converted isn't given a drop-in that does nothing. systemd is told to read the drop-ins, and nothing is
 * restarted: when that may happen is the administrator's to say.
 */
#include "config.h"

#include "convertize/enable/units.h"

#include "convertize/options/conf.h"
#include "convertize/run/launch.h"
#include "convertize/run/library.h"
#include "convertize/enable/systemctl.h"
#include "convertize/enable/unit_dropin.h"
#include "convertize/enable/unit_place.h"
#include "convertize/enable/unit_programs.h"
#include "convertize/enable/unit_query.h"
#include "convertize/run/wrapper.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COOKIE_VARIABLE "CONVERT_COOKIE"

/* What is the same for all units of one call. */
struct work {
	const struct options *options;
	struct unit_scope scope;
	char units[PATH_MAX]; /* the directory with the drop-ins */
	struct library library;
	bool changed; /* systemd has to read drop-ins again */
};

static const char *environment(const char *name)
{
	return getenv(name);
}

/* Makes the directory of --root the root of this process, so that links and loaders in it are followed as they will be. */
static bool enter_root(const char *root)
{
	char path[PATH_MAX];

	if (!realpath(root, path)) {
		fprintf(stderr, "convertize: --root: %s: %s\n", root, strerror(errno));
		return false;
	}
	if (strcmp(path, "/") == 0 || (chdir(path) == 0 && chroot(".") == 0))
		return true;
	fprintf(stderr, "convertize: --root: %s: %s%s\n", root, strerror(errno),
		errno == EPERM ? "; run convertize as root" : "");
	return false;
}

static bool begin(struct work *work, const struct options *options)
{
	memset(work, 0, sizeof(*work));
	work->options = options;
	work->scope = (struct unit_scope){ .user = options->user, .offline = options->root };
	return (!options->root || enter_root(options->root)) && place_units(work->units, options->user);
}

/* Completes a name. Returns false after saying what is wrong with it. */
static bool complete(char name[static UNIT_NAME_MAX], const char *word)
{
	const char *wrong = unit_name_complete(name, word);

	if (wrong)
		fprintf(stderr, "convertize: \"%.100s\" %s\n", word, wrong);
	return !wrong;
}

static const char *manager_option(const struct work *work)
{
	return work->scope.user ? "--user " : "";
}

static bool tell_unknown(const struct work *work, const char *name)
{
	fprintf(stderr, "convertize: %s: there is no such service; %s\n", name,
		work->scope.offline ? "is it installed in this system?" :
		work->scope.user    ? "see systemctl --user list-unit-files --type=service" :
				      "see systemctl list-unit-files --type=service");
	return false;
}

/* Finds a service that could be started. Returns false after saying why there is none. */
static bool find(const struct work *work, struct unit *unit, const char *word)
{
	char name[UNIT_NAME_MAX];
	const char *state, *error;
	int ret;

	if (!complete(name, word))
		return false;
	ret = unit_query(unit, &work->scope, name);
	if (ret < 0)
		return false;
	if (ret > 0) {
		unit_fini(unit);
		return tell_unknown(work, name);
	}
	state = unit_property(&unit->properties, "LoadState");
	error = unit_property(&unit->properties, "LoadError");
	if (strcmp(state, "loaded") == 0)
		return true;
	if (strcmp(state, "masked") == 0)
		fprintf(stderr, "convertize: %s: is masked, so that it is never started; systemctl %sunmask it first\n", unit->name,
			manager_option(work));
	else
		fprintf(stderr, "convertize: %s: systemd can't load it (%s%s%s)\n", unit->name, state, *error ? ": " : "", error);
	unit_fini(unit);
	return false;
}

/* Says what stands in the way. Returns whether to go on. */
static bool tell_findings(const struct work *work, const char *name, const struct unit_findings *findings)
{
	enum unit_level worst = unit_findings_worst(findings);
	bool refused = worst == UNIT_HARMFUL || (worst == UNIT_USELESS && !work->options->force);

	for (size_t i = 0; i < findings->count; i++) {
		enum unit_level level = findings->list[i].level;
		bool warning = level == UNIT_DOUBTFUL || (level == UNIT_USELESS && work->options->force);

		fprintf(stderr, "convertize: %s%s: %s%s\n", warning ? "warning: " : "", name, findings->list[i].text,
			level == UNIT_USELESS && !warning ? "; --force enables it all the same" : "");
	}
	return !refused;
}

/* Judges the unit, and composes its LD_PRELOAD, to be freed. Returns NULL, with the reason said, if it isn't to be enabled. */
static char *judge(const struct work *work, const struct unit *unit)
{
	const struct library_build *build = &work->library.builds[0];
	const char *preload = library_preload(&work->library, build);
	static struct unit_findings findings;
	char before[UNIT_WORD_MAX] = "", *joined;
	const struct wrapper *wrapper;

	findings.count = 0;
	unit_list_variable(unit_property(&unit->properties, "Environment"), "LD_PRELOAD", before);
	unit_judge_programs(&findings, &unit->properties, &work->library);
	unit_judge_sandbox(&findings, &unit->properties, build->path);
	unit_judge_files(&findings, &unit->properties, preload);
	wrapper = wrapper_of_preloads(before);
	if (wrapper)
		unit_findings_add(&findings, wrapper->refused ? UNIT_USELESS : UNIT_DOUBTFUL, "%s, which it preloads, %s",
				  wrapper->command, wrapper->problem);
	if (!tell_findings(work, unit->name, &findings))
		return NULL;
	joined = wrapper_preloads_with(before, preload);
	if (!joined)
		fputs("convertize: out of memory\n", stderr);
	return joined;
}

/* Prints a file instead of writing it. */
static enum place_result show(const char *path, const char *text)
{
	printf("# %s\n%s\n", path, text);
	return PLACE_NOTHING;
}

/* Writes or removes the file with the cookie. */
static enum place_result put_cookie(const struct work *work, const char *unit, const char *path, const char *cookie)
{
	enum place_result result = PLACE_FAILED;
	char *text;

	if (!cookie)
		return work->options->dry_run ? PLACE_NOTHING : place_remove(path, false);
	text = unit_cookie_text(unit, cookie);
	if (!text)
		fputs("convertize: the cookie has control characters, which can't stand in a unit's file\n", stderr);
	else
		result = work->options->dry_run ? show(path, text) : place_write(path, text, 0600);
	free(text);
	return result;
}

static enum place_result put_dropin(struct work *work, const char *unit, const char *preload, char path[static PATH_MAX])
{
	const char *cookie = getenv(COOKIE_VARIABLE);
	char cookie_path[PATH_MAX], *text;
	enum place_result result, cookie_result;

	if (cookie && !*cookie)
		cookie = NULL;
	if (!place_of(path, work->units, unit, UNIT_DROPIN_NAME) ||
	    !place_of(cookie_path, work->units, unit, UNIT_COOKIE_NAME)) {
		fprintf(stderr, "convertize: %s: %s\n", unit, strerror(ENAMETOOLONG));
		return PLACE_FAILED;
	}
	text = unit_dropin_text(unit, preload, cookie ? cookie_path : NULL, environment);
	if (!text) {
		fprintf(stderr, "convertize: %s: a setting has control characters, which can't stand in a unit's file\n", unit);
		return PLACE_FAILED;
	}
	/* the cookie first: a drop-in that names a file that isn't there would keep the service from starting */
	cookie_result = put_cookie(work, unit, cookie_path, cookie);
	result = cookie_result == PLACE_FAILED ? PLACE_FAILED :
		 work->options->dry_run	       ? show(path, text) :
						 place_write(path, text, 0644);
	free(text);
	return result == PLACE_NOTHING ? cookie_result : result;
}

static bool enable(struct work *work, const char *word)
{
	char path[PATH_MAX], *preload;
	enum place_result result;
	struct unit unit;
	bool active;

	if (!find(work, &unit, word))
		return false;
	active = strcmp(unit_property(&unit.properties, "ActiveState"), "active") == 0;
	preload = judge(work, &unit);
	unit_fini(&unit);
	if (!preload)
		return false;
	result = put_dropin(work, unit.name, preload, path);
	free(preload);
	if (result == PLACE_FAILED || work->options->dry_run)
		return result != PLACE_FAILED;
	work->changed |= result == PLACE_DONE;
	printf("%s: %s by %s\n", unit.name, result == PLACE_DONE ? "enabled" : "is enabled", path);
	if (result == PLACE_DONE && active)
		printf("%s: it runs as before until you restart it: systemctl %srestart %s\n", unit.name, manager_option(work),
		       unit.name);
	return true;
}

/* Has systemd read the drop-ins, if there is something new and somebody to tell. */
static bool reload(const struct work *work)
{
	static const char *const words[] = { "daemon-reload", NULL };

	return !work->changed || work->scope.offline || systemctl(work->scope.user, words, NULL) == 0;
}

/* A log is a file's absolute name, as services don't run where convertize does. */
static bool check_log(const struct options *options, const char *log)
{
	char variable[] = "CONVERT_LOG", option[OPTIONS_EXPLAIN_MAX];

	if (!*log || *log == '/' || strcmp(log, "-") == 0)
		return true;
	options_explain(options, variable, option);
	fprintf(stderr, "convertize: %s: \"%s\" is not an absolute path; - is the journal\n", option, log);
	return false;
}

int units_enable(struct options *options)
{
	static char problem[LIBRARY_PROBLEM_MAX];
	static struct settings settings;
	static struct conf_files files;
	static struct work work;
	bool right = true;

	if (!begin(&work, options) || !conf_load(&files, options, !options->user) ||
	    !launch_read_settings(&settings, options) || !check_log(options, settings.log))
		return OPTIONS_UNITS_USAGE;
	options_find_library(options);
	if (!library_find(&work.library, options->library, problem)) {
		fprintf(stderr, "convertize: %s\n", problem);
		return OPTIONS_UNITS_FAILED;
	}
	for (char **word = options->units; *word; word++)
		right = enable(&work, *word) && right;
	right = reload(&work) && right;
	return right && fflush(stdout) == 0 ? EXIT_SUCCESS : OPTIONS_UNITS_FAILED;
}

/* Finds the unit whose drop-in is to go: it may be known no longer. Returns false after saying why there is none. */
static bool find_enabled(const struct work *work, char name[static UNIT_NAME_MAX], const char *word)
{
	char path[PATH_MAX];
	struct unit unit;
	int ret;

	if (!complete(name, word))
		return false;
	if (place_of(path, work->units, name, UNIT_DROPIN_NAME) && access(path, F_OK) == 0)
		return true;
	ret = unit_query(&unit, &work->scope, name);
	if (ret > 0)
		tell_unknown(work, name);
	if (ret == 0)
		strcpy(name, unit.name);
	if (ret >= 0)
		unit_fini(&unit);
	return ret == 0;
}

static bool disable(struct work *work, const char *word)
{
	char name[UNIT_NAME_MAX], path[PATH_MAX], cookie[PATH_MAX];
	enum place_result result;

	if (!find_enabled(work, name, word) || !place_of(path, work->units, name, UNIT_DROPIN_NAME) ||
	    !place_of(cookie, work->units, name, UNIT_COOKIE_NAME))
		return false;
	if (work->options->dry_run) {
		printf("remove %s%s\n", path, access(path, F_OK) == 0 ? "" : " (it isn't there)");
		return true;
	}
	/* the drop-in first: it names the file with the cookie */
	result = place_remove(path, true);
	if (result == PLACE_FAILED || place_remove(cookie, true) == PLACE_FAILED)
		return false;
	work->changed |= result == PLACE_DONE;
	printf("%s: %s\n", name, result == PLACE_DONE ? "disabled, from its next start on" : "was not enabled");
	return true;
}

int units_disable(const struct options *options)
{
	static struct work work;
	bool right = true;

	if (!begin(&work, options))
		return OPTIONS_UNITS_USAGE;
	for (char **word = options->units; *word; word++)
		right = disable(&work, *word) && right;
	right = reload(&work) && right;
	return right && fflush(stdout) == 0 ? EXIT_SUCCESS : OPTIONS_UNITS_FAILED;
}
