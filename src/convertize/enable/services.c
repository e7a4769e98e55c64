/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * services.c - converts systemd's services by default: "convertize enable", "disable" and "list"
 *
 * "enable" gives a service a drop-in with the variables that convertize would set for a program. It refuses a program that preloading
 * doesn't reach, and a service whose system-call filter would end it at a call of the library. Other obstacles, like the service's
 * sandbox, show once the service runs: "list" compares the variables of the main process with its memory. convertize makes systemd read
 * the drop-ins, but restarts nothing: the administrator decides when.
 */
#include "config.h"

#include "common/os.h"
#include "convertize/enable/enable.h"
#include "convertize/options/command_line.h"
#include "convertize/run/launch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSTEMCTL "systemctl"
#define SYSTEMCTL_WORDS_MAX 8
#define PROPERTIES \
	"--property=Id,LoadState,LoadError,ActiveState,MainPID,Environment,ExecStart,User,DynamicUser,NoNewPrivileges,RootDirectory," \
	"RootImage,SystemCallFilter,SystemCallErrorNumber"
#define COOKIE_VARIABLE "CONVERT_COOKIE"
#define LIBRARY_NAME "/libconvert.so"
#define BOOTED "/run/systemd/system" /* sd_booted(3) */
#define DIRECTORY_SUFFIX ".d"
#define PROC_LINE_MAX (PATH_MAX + 256)
#define NOBODY ((uid_t)65534)

/* The facts that all units of one call share. */
struct work {
	const struct options *options;
	char units[PATH_MAX]; /* the directory with the drop-ins */
	struct library library;
	bool changed; /* systemd must read the drop-ins again */
};

struct unit {
	char name[UNIT_NAME_MAX]; /* the unit's own name, also if the user gave an alias; a template's, though we ask about an instance */
	struct unit_properties properties;
	char *text; /* of the properties */
};

static const char *environment(const char *name)
{
	return getenv(name);
}

/* --- systemd ---------------------------------------------------------------------------- */

static int tell_missing(int error)
{
	if (error == ENOENT)
		fputs("convertize: " SYSTEMCTL ": command not found; \"enable\" is for systemd: with another service manager, put "
		      "convertize in front of the service's command\n",
		      stderr);
	else
		fprintf(stderr, "convertize: " SYSTEMCTL ": %s\n", strerror(error));
	return -error;
}

/*
 * Runs systemctl(1) with @words, which end with NULL. Sets *@output, unless @output is NULL, to its output, which the caller frees.
 * Returns 0, or -errno after printing the reason on standard error.
 */
static int systemctl(bool user, const char *const words[], char **output)
{
	const char *argv[SYSTEMCTL_WORDS_MAX + 4] = { SYSTEMCTL, "--no-pager", user ? "--user" : "--system" };
	struct child_output said;
	int ret;

	for (int i = 0; words[i] && i < SYSTEMCTL_WORDS_MAX; i++)
		argv[3 + i] = words[i];
	ret = child_run(argv, CHILD_NO_TIMEOUT, &said);
	if (ret < 0)
		return tell_missing(-ret);
	if (said.status) {
		for (char *line = strtok(said.messages, "\n"); line; line = strtok(NULL, "\n"))
			fprintf(stderr, "convertize: " SYSTEMCTL ": %s\n", line);
		fprintf(stderr, "convertize: " SYSTEMCTL " %s has failed; is systemd the service manager here?\n", words[0]);
	} else if (output) {
		*output = said.text;
		said.text = NULL;
	}
	free(said.text);
	free(said.messages);
	return said.status ? -EIO : 0;
}

/*
 * Asks systemd for the service with this complete name. unit_fini() frees @out, unless the result is negative.
 * Returns 0; 1 if there is no such service; or -errno after printing the reason.
 */
static int unit_query(struct unit *out, bool user, const char *name)
{
	char instance[UNIT_NAME_MAX];
	const char *words[] = { "show", PROPERTIES, "--", instance, NULL };
	const char *id;
	int ret;

	memset(out, 0, sizeof(*out));
	unit_name_instance(instance, name);
	ret = systemctl(user, words, &out->text);
	if (ret)
		return ret;
	unit_properties_parse(&out->properties, out->text);
	id = unit_property(&out->properties, "Id");
	snprintf(out->name, sizeof(out->name), "%s", *id ? id : instance);
	if (unit_name_is_template(name))
		unit_name_template(out->name);
	return strcmp(unit_property(&out->properties, "LoadState"), "not-found") == 0;
}

