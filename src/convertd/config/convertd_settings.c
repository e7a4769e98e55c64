/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * convertd_settings.c - reads the operator's settings from the command line and the files that it names
 *
 * The command line is read first. Its options take precedence: if the file has the same option, that is only checked.
 * Options that add a value (OPTION_REPEATS) add it from both places, so that a rule on the command line can't remove
 * one in the file.
 */
#include "config.h"

#include "convertd/config/convertd_settings.h"

#include "daemon/textfile.h"
#include "convertd/policy/cookies.h"

#include <assert.h>
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More than the number of options. */
#define OPTIONS_MAX 64

/* The state of reading. */
struct reading {
	struct settings *settings;
	struct settings *overridden; /* takes the values that are overridden */
	struct problems *problems;
	bool on_command_line[OPTIONS_MAX];
	unsigned in_file[OPTIONS_MAX]; /* its first line in the file; 0: none */
};

/* Reports a word that getopt_long() hasn't accepted. */
static void tell_no_option(struct problems *problems, int c, const char *word)
{
	static const struct place nowhere;
	char quote[PROBLEM_QUOTE_MAX], letter[] = { '-', (char)optopt, '\0' };

	/* Of a word like -vx getopt reports only the letter. */
	problems_quote(optopt && c != ':' ? letter : word, quote);
	if (c == ':')
		problems_add(problems, &nowhere, "%s needs a value; see convertd --help", quote);
	else
		problems_add(problems, &nowhere,
			     "%s is no option, or it takes no value; see convertd --help", quote);
}

static void read_command_line(struct reading *reading, int argc, char *argv[])
{
	struct option table[OPTIONS_MAX + 1] = { 0 };
	struct place place = { 0 };
	char quote[PROBLEM_QUOTE_MAX];
	int index = 0, c;

	for (int i = 0; options_table[i].name; i++) {
		assert(i < OPTIONS_MAX);
		table[i].name = options_table[i].name;
		table[i].has_arg = options_table[i].argument ? required_argument : no_argument;
	}
	optind = 0; /* start again, for a reload */
	/* The leading colon silences getopt: its own messages name no remedy. */
	while ((c = getopt_long(argc, argv, ":", table, &index)) != -1) {
		const struct option_spec *spec = &options_table[index];

		if (c != 0) {
			tell_no_option(reading->problems, c, argv[optind - 1]);
			return;
		}
		place.name = spec->name;
		spec->apply(&(struct option_value){ spec, reading->settings, optarg, &place, reading->problems });
		reading->on_command_line[index] = true;
		if (spec->flags & OPTION_LAST)
			return;
	}
	place.name = NULL;
	if (optind < argc && strcmp(argv[optind], "status") == 0) {
		reading->settings->action = SETTINGS_STATUS;
		optind++;
	}
	if (optind < argc)
		problems_add(reading->problems, &place,
			     "%s is not an option; addresses go behind --listen",
			     problems_quote(argv[optind], quote));
}

/* Tells whether this option's line of the file is right, apart from its value. */
static bool check_line(struct reading *reading, int index, const char *value,
		       const struct place *place)
{
	const struct option_spec *spec = &options_table[index];
	char quote[PROBLEM_QUOTE_MAX];

	if (spec->flags & OPTION_COMMAND_LINE)
		problems_add(reading->problems, place,
			     "only the command line has this; write --%s there", spec->name);
	else if (spec->argument && !value)
		problems_add(reading->problems, place, "needs a value; write \"%s %s\"", spec->name,
			     spec->argument);
	else if (!spec->argument && value)
		problems_add(reading->problems, place,
			     "%s: it takes no value; write \"%s\" alone, or leave it out",
			     problems_quote(value, quote), spec->name);
	else if (reading->in_file[index] && !(spec->flags & OPTION_REPEATS))
		problems_add(reading->problems, place, "%s: line %u has it already; remove one",
			     problems_quote(value ? value : "", quote), reading->in_file[index]);
	else
		return true;
	return false;
}

