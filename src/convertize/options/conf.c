/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conf.c - convertize.conf: the defaults of an administrator and of a user, and whose sessions are converted
 *
 * convertize reads the files; libconvert.so, which lives in other people's processes, never does. The command line and the
 * environment override the user's file, and that overrides the administrator's.
 *
 * A file decides to which host a program's connections go. So it must belong to the administrator or to the user:
 * convertize reads no file that somebody else owns or may write to. It doesn't check directories, since an attacker who may write to
 * /etc needs no such file. A file that --config names is the user's own choice.
 */
#include "config.h"

#include "convertize/options/command_line.h"

#include "common/os.h"
#include "common/problems.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Appends @text to a list, with @separator between its elements. Returns false if memory runs out. */
static bool append(char **list, const char *text, char separator)
{
	size_t before = *list ? strlen(*list) : 0;
	char *joined = realloc(*list, before + strlen(text) + 2);

	if (!joined)
		return false;
	*list = joined;
	if (before)
		joined[before++] = separator;
	strcpy(joined + before, text);
	return true;
}

static int find_setting(const char *name)
{
	for (int i = 0; i < OPTION_COUNT; i++)
		if (option_is_setting((enum option_id)i) && strcmp(option_table[i].name, name) == 0)
			return i;
	return -1;
}

static bool is_option(const char *name)
{
	for (int i = 0; i < OPTION_COUNT; i++)
		if (strcmp(option_table[i].name, name) == 0)
			return true;
	return false;
}

/* Returns the variable's value for a switch like "early-data"; a line without a value switches it on. NULL: neither yes nor no. */
static const char *switch_value(const struct option_row *row, const char *value)
{
	if (!value || strcmp(value, "yes") == 0)
		return row->value;
	if (strcmp(value, "no") == 0)
		return strcmp(row->value, "1") == 0 ? "0" : "1";
	return NULL;
}

static void read_setting(struct conf *conf, int id, const char *value, const struct place *place,
			 struct problems *problems)
{
	const struct option_row *row = &option_table[id];
	char quote[PROBLEM_QUOTE_MAX];

	if (row->argument && !value) {
		problems_add(problems, place, "needs a value; write \"%s %s\"", row->name, row->argument);
		return;
	}
	if (!row->argument) {
		const char *set = switch_value(row, value);

		if (!set) {
			problems_add(problems, place, "%s is neither yes nor no", problems_quote(value, quote));
			return;
		}
		value = set;
	}
	if (conf->values[id] && !row->list) {
		problems_add(problems, place, "%s: line %u has it already; remove one", problems_quote(value, quote),
			     conf->lines[id]);
		return;
	}
	if (!conf->lines[id])
		conf->lines[id] = place->line;
	if (!append(&conf->values[id], value, ','))
		problems_add(problems, place, "out of memory");
}

static void read_session(struct conf *conf, const char *value, const struct place *place, struct problems *problems)
{
	char quote[PROBLEM_QUOTE_MAX];

	if (conf->session_line) {
		problems_add(problems, place, "line %u has it already; remove one", conf->session_line);
		return;
	}
	conf->session_line = place->line;
	if (value && strcmp(value, "yes") == 0)
		conf->session = CONF_SESSION_YES;
	else if (value && strcmp(value, "no") == 0)
		conf->session = CONF_SESSION_NO;
	else
		problems_add(problems, place, "%s is neither yes nor no", problems_quote(value ? value : "", quote));
}

static void read_who(struct conf *conf, char **list, const char *value, const struct place *place,
		     struct problems *problems)
{
	char quote[PROBLEM_QUOTE_MAX];

	if (!conf->is_system)
		problems_add(problems, place, "only %s has this: a user's own file is about that user", CONF_SYSTEM);
	else if (!value || strpbrk(value, " \t"))
		problems_add(problems, place, "%s is not one name; write a line for each",
			     problems_quote(value ? value : "", quote));
	else if (!append(list, value, ' '))
		problems_add(problems, place, "out of memory");
}

