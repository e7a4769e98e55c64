/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_options.h - the options of a daemon's command line and of its configuration file, and whole files
 *
 * One table describes each option completely: the function that reads its value, its default, its help. The command line writes
 * "--name value" or "--name=value", the file "name value" or "name = value".
 *
 * The command line is read first. Its options take precedence: if the file has the same option, that is only checked. Options that add a
 * value (OPTION_REPEATS) add it from both places, so that a rule on the command line can't remove one in the file.
 */
#ifndef DAEMON_DAEMON_OPTIONS_H
#define DAEMON_DAEMON_OPTIONS_H

#include "common/problems.h"
#include "daemon/listen_address.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Flags of an option: where it is allowed, and how often. */
#define OPTION_REPEATS 0x1      /* each one adds a value; without this flag, the command line's replaces the file's */
#define OPTION_COMMAND_LINE 0x2 /* not allowed in a file */
#define OPTION_LAST 0x4         /* the arguments behind it are ignored */

struct option_spec;

/* One option as it was written. */
struct option_value {
	const struct option_spec *spec;
	void *settings;   /* the daemon's settings, which it changes */
	const char *text; /* NULL: no argument */
	const struct place *place;
	struct problems *problems;
};

struct option_spec {
	const char *group; /* heading of this option and those behind it; NULL: no new one */
	const char *name;
	const char *argument; /* NULL: takes no argument */
	const char *help;     /* lines of text; don't repeat the default of a number */
	/* Stores the value in the settings. Returns false after adding the error to its problems. */
	bool (*apply)(const struct option_value *value);
	size_t offset; /* of the member that stores the value */
	const char *unit;
	unsigned min, max, fallback; /* of a number; @fallback is its default */
	unsigned flags;
};

/* A daemon's options. */
struct option_program {
	const char *name;
	const struct option_spec *table; /* ends with an option without a name */
	const char *usage;               /* the lines above the options */
	const char *more;                /* the lines below them */
	const char *instead;             /* says where a word goes that isn't an option: "addresses go behind --listen" */
	const char *command;             /* optional: the word that @take_word takes */
	/* Optional: takes a word behind the options. Returns whether it is a command of this daemon. */
	bool (*take_word)(void *settings, const char *word);
};

/* The path of a file, and the place that named it. */
struct settings_path {
	char name[PATH_MAX]; /* "": none */
	struct place place;
};

/* ----- reading ----- */

#define OPTIONS_MAX 64 /* more than the options of a daemon */

struct option_reading {
	const struct option_program *program;
	void *settings;
	void *overridden; /* settings that take the values that are overridden */
	struct problems *problems;
	/* zero at first: */
	bool on_command_line[OPTIONS_MAX];
	unsigned in_file[OPTIONS_MAX]; /* its first line in the file; 0: none */
};

/* @argv: main()'s; may be read again for a reload */
void options_read_command_line(struct option_reading *reading, int argc, char *argv[]);

/* Reads the text of a configuration file, which it changes. @path: its name for the messages */
void options_read_text(struct option_reading *reading, const char *path, char *text, size_t len);

void options_read_file(struct option_reading *reading, const struct settings_path *path);

/* Sets the defaults of all numbers. */
void options_set_numbers(const struct option_spec *table, void *settings);

/* Prints the summary for --help to standard output. */
void options_print_help(const struct option_program *program);

/* ----- whole files: the configuration, keys, cookies ----- */

/* A larger file is refused; in bytes. */
#define TEXTFILE_MAX (4 * 1024 * 1024)

/*
 * textfile_read() - read the whole of a regular file
 * @owner: for a secret: the user who may own the file, besides root, and nobody outside its group may read it;
 * NULL for a file that isn't secret
 * @len: set to the number of bytes that were read
 * @place: where the settings name the file, for messages
 * Returns the text, which the caller frees, with a NUL behind it; or NULL after adding the error to @problems.
 */
char *textfile_read(const char *path, const uid_t *owner, size_t *len, const struct place *place,
		    struct problems *problems);

/* ----- functions for a table's apply ----- */

/* Returns the member of the settings that stores the value. */
void *option_target(const struct option_value *v);

/* Adds an error that begins with the value in quotation marks. Returns false. */
bool option_refuse(const struct option_value *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool option_flag(const struct option_value *v);   /* a bool */
bool option_number(const struct option_value *v); /* an unsigned, from min to max */
bool option_word(const struct option_value *v);   /* an unsigned: the index among the words in the unit, which ", " separates */
bool option_path(const struct option_value *v);   /* a struct settings_path */

/* Adds an address of --metrics. @example: a Unix socket for the message */
bool option_add_metrics(const struct option_value *v, struct metrics_address all[static METRICS_ADDRESSES_MAX], size_t *count,
			const char *example);

#endif
