/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - the options of the command line and of the configuration file
 *
 * One table says all about each: what reads its value, its default, its help. The command line
 * writes "--name value" or "--name=value", the file "name value" or "name = value".
 */
#ifndef CONVERTD_OPTIONS_H
#define CONVERTD_OPTIONS_H

#include "common/problems.h"

#include <stdbool.h>
#include <stddef.h>

struct settings;

/* Flags of an option: where it may stand, and how often. */
#define OPTION_REPEATS 0x1      /* each one adds something; without this flag, the command line's replaces the file's */
#define OPTION_COMMAND_LINE 0x2 /* it is not allowed in a file */
#define OPTION_LAST 0x4         /* the arguments behind it are ignored */

struct option_spec;

/* One option as it was written. */
struct option_value {
	const struct option_spec *spec;
	struct settings *settings; /* which it sets */
	const char *text;          /* NULL: it has no argument */
	const struct place *place;
	struct problems *problems;
};

struct option_spec {
	const char *group; /* heading for this one and those behind it; NULL: no new one */
	const char *name;
	const char *argument; /* NULL: takes none */
	const char *help;     /* lines; the default of a number isn't in it */
	/* Takes the value over into the settings. Returns false after adding the error to its problems. */
	bool (*apply)(const struct option_value *value);
	size_t offset; /* of the member that it sets */
	const char *unit;
	unsigned min, max, fallback; /* of a number; its default is @fallback */
	unsigned flags;
};

/* The table ends with an option without a name. */
extern const struct option_spec options_table[];

/* Returns the index in options_table of the option with this name (without dashes), or -1. */
int options_find(const char *name);

/* Sets what has another default than zero. */
void options_set_defaults(struct settings *settings);

/* Prints the summary for --help to standard output. */
void options_print_help(void);

#endif
