/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon_options.c - reads the options of a daemon's command line and of its configuration file, by its table, and whole files */
#include "config.h"

#include "daemon/daemon_options.h"

#include "common/os.h"
#include "common/problems.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define METRICS_PORT_EXAMPLE 9103

/* ----- values ----- */

static void *member(const struct option_spec *spec, void *settings)
{
	return (char *)settings + spec->offset;
}

void *option_target(const struct option_value *v)
{
	return member(v->spec, v->settings);
}

bool option_refuse(const struct option_value *v, const char *format, ...)
{
	char quote[PROBLEM_QUOTE_MAX], text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	problems_add(v->problems, v->place, "%s %s", problems_quote(v->text, quote), text);
	return false;
}

bool option_flag(const struct option_value *v)
{
	*(bool *)option_target(v) = true;
	return true;
}

bool option_number(const struct option_value *v)
{
	const struct option_spec *spec = v->spec;
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(v->text, &end, 10);
	if (errno || *end || v->text[0] < '0' || v->text[0] > '9' || number < spec->min || number > spec->max)
		return option_refuse(v, "is not a number%s%s from %u to %u", spec->unit ? " of " : "",
			      spec->unit ? spec->unit : "", spec->min, spec->max);
	*(unsigned *)option_target(v) = (unsigned)number;
	return true;
}

bool option_word(const struct option_value *v)
{
	const char *words = v->spec->unit;
	size_t len;

	for (unsigned index = 0; *words; index++) {
		len = strcspn(words, ",");
		if (strlen(v->text) == len && memcmp(words, v->text, len) == 0) {
			*(unsigned *)option_target(v) = index;
			return true;
		}
		words += len + strspn(words + len, ", ");
	}
	return option_refuse(v, "is none of %s", v->spec->unit);
}

bool option_path(const struct option_value *v)
{
	struct settings_path *path = option_target(v);

	if (!*v->text)
		return option_refuse(v, "is not a file; write its path");
	if (strlen(v->text) >= sizeof(path->name))
		return option_refuse(v, "is too long for a path");
	strcpy(path->name, v->text);
	path->place = *v->place;
	return true;
}

bool option_add_metrics(const struct option_value *v, struct metrics_address all[static METRICS_ADDRESSES_MAX], size_t *count,
			const char *example)
{
	struct metrics_address where = { 0 };
	bool is_path = strncmp(v->text, "unix:", 5) == 0;

	if (is_path && v->text[5] == '/' && strlen(v->text + 5) < sizeof(where.path))
		strcpy(where.path, v->text + 5);
	else if (is_path || sockaddr_ip_parse(&where.address, v->text, 0) < 0 || sockaddr_ip_port(&where.address) == 0)
		return option_refuse(v, "is neither ADDR:PORT nor unix:/PATH of at most %d bytes; write 127.0.0.1:%d or unix:%s",
				     METRICS_PATH_MAX - 1, METRICS_PORT_EXAMPLE, example);
	if (*count == METRICS_ADDRESSES_MAX)
		return option_refuse(v, "is one too many, the limit is %d", METRICS_ADDRESSES_MAX);
	all[(*count)++] = where;
	return true;
}

/* ----- the table ----- */

static int find(const struct option_spec *table, const char *name)
{
	for (int i = 0; table[i].name; i++)
		if (strcmp(table[i].name, name) == 0)
			return i;
	return -1;
}

void options_set_numbers(const struct option_spec *table, void *settings)
{
	for (const struct option_spec *spec = table; spec->name; spec++)
		if (spec->apply == option_number)
			*(unsigned *)member(spec, settings) = spec->fallback;
}

static void print_option(const struct option_spec *spec)
{
	const char *text = spec->help, *line_end;
	char left[64];

	snprintf(left, sizeof(left), "--%s%s%s", spec->name, spec->argument ? " " : "",
		 spec->argument ? spec->argument : "");
	/* A text too long for its column gets a line of its own. */
	if (strlen(left) > 27) {
		printf("  %s\n", left);
		left[0] = '\0';
	}
	while ((line_end = strchr(text, '\n'))) {
		printf("  %-27s %.*s\n", left, (int)(line_end - text), text);
		left[0] = '\0';
		text = line_end + 1;
	}
	printf("  %-27s %s\n", left, text);
	if (spec->apply == option_number)
		printf("  %-27s (default %u)\n", "", spec->fallback);
}

void options_print_help(const struct option_program *program)
{
	fputs(program->usage, stdout);
	for (const struct option_spec *spec = program->table; spec->name; spec++) {
		if (spec->group)
			printf("\n%s:\n", spec->group);
		print_option(spec);
	}
	printf("\n%s", program->more);
}