static void read_line(struct reading *reading, struct place *place, char *line, bool has_nul)
{
	const struct option_spec *spec;
	char quote[PROBLEM_QUOTE_MAX], *value;
	bool overridden;
	int index;

	place->name = NULL;
	if (has_nul) {
		problems_add(reading->problems, place, "%s: there is a NUL byte; this is no text",
			     problems_quote(line, quote));
		return;
	}
	value = lines_split(line);
	problems_quote(line, quote);
	index = options_find(line[0] == '-' ? line + strspn(line, "-") : line);
	if (index < 0) {
		problems_add(reading->problems, place, "%s is no option; see convertd --help",
			     quote);
		return;
	}
	spec = &options_table[index];
	if (line[0] == '-') {
		problems_add(reading->problems, place, "%s has dashes; in a file, write \"%s\"",
			     quote, spec->name);
		return;
	}
	place->name = spec->name;
	if (!check_line(reading, index, value, place))
		return;
	overridden = reading->on_command_line[index] && !(spec->flags & OPTION_REPEATS);
	spec->apply(&(struct option_value){ spec, overridden ? reading->overridden : reading->settings, value, place,
					    reading->problems });
	reading->in_file[index] = place->line;
}

static void read_text(struct reading *reading, const char *path, char *text, size_t len)
{
	struct place place = { .file = path };
	struct lines lines;
	bool has_nul;
	char *line;

	lines_first(&lines, text, len);
	while ((line = lines_next(&lines, &has_nul))) {
		place.line = lines.number;
		read_line(reading, &place, line, has_nul);
	}
}

static void read_config(struct reading *reading)
{
	const struct settings_path *path = &reading->settings->config;
	size_t len;
	char *text = textfile_read(path->name, NULL, &len, &path->place, reading->problems);

	if (text)
		read_text(reading, path->name, text, len);
	free(text);
}

/* Hands the text of a file with secrets to @add, and wipes it. */
static void read_secrets(struct settings *settings, const struct settings_path *path,
			 void (*add)(struct cookies *cookies, const char *file, char *text,
				     size_t len, const struct place *place,
				     struct problems *problems),
			 struct problems *problems)
{
	/* Root reads the file on behalf of --user. */
	uid_t owner = settings->user.uid ? settings->user.uid : geteuid();
	size_t len;
	char *text;

	if (!path->name[0])
		return;
	text = textfile_read(path->name, &owner, &len, &path->place, problems);
	if (!text)
		return;
	if (!settings->cookies)
		settings->cookies = cookies_create();
	if (settings->cookies)
		add(settings->cookies, path->name, text, len, &path->place, problems);
	else
		problems_add(problems, &path->place, "out of memory");
	sodium_memzero(text, len);
	free(text);
}

/*
 * Sets the key for the choice of sources, which others don't know and which outlives a restart: the host's
 * machine-id(5). Without one the key is known, which costs one protection only.
 */
static void set_source_key(struct sources *sources)
{
	FILE *file = fopen("/etc/machine-id", "re");
	char text[64] = "";

	if (file && !fgets(text, sizeof(text), file))
		text[0] = '\0';
	if (file)
		fclose(file);
	sources_set_key(sources, text);
}

/* Completes settings that depend on several options. */
static void finish(struct settings *settings, struct problems *problems)
{
	static const struct place nowhere;

	if (access_finish(&settings->access, problems) < 0)
		problems_add(problems, &nowhere, "out of memory");
	if (!settings->listen_count) {
		struct listen_address *listen = &settings->listen[settings->listen_count++];

		sockaddr_ip_parse(&listen->address, SETTINGS_LISTEN_DEFAULT, 0);
		settings->listen_is_default = true;
	}
}

/* A reload skips this: the user doesn't matter any more, and the process may have no rights to look it up. */
static void find_user(struct settings *settings, struct problems *problems)
{
	if (settings->user.name[0] && (geteuid() == 0 || settings->action == SETTINGS_CHECK))
		user_find(&settings->user, problems);
}

static struct settings *settings_new(void)
{
	struct settings *settings = calloc(1, sizeof(*settings));

	if (settings)
		options_set_defaults(settings);
	return settings;
}