static void unit_fini(struct unit *unit)
{
	free(unit->text);
	unit->text = NULL;
}

static bool is_yes(const struct unit *unit, const char *property)
{
	return strcmp(unit_property(&unit->properties, property), "yes") == 0;
}

/* Completes a unit's name. Returns false after naming the mistake. */
static bool complete(char name[static UNIT_NAME_MAX], const char *word)
{
	const char *wrong = unit_name_complete(name, word);

	if (wrong)
		fprintf(stderr, "convertize: \"%.100s\" %s\n", word, wrong);
	return !wrong;
}

static const char *manager_option(const struct work *work)
{
	return options_has(work->options, OPTION_USER) ? "--user " : "";
}

/* Finds a service that systemd knows, by its complete name. Returns false after printing the reason. */
static bool find_known(const struct work *work, struct unit *unit, const char *name)
{
	int ret = unit_query(unit, options_has(work->options, OPTION_USER), name);

	if (ret <= 0)
		return ret == 0;
	unit_fini(unit);
	fprintf(stderr, "convertize: %s: there is no such service; see systemctl %slist-unit-files --type=service\n", name,
		manager_option(work));
	return false;
}

/* Finds a service that systemd can start. Returns false after printing the reason. */
static bool find(const struct work *work, struct unit *unit, const char *word)
{
	char name[UNIT_NAME_MAX];
	const char *state, *error;

	if (!complete(name, word) || !find_known(work, unit, name))
		return false;
	state = unit_property(&unit->properties, "LoadState");
	error = unit_property(&unit->properties, "LoadError");
	if (strcmp(state, "loaded") == 0)
		return true;
	if (strcmp(state, "masked") == 0)
		fprintf(stderr, "convertize: %s: is masked, so systemd never starts it; systemctl %sunmask it first\n", unit->name,
			manager_option(work));
	else
		fprintf(stderr, "convertize: %s: systemd can't load it (%s%s%s)\n", unit->name, state, *error ? ": " : "", error);
	unit_fini(unit);
	return false;
}

/* --- enable ----------------------------------------------------------------------------- */

/* Returns the user that executes the unit's program; "nobody" for dynamic and unknown users. */
static struct preload_caller caller_of(const struct unit *unit)
{
	const char *user = unit_property(&unit->properties, "User");
	struct preload_caller caller = { geteuid(), getegid(), is_yes(unit, "NoNewPrivileges") };
	const struct passwd *passwd;
	char *end;
	unsigned long number;

	if (!*user && !is_yes(unit, "DynamicUser"))
		return caller;
	number = strtoul(user, &end, 10);
	passwd = end != user && !*end ? getpwuid((uid_t)number) : getpwnam(user);
	caller.uid = passwd ? passwd->pw_uid : NOBODY;
	caller.gid = passwd ? passwd->pw_gid : NOBODY;
	return caller;
}

/*
 * Judges the first program of ExecStart=, and prints why the library doesn't reach it. convertize can't find a program that is in
 * another root, or whose name has specifiers. Returns false if it must not enable the service.
 */
static bool judge_program(const struct work *work, const struct unit *unit)
{
	const struct unit_properties *properties = &unit->properties;
	char path[PATH_MAX], text[PRELOAD_TEXT_MAX];
	char *words[] = { path, NULL };
	const struct options options = { .program = words };
	struct preload_caller caller = caller_of(unit);
	const char *remedy;
	static struct launch plan;
	bool harmful, refused;
	int ret;

	if (*unit_property(properties, "RootDirectory") || *unit_property(properties, "RootImage") ||
	    !unit_command_path(unit_property(properties, "ExecStart"), path) || strchr(path, '%'))
		return true;
	ret = launch_plan(&plan, &options, &work->library, &caller);
	if (ret == 0 && plan.way == LAUNCH_PRELOADED && strcmp(program_base_name(path, strlen(path)), "convertd") != 0)
		return true;
	harmful = ret == 0 && (plan.verdict == PRELOAD_OTHER_LIBC || plan.verdict == PRELOAD_FOREIGN);
	refused = harmful || !options_has(work->options, OPTION_FORCE);
	remedy = ret == 0 && plan.way == LAUNCH_SUPERVISED ? "put convertize in front of the command in ExecStart=, with "
							    "NotifyAccess=all and KillMode=mixed" :
		 ret == 0				   ? preload_remedy(plan.verdict) :
							     NULL;
	if (ret < 0)
		snprintf(text, sizeof(text), "%.4000s can't be executed: %s", path, strerror(-ret));
	else if (plan.way == LAUNCH_PRELOADED)
		snprintf(text, sizeof(text), "%.4000s is a converter: its connections would go through a converter again", path);
	else
		preload_describe(plan.verdict, &plan.program, plan.index, &plan.library->elf, text);
	fprintf(stderr, "convertize: %s%s: %s%s%s%s\n", refused ? "" : "warning: ", unit->name, text, remedy ? "; " : "",
		remedy ? remedy : "", refused && !harmful ? "; --force enables it all the same" : "");
	return !refused;
}

