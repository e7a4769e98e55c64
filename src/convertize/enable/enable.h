/* SPDX-License-Identifier: BSD-3-Clause */
/* enable.h - converts systemd's services and login sessions by default */
#ifndef CONVERTIZE_ENABLE_H
#define CONVERTIZE_ENABLE_H

#include "convertize/options/command_line.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* --- "convertize enable", "disable" and "list" (services.c) --- */

/* Each returns the exit status: 0, STATUS_FAILED or STATUS_USAGE. */
int services_enable(struct options *options);
int services_disable(const struct options *options);
int services_list(const struct options *options);

/*
 * enable_check_log() - check that the log has an absolute path, if it is a file: services and programs of sessions run in any directory
 * Returns false after printing the mistake.
 */
bool enable_check_log(const struct options *options, const char *log);

/* --- "convertize enable --session" and "convertize environment" (login_session.c) --- */

/* Each returns the exit status. */
int login_session_enable(struct options *options);
int login_session_disable(struct options *options);
int login_session_environment(struct options *options);

/*
 * Prints a line for "convertize list". Returns false if a file wants sessions converted and a mistake prevents that, with the reason on
 * standard error.
 */
bool login_session_list(void);

/* --- the files that convertize makes: it writes each whole or not at all, and removes only its own (own_files.c) --- */

enum own_result {
	OWN_DONE,
	OWN_NOTHING, /* nothing had to change */
	OWN_FAILED,  /* the function has printed the reason on standard error */
};

/*
 * own_units() - find the directory in which the administrator, or with @user the user, adds and changes units
 * Returns false, with the reason on standard error, if the user has no home directory.
 */
bool own_units(char path[static PATH_MAX], bool user);

/* Writes the path of a file beside a unit's drop-ins: "UNIT.d/NAME". Returns false if it is too long. */
bool own_path(char path[static PATH_MAX], const char *units, const char *unit, const char *name);

/*
 * own_write() - make the file's directories, write it under another name, and rename it
 * Fails, and changes nothing, if somebody else made the file that is there.
 */
enum own_result own_write(const char *path, const char *text, mode_t mode);

/* own_remove() - remove a file that is ours and, with @directory, its directory if that is empty then */
enum own_result own_remove(const char *path, bool directory);

/* own_read() - read a file that is ours; returns its text, which the caller frees, or NULL */
char *own_read(const char *path);

/* --- texts that convertize and systemd exchange, without I/O (unit_text.c) --- */

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

#define UNIT_WORD_MAX 4096

/* Lines NAME=VALUE, each ending with a NUL; all zero: there are none. */
struct unit_properties {
	const char *text;
	size_t len;
};

/* Separates the lines of @text, to which @out then points. */
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

/* Writes a line NAME="VALUE", in which shells and systemd take the same escapes. */
void unit_write_quoted(FILE *out, const char *name, const char *value);

/* Closes a memory stream, and returns its @text, which the caller frees; or NULL if a write failed or @right is false. */
char *unit_text_finish(FILE *out, char **text, bool right);

/* Returns the value of a variable in a text of unit_dropin_text(); the caller frees it. NULL: the text doesn't have it. */
char *unit_dropin_variable(const char *text, const char *name);

/* Is it the text of a file that convertize has made? */
bool unit_text_is_ours(const char *text);

#endif
