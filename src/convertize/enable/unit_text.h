/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_text.h - the texts that convertize and systemd exchange: units' names, their properties, and our drop-ins; without I/O
 *
 * "systemctl show" prints a property as a line NAME=VALUE. It prints several values as several lines (ExecStart) or as one list of
 * words (Environment).
 */
#ifndef CONVERTIZE_UNIT_TEXT_H
#define CONVERTIZE_UNIT_TEXT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define UNIT_NAME_MAX 256 /* with the NUL: systemd's own limit */
#define UNIT_SERVICE ".service"

/*
 * unit_name_complete() - write the full name of the service that a user means: "ssh" is ssh.service
 * Returns NULL, or the problem, in words that complete "X …".
 */
const char *unit_name_complete(char out[static UNIT_NAME_MAX], const char *word);

/* Is it the name of a template, like "container@.service"? */
bool unit_name_is_template(const char *name);

/*
 * unit_name_instance() - write the name of an instance of a template, since systemd knows no properties of templates
 * Copies any other name as it is. unit_name_template() turns the instance's name, as systemd prints it, into the template's.
 */
void unit_name_instance(char out[static UNIT_NAME_MAX], const char *name);
void unit_name_template(char name[static UNIT_NAME_MAX]);

#define UNIT_PROPERTIES_MAX 512
#define UNIT_WORD_MAX 4096

struct unit_properties {
	const char *lines[UNIT_PROPERTIES_MAX];
	size_t count;
};

/* Finds the lines of @text, which it overwrites, and to which @out then points. Leaves lines beyond UNIT_PROPERTIES_MAX out. */
void unit_properties_parse(struct unit_properties *out, char *text);

/* Returns the value of the first line with this name, or "". */
const char *unit_property(const struct unit_properties *properties, const char *name);

/*
 * unit_word_next() - take the next word from a list
 * Blanks separate words; a word with blanks is quoted, as in a shell. Truncates a word that is too long.
 * @list: moved behind the word. Returns false at the end.
 */
bool unit_word_next(const char **list, char word[static UNIT_WORD_MAX]);

/* Copies the value of a variable from a list of assignments (the property Environment). Returns false if it has none. */
bool unit_list_variable(const char *list, const char *name, char value[static UNIT_WORD_MAX]);

/* Copies the path of the program from a value of ExecStart. Returns false if there is none. */
bool unit_command_path(const char *value, char path[static PATH_MAX]);

/* Returns a system call of the library for which the unit's SystemCallFilter= would end the process; NULL: there is none. */
const char *unit_deadly_call(const struct unit_properties *unit);

/*
 * The first words of each file that convertize makes. It replaces and removes no other files.
 * "zz" makes the drop-in one of the last that systemd reads: the last value of a variable counts.
 */
#define UNIT_MARKER "# Made by convertize"
#define UNIT_DROPIN_NAME "zz-convertize.conf"
#define UNIT_COOKIE_NAME "zz-convertize.cookie"

/* Looks a variable up, as getenv(3) does. */
typedef const char *unit_lookup(const char *name);

/*
 * unit_dropin_text() - compose the drop-in that converts a unit
 * @unit: its name. @preload: the value of LD_PRELOAD.
 * @cookie_path: of the file with unit_cookie_text(); NULL: there is none
 * Returns a text, which the caller frees; NULL if memory runs out, or if a unit file can't contain a value.
 */
char *unit_dropin_text(const char *unit, const char *preload, const char *cookie_path, unit_lookup *lookup);

/*
 * unit_cookie_text() - compose the file with the cookie, which the drop-in can't contain since everybody can read that
 * Returns as above.
 */
char *unit_cookie_text(const char *unit, const char *cookie);

/* Can a line of a file contain the value? It can if it has no control characters. */
bool unit_value_is_plain(const char *value);

/* Returns the value of a variable in a text of unit_dropin_text(); the caller frees it. NULL: the text doesn't have it. */
char *unit_dropin_variable(const char *text, const char *name);

/* Is it the text of a file that convertize has made? */
bool unit_text_is_ours(const char *text);

#endif