/* Judges the unit, and returns its LD_PRELOAD, which the caller frees. Returns NULL after printing why convertize must not enable it. */
static char *judge(const struct work *work, const struct unit *unit)
{
	const char *deadly = unit_deadly_call(&unit->properties);
	char before[UNIT_WORD_MAX] = "", *joined;

	if (deadly) {
		fprintf(stderr, "convertize: %s: its SystemCallFilter= would end it at %s(), which the library needs; add a drop-in with "
				"\"SystemCallFilter=%s\"\n",
			unit->name, deadly, deadly);
		return NULL;
	}
	if (!judge_program(work, unit))
		return NULL;
	unit_list_variable(unit_property(&unit->properties, "Environment"), "LD_PRELOAD", before);
	joined = wrapper_preloads_with(before, library_preload(&work->library, &work->library.builds[0]));
	if (!joined)
		fputs("convertize: out of memory\n", stderr);
	return joined;
}

/* Prints a file instead of writing it. */
static enum own_result show(const char *path, const char *text)
{
	printf("# %s\n%s\n", path, text);
	return OWN_NOTHING;
}

/* Writes or removes the file with the cookie. */
static enum own_result put_cookie(const struct work *work, const char *unit, const char *path, const char *cookie)
{
	enum own_result result = OWN_FAILED;
	char *text;

	if (!cookie)
		return options_has(work->options, OPTION_DRY_RUN) ? OWN_NOTHING : own_remove(path, false);
	text = unit_cookie_text(unit, cookie);
	if (!text)
		fputs("convertize: the cookie has control characters, which can't stand in a unit's file\n", stderr);
	else
		result = options_has(work->options, OPTION_DRY_RUN) ? show(path, text) : own_write(path, text, 0600);
	free(text);
	return result;
}

static enum own_result put_dropin(struct work *work, const char *unit, const char *preload, char path[static PATH_MAX])
{
	const char *cookie = getenv(COOKIE_VARIABLE);
	char cookie_path[PATH_MAX], *text;
	enum own_result result, cookie_result;

	if (cookie && !*cookie)
		cookie = NULL;
	if (!own_path(path, work->units, unit, UNIT_DROPIN_NAME) ||
	    !own_path(cookie_path, work->units, unit, UNIT_COOKIE_NAME)) {
		fprintf(stderr, "convertize: %s: %s\n", unit, strerror(ENAMETOOLONG));
		return OWN_FAILED;
	}
	text = unit_dropin_text(unit, preload, cookie ? cookie_path : NULL, environment);
	if (!text) {
		fprintf(stderr, "convertize: %s: a setting has control characters, which can't stand in a unit's file\n", unit);
		return OWN_FAILED;
	}
	/* the cookie first: a drop-in that names a missing file would keep the service from starting */
	cookie_result = put_cookie(work, unit, cookie_path, cookie);
	result = cookie_result == OWN_FAILED			    ? OWN_FAILED :
		 options_has(work->options, OPTION_DRY_RUN) ? show(path, text) :
							      own_write(path, text, 0644);
	free(text);
	return result == OWN_NOTHING ? cookie_result : result;
}

