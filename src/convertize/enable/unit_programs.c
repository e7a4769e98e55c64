/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_programs.c - would the programs that a unit starts be converted? */
#include "config.h"

#include "convertize/enable/unit_programs.h"

#include "common/preload.h"
#include "convertize/run/wrapper.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY ((uid_t)65534)
#define WORDS_MAX 64

/* A number, as User= and Group= take it as well. */
static bool number_of(const char *text, unsigned int *number)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	*number = (unsigned int)value;
	return *text >= '0' && *text <= '9' && !*end;
}

/* The user and group that the unit's programs are executed by. Those of a dynamic user, and unknown ones, are nobody's. */
static struct preload_caller caller_of(const struct unit_properties *unit, bool *known)
{
	const char *user = unit_property(unit, "User"), *group = unit_property(unit, "Group");
	struct preload_caller caller = { geteuid(), getegid(), unit_property_yes(unit, "NoNewPrivileges") };
	const struct passwd *passwd;
	const struct group *found;
	unsigned int number;

	*known = true;
	if (unit_property_yes(unit, "DynamicUser")) {
		caller.uid = caller.gid = NOBODY;
		return caller;
	}
	if (*user) {
		passwd = number_of(user, &number) ? getpwuid(number) : getpwnam(user);
		*known = passwd;
		caller.uid = passwd ? passwd->pw_uid : NOBODY;
		caller.gid = passwd ? passwd->pw_gid : NOBODY;
	}
	if (*group) {
		found = number_of(group, &number) ? getgrgid(number) : getgrnam(group);
		caller.gid = found ? found->gr_gid : NOBODY;
	}
	return caller;
}

/* May everybody read the file, and enter the directories above it? */
static bool everybody_can_read(const char *path)
{
	char part[PATH_MAX];
	struct stat st;

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		if (stat(part, &st) < 0 || !(st.st_mode & S_IXOTH))
			return false;
	}
	return stat(path, &st) == 0 && st.st_mode & S_IROTH;
}

/* Is there a file below the directory that the unit has as its root? */
static bool is_in_root(const char *root, const char *path)
{
	char inside[PATH_MAX];

	return snprintf(inside, sizeof(inside), "%s%s", root, path) < PATH_MAX && access(inside, R_OK) == 0;
}

static void judge_library(struct unit_findings *findings, const struct unit_properties *unit, const char *library)
{
	const char *user = unit_property(unit, "User"), *root = unit_property(unit, "RootDirectory");
	bool other = unit_property_yes(unit, "DynamicUser") || (*user && strcmp(user, "root") != 0 && strcmp(user, "0") != 0);

	if (*root && strcmp(root, "/") != 0) {
		if (!is_in_root(root, library))
			unit_findings_add(findings, UNIT_USELESS,
					  "RootDirectory=%s: the library is not in there as %s; install it there, too", root, library);
	} else if (other && !everybody_can_read(library)) {
		unit_findings_add(findings, UNIT_USELESS, "its user can't read the library %s; install that where everybody can",
				  library);
	}
}

/* Looks for wrappers, which have a say in what is preloaded. The words' own quotes are gone, which is good enough for that. */
static const struct wrapper *wrapper_of(const char *command)
{
	char text[UNIT_WORD_MAX], *words[WORDS_MAX + 1];
	size_t count = 0;

	snprintf(text, sizeof(text), "%s", command);
	for (char *word = strtok(text, " "); word && count < WORDS_MAX; word = strtok(NULL, " "))
		words[count++] = word;
	words[count] = NULL;
	return count ? wrapper_of_command(words) : NULL;
}

/* A converter's connections to servers would go through a converter again, as a rule through itself. */
static bool is_converter(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash ? slash + 1 : path, "convertd") == 0;
}