static void tell_no_setting(const char *name, const struct place *place, struct problems *problems)
{
	const char *bare = name + strspn(name, "-"), *similar = options_similar(bare, true);
	char quote[PROBLEM_QUOTE_MAX];

	problems_quote(name, quote);
	if (*name == '-' && find_setting(bare) >= 0)
		problems_add(problems, place, "%s has dashes; in a file, write \"%s\"", quote, bare);
	else if (is_option(bare))
		problems_add(problems, place, "%s belongs on the command line", quote);
	else if (similar)
		problems_add(problems, place, "%s isn't a setting; did you mean \"%s\"?", quote, similar);
	else
		problems_add(problems, place, "%s isn't a setting; see convertize.conf(5)", quote);
}

static void read_line(struct conf *conf, char *line, struct place *place, struct problems *problems)
{
	static const char *const others[] = { "session", "session-user", "session-group" };
	char *value = lines_split(line);
	int id = find_setting(line);

	place->name = id >= 0 ? option_table[id].name : NULL;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(line, others[i]) == 0)
			place->name = others[i];
	if (id >= 0)
		read_setting(conf, id, value, place, problems);
	else if (!place->name)
		tell_no_setting(line, place, problems);
	else if (strcmp(line, "session") == 0)
		read_session(conf, value, place, problems);
	else
		read_who(conf, strcmp(line, "session-user") == 0 ? &conf->users : &conf->groups, value, place, problems);
}

void conf_parse(struct conf *conf, char *text, size_t len, struct problems *problems)
{
	char quote[PROBLEM_QUOTE_MAX], *line;
	struct lines lines;
	bool has_nul;

	lines_first(&lines, text, len);
	while ((line = lines_next(&lines, &has_nul))) {
		struct place place = { .file = conf->path, .line = lines.number };

		if (has_nul)
			problems_add(problems, &place, "%s: there is a NUL byte; this isn't text",
				     problems_quote(line, quote));
		else
			read_line(conf, line, &place, problems);
	}
}

void conf_fini(struct conf *conf)
{
	for (int i = 0; i < OPTION_COUNT; i++)
		free(conf->values[i]);
	free(conf->users);
	free(conf->groups);
	memset(conf, 0, sizeof(*conf));
}

/* Does the list contain the name? Blanks separate names. */
static bool is_in(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (; list; list = strchr(list, ' ') ? strchr(list, ' ') + 1 : NULL)
		if (strncmp(list, name, len) == 0 && (list[len] == ' ' || !list[len]))
			return true;
	return false;
}

static bool is_meant(const struct conf *conf, const struct login_user *user)
{
	if (!conf->users && !conf->groups)
		return user->uid != 0;
	if (user->name && is_in(conf->users, user->name))
		return true;
	for (const char *const *group = user->groups; *group; group++)
		if (is_in(conf->groups, *group))
			return true;
	return false;
}

bool conf_session(const struct conf_files *files, const struct login_user *user, const char **file)
{
	*file = NULL;
	for (size_t i = 0; i < files->count; i++) {
		const struct conf *conf = &files->files[i];

		if (conf->session == CONF_SESSION_UNSET)
			continue;
		*file = conf->path;
		return conf->session == CONF_SESSION_YES && (!conf->is_system || is_meant(conf, user));
	}
	return false;
}

/* --- files ------------------------------------------------------------------------------ */

static void print_problem(const char *line)
{
	fprintf(stderr, "convertize: %s\n", line);
}

/* Whose file it is: only some faults of a user's own file are warnings, all others are errors. */
enum owner { OWNER_SYSTEM, OWNER_USER, OWNER_NAMED };

/* May convertize read the file? Prints why not, and sets *@failed to whether convertize must stop. */
static bool may_read(const struct stat *st, const char *path, enum owner owner, bool *failed)
{
	if (owner != OWNER_NAMED && st->st_uid != 0 && st->st_uid != geteuid()) {
		*failed = owner == OWNER_SYSTEM;
		fprintf(stderr, "convertize: %s%s: belongs to user %u, and is not read; %s\n", *failed ? "" : "warning: ", path,
			(unsigned int)st->st_uid, *failed ? "chown it to root" : "--config none reads no file");
		return false;
	}
	*failed = true;
	if (!S_ISREG(st->st_mode))
		fprintf(stderr, "convertize: %s: is not a regular file\n", path);
	else if (owner != OWNER_NAMED && st->st_mode & (S_IWGRP | S_IWOTH))
		fprintf(stderr, "convertize: %s: others may write to it (mode %04o); chmod go-w it\n", path,
			(unsigned int)st->st_mode & 07777);
	else if (st->st_size > CONF_BYTES_MAX)
		fprintf(stderr, "convertize: %s: has %lld bytes; %d are the most\n", path, (long long)st->st_size,
			CONF_BYTES_MAX);
	else
		*failed = false;
	return !*failed;
}