static bool enable(struct work *work, const char *word)
{
	char path[PATH_MAX], *preload;
	enum own_result result;
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
	if (result == OWN_FAILED || options_has(work->options, OPTION_DRY_RUN))
		return result != OWN_FAILED;
	work->changed |= result == OWN_DONE;
	if (!options_has(work->options, OPTION_QUIET))
		printf("%s: %s by %s\n", unit.name, result == OWN_DONE ? "enabled" : "is enabled", path);
	if (result == OWN_DONE && active && !options_has(work->options, OPTION_QUIET))
		printf("%s: it runs as before until you restart it: systemctl %srestart %s\n", unit.name, manager_option(work),
		       unit.name);
	return true;
}

/* Makes systemd read the drop-ins, if one has changed. */
static bool reload(const struct work *work)
{
	static const char *const words[] = { "daemon-reload", NULL };

	return !work->changed || systemctl(options_has(work->options, OPTION_USER), words, NULL) == 0;
}

bool enable_check_log(const struct options *options, const char *log)
{
	char place[OPTIONS_PLACE_MAX];

	if (!*log || *log == '/' || strcmp(log, "-") == 0)
		return true;
	fprintf(stderr, "convertize: %s: \"%s\" is not an absolute path, and programs run in any directory; - is standard error\n",
		options_place(options, OPTION_LOG, place), log);
	return false;
}

int services_enable(struct options *options)
{
	static struct settings settings;
	static struct conf_files files;
	static struct work work;
	bool right = true;

	work.options = options;
	launch_forget_warn(options);
	if (!own_units(work.units, options_has(options, OPTION_USER)) || !conf_load(&files, options, !options_has(options, OPTION_USER)) ||
	    !launch_read_settings(&settings, options, true) || !enable_check_log(options, settings.log))
		return STATUS_USAGE;
	if (!launch_find_library(&work.library))
		return STATUS_FAILED;
	for (char **word = options->units; *word; word++)
		right = enable(&work, *word) && right;
	right = reload(&work) && right;
	return right && fflush(stdout) == 0 ? EXIT_SUCCESS : STATUS_FAILED;
}

/* --- disable ---------------------------------------------------------------------------- */

/* Finds the unit to disable, which systemd may not know any more. Returns false after printing the reason. */
static bool find_enabled(const struct work *work, char name[static UNIT_NAME_MAX], const char *word)
{
	char path[PATH_MAX];
	struct unit unit;

	if (!complete(name, word))
		return false;
	if (own_path(path, work->units, name, UNIT_DROPIN_NAME) && access(path, F_OK) == 0)
		return true;
	if (!find_known(work, &unit, name))
		return false;
	strcpy(name, unit.name);
	unit_fini(&unit);
	return true;
}

static bool disable(struct work *work, const char *word)
{
	char name[UNIT_NAME_MAX], path[PATH_MAX], cookie[PATH_MAX];
	enum own_result result;

	if (!find_enabled(work, name, word) || !own_path(path, work->units, name, UNIT_DROPIN_NAME) ||
	    !own_path(cookie, work->units, name, UNIT_COOKIE_NAME))
		return false;
	if (options_has(work->options, OPTION_DRY_RUN)) {
		printf("remove %s%s\n", path, access(path, F_OK) == 0 ? "" : " (it isn't there)");
		return true;
	}
	/* the drop-in first: it names the file with the cookie */
	result = own_remove(path, true);
	if (result == OWN_FAILED || own_remove(cookie, true) == OWN_FAILED)
		return false;
	work->changed |= result == OWN_DONE;
	if (!options_has(work->options, OPTION_QUIET))
		printf("%s: %s\n", name, result == OWN_DONE ? "disabled, from its next start on" : "was not enabled");
	return true;
}

int services_disable(const struct options *options)
{
	static struct work work;
	bool right = true;

	work.options = options;
	if (!own_units(work.units, options_has(options, OPTION_USER)))
		return STATUS_USAGE;
	for (char **word = options->units; *word; word++)
		right = disable(&work, *word) && right;
	right = reload(&work) && right;
	return right && fflush(stdout) == 0 ? EXIT_SUCCESS : STATUS_FAILED;
}

/* --- list ------------------------------------------------------------------------------- */