/* Judges one command. Returns whether it would be converted. */
static bool judge_command(struct unit_findings *findings, const struct unit_command *command, const char *root,
			  const struct preload_caller *caller, const struct library *library)
{
	static struct program program;
	char path[2 * PATH_MAX], text[PRELOAD_TEXT_MAX];
	const struct wrapper *wrapper = wrapper_of(command->words);
	const struct elf_facts *facts;
	enum preload_verdict verdict;
	const char *remedy;
	size_t index;
	int error;

	if (strchr(command->path, '%')) {
		unit_findings_add(findings, UNIT_DOUBTFUL, "what \"%.200s\" stands for isn't known here", command->path);
		return true;
	}
	snprintf(path, sizeof(path), "%s%s", strcmp(root, "/") == 0 ? "" : root, command->path);
	error = -program_inspect(&program, path);
	if (error) {
		unit_findings_add(findings, UNIT_USELESS, "%.500s can't be executed: %s", path, strerror(error));
		return false;
	}
	if (is_converter(command->path)) {
		unit_findings_add(findings, UNIT_USELESS, "%.500s is a converter: its connections would go through one again", path);
		return false;
	}
	facts = &library_for(library, &program)->elf;
	verdict = preload_program_verdict(&program, facts, caller, &index);
	if (preload_level(verdict) != PRELOAD_LEVEL_WORKS) {
		bool harmful = verdict == PRELOAD_OTHER_LIBC || verdict == PRELOAD_FOREIGN;

		preload_describe(verdict, &program, index, facts, text);
		remedy = preload_remedy(verdict);
		unit_findings_add(findings,
				  preload_level(verdict) == PRELOAD_LEVEL_DOUBTFUL ? UNIT_DOUBTFUL :
				  harmful					   ? UNIT_HARMFUL :
										     UNIT_USELESS,
				  "%.600s%s%.100s", text, remedy ? "; " : "", remedy ? remedy : "");
		return preload_level(verdict) == PRELOAD_LEVEL_DOUBTFUL;
	}
	if (wrapper)
		unit_findings_add(findings, wrapper->refused ? UNIT_USELESS : UNIT_DOUBTFUL, "%s %s%s%s", wrapper->command,
				  wrapper->problem, wrapper->remedy ? "; " : "", wrapper->remedy ? wrapper->remedy : "");
	return !wrapper || !wrapper->refused;
}

void unit_judge_programs(struct unit_findings *findings, const struct unit_properties *unit, const struct library *library)
{
	struct unit_findings found = { .count = 0 };
	static struct unit_command command;
	const char *value;
	size_t next = 0;
	bool known, any = false, works = false;
	struct preload_caller caller = caller_of(unit, &known);

	judge_library(findings, unit, library->builds[0].path);
	if (!known)
		unit_findings_add(findings, UNIT_DOUBTFUL, "the user %.100s isn't known here", unit_property(unit, "User"));
	while ((value = unit_property_next(unit, "ExecStart", &next))) {
		if (!unit_command_parse(&command, value))
			continue;
		any = true;
		works |= judge_command(&found, &command, unit_property(unit, "RootDirectory"), &caller, library);
	}
	if (!any)
		unit_findings_add(findings, UNIT_USELESS, "it starts no program");
	for (size_t i = 0; i < found.count; i++) {
		bool useless = found.list[i].level == UNIT_USELESS;

		unit_findings_add(findings, works && useless ? UNIT_DOUBTFUL : found.list[i].level, "%s", found.list[i].text);
	}
}

/* Finds the last assignment to LD_PRELOAD in a file of variables. */
static bool find_preload(const char *path, char value[static UNIT_WORD_MAX])
{
	FILE *file = fopen(path, "re");
	char line[UNIT_WORD_MAX];
	bool found = false;

	while (file && fgets(line, sizeof(line), file)) {
		const char *start = line + strspn(line, " \t"), *rest = start + strlen("LD_PRELOAD=");

		if (strncmp(start, "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0)
			continue;
		found = true;
		if (!unit_word_next(&rest, value))
			value[0] = '\0';
	}
	if (file)
		fclose(file);
	return found;
}

void unit_judge_files(struct unit_findings *findings, const struct unit_properties *unit, const char *preload)
{
	const char *base = strrchr(preload, '/') ? strrchr(preload, '/') + 1 : preload, *value;
	char path[PATH_MAX], found[UNIT_WORD_MAX];
	size_t next = 0;

	while ((value = unit_property_next(unit, "EnvironmentFiles", &next))) {
		const char *end = strstr(value, " (ignore_errors=");

		snprintf(path, sizeof(path), "%.*s", (int)(end ? (size_t)(end - value) : strlen(value)), value);
		if (find_preload(path, found) && !strstr(found, base))
			unit_findings_add(findings, UNIT_USELESS,
					  "%.300s sets LD_PRELOAD, which counts more than a drop-in; add \":%.300s\" to it there",
					  path, preload);
	}
}