/* ----- whole files: the configuration, keys, cookies ----- */

/* A secret's group may not write it, and others may do nothing with it; a daemon's group may read it. */
#define FORBIDDEN_MODE (S_IWGRP | S_IXGRP | S_IRWXO)

/* Tells whether it is a regular file, not too large and, if it is a secret, protected; if not, adds the error to @problems. */
static bool check_kind(const struct stat *st, const char *path, const uid_t *owner,
		       const struct place *place, struct problems *problems)
{
	char quote[PROBLEM_QUOTE_MAX];

	problems_quote(path, quote);
	if (!S_ISREG(st->st_mode))
		problems_add(problems, place, "%s is not a regular file", quote);
	else if (st->st_size > TEXTFILE_MAX)
		problems_add(problems, place, "%s has %lld bytes; %d are the most", quote,
			     (long long)st->st_size, TEXTFILE_MAX);
	else if (owner && st->st_uid != 0 && st->st_uid != *owner)
		problems_add(problems, place,
			     "%s belongs to user %u, who could change it; chown it to root", quote,
			     (unsigned)st->st_uid);
	else if (owner && st->st_mode & FORBIDDEN_MODE)
		problems_add(problems, place,
			     "%s has mode %04o, and it is a secret: chmod 600 it, or 640", quote,
			     (unsigned)st->st_mode & 07777);
	else
		return true;
	return false;
}

#define SYSTEM_UID_MAX 999 /* by convention services run under numbers up to this one, and people under higher ones */
#define GROUP_NAME_MAX 64
#define RIGHT_REMEDY_MAX 128

/* Writes the group's name, or its number. It asks no service, which takes calls that a daemon's sandbox forbids at a reload. */
static const char *name_group(gid_t gid, char name[static GROUP_NAME_MAX])
{
	FILE *file = fopen("/etc/group", "re");
	const struct group *group = NULL;

	do
		group = file ? fgetgrent(file) : NULL;
	while (group && group->gr_gid != gid);
	if (group)
		snprintf(name, GROUP_NAME_MAX, "%s", group->gr_name);
	else
		snprintf(name, GROUP_NAME_MAX, "%u", (unsigned)gid);
	if (file)
		fclose(file);
	return name;
}

/* Returns the remedy for a file that this process may not open; "" if the rights of files aren't the cause. @error: errno of open() */
static const char *find_right(const char *path, int error, char remedy[static RIGHT_REMEDY_MAX])
{
	char name[GROUP_NAME_MAX];
	struct stat st;

	remedy[0] = '\0';
	if (error != EACCES)
		return remedy;
	if (stat(path, &st) < 0)
		return errno == EACCES ? "; chmod +x the directories above it" : remedy;
	/* its group may read it: something else denies it, such as a sandbox */
	if (st.st_gid == getegid() && st.st_mode & S_IRGRP)
		return remedy;
	/* a person's own group would take the file from the service */
	if (geteuid() == 0 || geteuid() > SYSTEM_UID_MAX)
		return "; be root, or chgrp it to the service's group and chmod 640 it";
	snprintf(remedy, RIGHT_REMEDY_MAX, "; let its group read it: chgrp %s and chmod 640 it", name_group(getegid(), name));
	return remedy;
}

char *textfile_read(const char *path, const uid_t *owner, size_t *len, const struct place *place,
		    struct problems *problems)
{
	char quote[PROBLEM_QUOTE_MAX], remedy[RIGHT_REMEDY_MAX], *text;
	struct stat st;
	int fd, error;