/* Does the process have @word in @file, its "maps" or "environ" (proc(5))? Returns 1 or 0, or -1 if it can't read the file. */
static int process_has(const char *pid, const char *file, const char *word)
{
	char path[64], part[PROC_LINE_MAX];
	size_t kept = 0, len;
	FILE *stream;
	int has = 0;

	snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, file);
	stream = fopen(path, "re");
	if (!stream)
		return -1;
	while (!has && (len = fread(part + kept, 1, sizeof(part) - kept, stream)) > 0) {
		has = memmem(part, kept + len, word, strlen(word)) != NULL;
		len += kept;
		kept = len < strlen(word) ? len : strlen(word);
		memmove(part, part + len - kept, kept);
	}
	has = ferror(stream) ? -1 : has;
	fclose(stream);
	return has;
}

/* Returns the state of a unit with our drop-in. */
static const char *state_of(const char *name, bool user)
{
	const char *pid;
	struct unit unit;
	int ret, has = 0, was_told = 0;
	bool active;

	if (unit_name_is_template(name))
		return "template";
	/* without a service manager, systemctl would complain once for each unit */
	ret = user || access(BOOTED, F_OK) == 0 ? unit_query(&unit, user, name) : -ENOENT;
	if (ret < 0)
		return "unknown";
	pid = unit_property(&unit.properties, "MainPID");
	active = *pid && strcmp(pid, "0") != 0;
	if (active) {
		has = process_has(pid, "maps", LIBRARY_NAME);
		was_told = process_has(pid, "environ", "CONVERT_ADDR="); /* of our drop-in; LD_PRELOAD may be another's */
	}
	unit_fini(&unit);
	if (ret > 0)
		return "not installed";
	return !active ? "not running" : has > 0 ? "converted" : has < 0 ? "unknown" : was_told > 0 ? "not converted" : "needs a restart";
}

/* Takes the service's name from the name of a directory with drop-ins. Returns false if the directory isn't a service's. */
static bool take_unit(char name[static UNIT_NAME_MAX], const char *directory)
{
	size_t len = strlen(directory), suffix = strlen(DIRECTORY_SUFFIX);

	if (len <= suffix || len - suffix >= UNIT_NAME_MAX || strcmp(directory + len - suffix, DIRECTORY_SUFFIX) != 0)
		return false;
	snprintf(name, UNIT_NAME_MAX, "%.*s", (int)(len - suffix), directory);
	len = strlen(name);
	return len > strlen(UNIT_SERVICE) && strcmp(name + len - strlen(UNIT_SERVICE), UNIT_SERVICE) == 0;
}

static void print(const char *name, const char *state, const char *converters)
{
	printf("%-32s %-16s %s\n", name, state, converters);
}

/* Prints the line of one directory, if it has a drop-in of ours. Adds one to *@wrong if its service runs unconverted. */
static bool list_directory(const char *units, bool user, const char *directory, int *wrong)
{
	char name[UNIT_NAME_MAX], path[PATH_MAX], *text, *converters;
	const char *state;

	if (!take_unit(name, directory) || !own_path(path, units, name, UNIT_DROPIN_NAME))
		return false;
	text = own_read(path);
	if (!text)
		return false;
	state = state_of(name, user);
	*wrong += strcmp(state, "not converted") == 0;
	converters = unit_dropin_variable(text, "CONVERT_ADDR");
	print(name, state, converters ? converters : "?");
	free(converters);
	free(text);
	return true;
}

int services_list(const struct options *options)
{
	struct dirent **entries;
	char units[PATH_MAX];
	int count, found = 0, wrong = 0;

	if (!own_units(units, options_has(options, OPTION_USER)))
		return STATUS_USAGE;
	count = scandir(units, &entries, NULL, alphasort);
	if (count < 0 && errno != ENOENT) {
		fprintf(stderr, "convertize: %s: %s\n", units, strerror(errno));
		return STATUS_FAILED;
	}
	print("UNIT", "STATE", "CONVERTERS");
	for (int i = 0; i < count; i++) {
		found += list_directory(units, options_has(options, OPTION_USER), entries[i]->d_name, &wrong);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	if (!found)
		puts("No service is enabled; convertize enable UNIT does that.");
	if (wrong)
		fprintf(stderr, "convertize: %d service%s run%s with the drop-in and without the library: see the journal for ld.so's "
				"messages, and whether the sandbox hides the library or an EnvironmentFile= sets LD_PRELOAD\n",
			wrong, wrong == 1 ? "" : "s", wrong == 1 ? "s" : "");
	wrong += !login_session_list();
	return fflush(stdout) == 0 && !wrong ? EXIT_SUCCESS : STATUS_FAILED;
}
