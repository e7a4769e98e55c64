/* SPDX-License-Identifier: BSD-3-Clause */
/* conf.c - the text of convertize.conf */
#include "config.h"

#include "convertize/options/conf.h"

#include "common/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds @text to a list in memory, with @separator between or, if @trailing, behind. Returns false without memory. */
static bool append(char **list, const char *text, char separator, bool trailing)
{
	size_t before = *list ? strlen(*list) : 0, len = strlen(text);
	char *joined = realloc(*list, before + len + 2), *end;

	if (!joined)
		return false;
	*list = joined;
	end = joined + before;
	if (before && !trailing)
		*end++ = separator;
	memcpy(end, text, len);
	end += len;
	if (trailing)
		*end++ = separator;
	*end = '\0';
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

/* What a switch such as "early-data" sets its variable to: without a value as on the command line. NULL: nothing. */
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
	if (!append(&conf->values[id], value, ',', false))
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
	else if (!append(list, value, ' ', true))
		problems_add(problems, place, "out of memory");
}

static void tell_no_setting(const char *name, const struct place *place, struct problems *problems)
{
	const char *bare = name + strspn(name, "-");
	char quote[PROBLEM_QUOTE_MAX];

	problems_quote(name, quote);
	if (*name == '-' && find_setting(bare) >= 0)
		problems_add(problems, place, "%s has dashes; in a file, write \"%s\"", quote, bare);
	else if (is_option(bare))
		problems_add(problems, place, "%s belongs on the command line", quote);
	else
		problems_add(problems, place, "%s is no setting; see convertize.conf(5)", quote);
}

static void read_line(struct conf *conf, char *line, struct place *place, struct problems *problems)
{
	char *value = lines_split(line);
	int id = find_setting(line);

	if (id >= 0)
		place->name = option_table[id].name;
	else if (strcmp(line, "session") == 0)
		place->name = "session";
	else if (strcmp(line, "session-user") == 0)
		place->name = "session-user";
	else if (strcmp(line, "session-group") == 0)
		place->name = "session-group";

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
			problems_add(problems, &place, "%s: there is a NUL byte; this is no text",
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