	/* O_NONBLOCK: without it, the open of a FIFO would wait for a writer. Anything but a regular file is refused below. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0) {
		error = errno;
		problems_add(problems, place, "%s can't be read: %s%s", problems_quote(path, quote),
			     strerror(error), find_right(path, error, remedy));
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	if (!check_kind(&st, path, owner, place, problems)) {
		close(fd);
		return NULL;
	}
	text = file_take_text(fd, (size_t)st.st_size, len);
	if (!text)
		problems_add(problems, place, "%s can't be read: %s", problems_quote(path, quote), strerror(errno));
	return text;
}

/* ----- reading ----- */

#define REMEDY_MAX 64

/*
 * Writes a remedy for a word that isn't an option: the option that is similar to it, or --help.
 * @dashes: the prefix of an option here
 */
static const char *find_remedy(const struct option_program *program, const char *word, const char *dashes,
			       char remedy[static REMEDY_MAX])
{
	struct similar best = { 0 };

	for (const struct option_spec *spec = program->table; spec->name; spec++)
		similar_compare(&best, word, spec->name);
	if (best.name && *dashes)
		snprintf(remedy, REMEDY_MAX, "did you mean %s%s?", dashes, best.name);
	else if (best.name)
		snprintf(remedy, REMEDY_MAX, "did you mean \"%s\"?", best.name);
	else
		snprintf(remedy, REMEDY_MAX, "see %s --help", program->name);
	return remedy;
}

/* Reports a word that getopt_long() hasn't accepted. */
static void tell_no_option(const struct option_reading *reading, int c, const char *word)
{
	static const struct place nowhere;
	char quote[PROBLEM_QUOTE_MAX], letter[] = { '-', (char)optopt, '\0' }, name[REMEDY_MAX], remedy[REMEDY_MAX];

	/* Of a word like -vx getopt reports only the letter. */
	problems_quote(optopt && c != ':' ? letter : word, quote);
	if (c == ':')
		problems_add(reading->problems, &nowhere, "%s needs a value; see %s --help", quote, reading->program->name);
	else if (optopt)
		problems_add(reading->problems, &nowhere, "%s isn't an option; see %s --help", quote, reading->program->name);
	else {
		word += strspn(word, "-");
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
		problems_add(reading->problems, &nowhere, "%s isn't an option, or it takes no value; %s", quote,
			     find_remedy(reading->program, name, "--", remedy));
	}
}

/* Reports a word behind the options that is no command. */
static void tell_no_command(const struct option_reading *reading, const char *word)
{
	const struct option_program *program = reading->program;
	char quote[PROBLEM_QUOTE_MAX], remedy[REMEDY_MAX];
	static const struct place nowhere;
	struct similar best = { 0 };

	problems_quote(word, quote);
	if (program->command)
		similar_compare(&best, word, program->command);
	if (best.name)
		problems_add(reading->problems, &nowhere, "%s is not an option; did you mean \"%s\"?", quote, best.name);
	else if (strncmp(find_remedy(program, word, "--", remedy), "did", 3) == 0)
		problems_add(reading->problems, &nowhere, "%s is not an option; %s", quote, remedy);
	else
		problems_add(reading->problems, &nowhere, "%s is not an option; %s", quote, program->instead);
}

void options_read_command_line(struct option_reading *reading, int argc, char *argv[])
{
	const struct option_spec *specs = reading->program->table;
	struct option table[OPTIONS_MAX + 1] = { 0 };
	struct place place = { 0 };
	int index = 0, c;

	for (int i = 0; specs[i].name; i++) {
		assert(i < OPTIONS_MAX);
		table[i].name = specs[i].name;
		table[i].has_arg = specs[i].argument ? required_argument : no_argument;
	}
	optind = 0; /* start again, for a reload */
	/* The leading colon silences getopt: its own messages name no remedy. */
	while ((c = getopt_long(argc, argv, ":", table, &index)) != -1) {
		const struct option_spec *spec = &specs[index];

		if (c != 0) {
			tell_no_option(reading, c, argv[optind - 1]);
			return;
		}
		place.name = spec->name;
		spec->apply(&(struct option_value){ spec, reading->settings, optarg, &place, reading->problems });
		reading->on_command_line[index] = true;
		if (spec->flags & OPTION_LAST)
			return;
	}
	if (optind < argc && reading->program->take_word && reading->program->take_word(reading->settings, argv[optind]))
		optind++;
	if (optind < argc)
		tell_no_command(reading, argv[optind]);
}

/* Tells whether this option's line of the file is right, apart from its value. */
static bool check_line(struct option_reading *reading, int index, const char *value,
		       const struct place *place)
{
	const struct option_spec *specs = reading->program->table;
	const struct option_spec *spec = &specs[index];
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

static void read_line(struct option_reading *reading, struct place *place, char *line, bool has_nul)
{
	const struct option_spec *specs = reading->program->table;
	const struct option_spec *spec;
	char quote[PROBLEM_QUOTE_MAX], remedy[REMEDY_MAX], *value;
	bool overridden;
	int index;

	place->name = NULL;
	if (has_nul) {
		problems_add(reading->problems, place, "%s: there is a NUL byte; this isn't text",
			     problems_quote(line, quote));
		return;
	}
	value = lines_split(line);
	problems_quote(line, quote);
	index = find(specs, line[0] == '-' ? line + strspn(line, "-") : line);
	if (index < 0) {
		problems_add(reading->problems, place, "%s isn't an option; %s", quote,
			     find_remedy(reading->program, line, "", remedy));
		return;
	}
	spec = &specs[index];
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

void options_read_text(struct option_reading *reading, const char *path, char *text, size_t len)
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

void options_read_file(struct option_reading *reading, const struct settings_path *path)
{
	size_t len;
	char *text = textfile_read(path->name, NULL, &len, &path->place, reading->problems);

	if (text)
		options_read_text(reading, path->name, text, len);
	free(text);
}