/* Tells whether --new-client or --remove-client was given: they read all settings but the secrets. */
static bool is_about_client(const struct settings *settings)
{
	return settings->action == SETTINGS_NEW_CLIENT || settings->action == SETTINGS_REMOVE_CLIENT;
}

/* Chooses the usual configuration file, if there is one, where the command line names neither a file nor a list of cookies. */
static void choose_config(struct settings *settings)
{
	if (!settings->config.name[0] && !settings->cookie_list.name[0] && access(SETTINGS_CONFIG_DEFAULT, R_OK) == 0)
		strcpy(settings->config.name, SETTINGS_CONFIG_DEFAULT);
}

struct settings *settings_read(int argc, char *argv[], struct problems *problems)
{
	struct reading reading = {
		.settings = settings_new(),
		.overridden = settings_new(),
		.problems = problems,
	};
	static const struct place nowhere;

	if (!reading.settings || !reading.overridden) {
		problems_add(problems, &nowhere, "out of memory");
	} else {
		read_command_line(&reading, argc, argv);
		if (is_about_client(reading.settings))
			choose_config(reading.settings);
		if (reading.settings->action <= SETTINGS_REMOVE_CLIENT && reading.settings->config.name[0])
			read_config(&reading);
		if (is_about_client(reading.settings)) {
			finish(reading.settings, problems);
			find_user(reading.settings, problems);
		}
		if (reading.settings->action <= SETTINGS_CHECK) {
			finish(reading.settings, problems);
			set_source_key(&reading.settings->sources);
			find_user(reading.settings, problems);
			read_secrets(reading.settings, &reading.settings->cookie_key,
				     cookies_add_keys, problems);
			read_secrets(reading.settings, &reading.settings->cookie_list,
				     cookies_add_fixed, problems);
		}
	}
	settings_destroy(reading.overridden);
	if (!problems->count)
		return reading.settings;
	settings_destroy(reading.settings);
	return NULL;
}

void settings_check_text(const char *name, char *text, size_t len, struct problems *problems)
{
	struct reading reading = {
		.settings = settings_new(),
		.overridden = settings_new(),
		.problems = problems,
	};

	if (reading.settings && reading.overridden) {
		read_text(&reading, name, text, len);
		finish(reading.settings, problems);
	}
	settings_destroy(reading.overridden);
	settings_destroy(reading.settings);
}

void settings_destroy(struct settings *settings)
{
	if (!settings)
		return;
	access_fini(&settings->access);
	cookies_destroy(settings->cookies);
	free(settings);
}

/* ----- the user that convertd becomes when root has started it ----- */

static bool take_name(char name[static USER_NAME_MAX], const char *text, size_t len)
{
	if (len == 0 || len >= USER_NAME_MAX)
		return false;
	memcpy(name, text, len);
	name[len] = '\0';
	return true;
}

bool user_parse(struct user *user, const char *value, const struct place *place,
		struct problems *problems)
{
	size_t len = strcspn(value, ":");
	char quote[PROBLEM_QUOTE_MAX];

	memset(user, 0, sizeof(*user));
	user->place = *place;
	if (take_name(user->name, value, len) &&
	    (!value[len] || take_name(user->group, value + len + 1, strlen(value + len + 1))))
		return true;
	problems_add(problems, place, "%s is not NAME or NAME:GROUP, of at most %d bytes each",
		     problems_quote(value, quote), USER_NAME_MAX - 1);
	return false;
}

bool user_find(struct user *user, struct problems *problems)
{
	const struct passwd *account = getpwnam(user->name);
	char quote[PROBLEM_QUOTE_MAX];
	const struct group *group;

	if (!account) {
		problems_add(problems, &user->place,
			     "%s is no user of this host; make it with: useradd --system "
			     "--no-create-home --shell /usr/sbin/nologin NAME",
			     problems_quote(user->name, quote));
		return false;
	}
	user->uid = account->pw_uid;
	user->gid = account->pw_gid;
	if (!user->group[0])
		return true;
	group = getgrnam(user->group);
	if (!group) {
		problems_add(problems, &user->place,
			     "%s is no group of this host; make it with: groupadd --system NAME",
			     problems_quote(user->group, quote));
		return false;
	}
	user->gid = group->gr_gid;
	return true;
}
