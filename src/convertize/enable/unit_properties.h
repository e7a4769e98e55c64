/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_properties.h - a unit's properties, as "systemctl show" prints them; without I/O
 *
 * Each is a line, NAME=VALUE. What a unit has several of is several lines (ExecStart, EnvironmentFiles) or a list of words.
 */
#ifndef CONVERTIZE_UNIT_PROPERTIES_H
#define CONVERTIZE_UNIT_PROPERTIES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define UNIT_PROPERTIES_MAX 512
#define UNIT_WORD_MAX 4096

struct unit_properties {
	const char *lines[UNIT_PROPERTIES_MAX];
	size_t count;
};

/* Finds the lines of a text, which is written to, and which has to stay. More lines than UNIT_PROPERTIES_MAX are left out. */
void unit_properties_parse(struct unit_properties *out, char *text);

/* Returns the value of the first line with this name, or "". */
const char *unit_property(const struct unit_properties *properties, const char *name);

/*
 * Returns the value of the first line with this name from line *@next on, and moves *@next behind that; NULL if there is none. *@next
 * is 0 at first.
 */
const char *unit_property_next(const struct unit_properties *properties, const char *name, size_t *next);

/* Is the property set, as a switch is? */
bool unit_property_yes(const struct unit_properties *properties, const char *name);

/*
 * unit_word_next() - take the next word off a list
 * Words are separated by blanks, and in quotes where they have some, as in a shell.
 * @list: moved behind the word. Returns false at the end. A word that is too long is cut.
 */
bool unit_word_next(const char **list, char word[static UNIT_WORD_MAX]);

/* Has a list this word? */
bool unit_list_has(const char *list, const char *word);

/* Copies the value of a variable out of a list of assignments, such as the property Environment. Returns false if it has none. */
bool unit_list_variable(const char *list, const char *name, char value[static UNIT_WORD_MAX]);

/* One command of ExecStart. */
struct unit_command {
	char path[PATH_MAX];
	char words[UNIT_WORD_MAX]; /* separated by blanks, whatever quotes there were */
};

/* Reads the value of a line ExecStart. Returns false if it isn't one. */
bool unit_command_parse(struct unit_command *out, const char *value);

#endif