/* Names the error of open(). @needed: a file that this user may not read is a mistake, too. Returns true if convertize must stop. */
static bool tell_unread(const char *path, enum owner owner, bool needed)
{
	const int error = errno;
	bool failed = owner == OWNER_NAMED || error != EACCES || needed;

	fprintf(stderr, "convertize: %s%s: %s", failed ? "" : "warning: not read: ", path, strerror(error));
	if (needed && error == EACCES)
		fprintf(stderr, "; chgrp convertize %s and chmod 640 %s", path, path);
	fputc('\n', stderr);
	return failed;
}

/* Reads the next file of @out; the caller has set its path. @needed: see tell_unread(). Returns false if convertize must stop. */
static bool read_file(struct conf_files *out, enum owner owner, bool needed)
{
	struct conf *conf = &out->files[out->count];
	struct problems problems = { .print = print_problem };
	int fd = open(conf->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool failed = false;
	struct stat st;
	size_t len;
	char *text;

	if (fd < 0 && owner != OWNER_NAMED && (errno == ENOENT || errno == ENOTDIR))
		return true;
	if (fd < 0 || fstat(fd, &st) < 0) {
		failed = tell_unread(conf->path, owner, needed);
		if (fd >= 0)
			close(fd);
		return !failed;
	}
	if (!may_read(&st, conf->path, owner, &failed)) {
		close(fd);
		return !failed;
	}
	text = file_take_text(fd, CONF_BYTES_MAX, &len);
	if (!text) {
		fprintf(stderr, "convertize: %s: %s\n", conf->path, strerror(errno));
		return false;
	}
	conf->is_system = owner != OWNER_USER;
	conf_parse(conf, text, len, &problems);
	explicit_bzero(text, len); /* it may contain a cookie */
	free(text);
	out->count++;
	return problems.count == 0;
}

/* Sets the variables that the command uses and that the environment doesn't have. */
static bool apply(struct options *options, const struct conf *conf)
{
	for (int i = 0; i < OPTION_COUNT; i++) {
		if (!conf->values[i] || !(option_table[i].scope & SCOPE(options->command)) || getenv(option_table[i].variable))
			continue;
		if (setenv(option_table[i].variable, conf->values[i], 1) < 0) {
			fprintf(stderr, "convertize: %s: %s\n", option_table[i].variable, strerror(errno));
			return false;
		}
		options->origin[i] = (struct options_origin){ conf->path, conf->lines[i] };
	}
	return true;
}

bool conf_user_path(char path[static PATH_MAX], const char *name)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (config && *config == '/')
		return snprintf(path, PATH_MAX, "%s/%s", config, name) < PATH_MAX;
	return home && *home == '/' && snprintf(path, PATH_MAX, "%s/.config/%s", home, name) < PATH_MAX;
}

bool conf_load(struct conf_files *out, struct options *options, bool system_only)
{
	const char *named = getenv(option_table[OPTION_CONFIG].variable);
	/* the path manager must not open networks that a file forbids which its user can't read */
	const bool needed = system_only && options->command == COMMAND_PATHS;
	bool right = true;

	memset(out, 0, sizeof(*out));
	if (named && strcmp(named, "none") == 0)
		return true;
	if (named && *named) {
		if (snprintf(out->files[0].path, PATH_MAX, "%s", named) >= PATH_MAX) {
			fprintf(stderr, "convertize: --config: %.60s...: the name is too long\n", named);
			return false;
		}
		right = read_file(out, OWNER_NAMED, false);
	} else {
		if (!system_only && conf_user_path(out->files[0].path, CONF_NAME))
			right = read_file(out, OWNER_USER, false);
		strcpy(out->files[out->count].path, CONF_SYSTEM);
		right = read_file(out, OWNER_SYSTEM, needed) && right;
	}
	for (size_t i = 0; right && i < out->count; i++)
		right = apply(options, &out->files[i]);
	return right;
}
