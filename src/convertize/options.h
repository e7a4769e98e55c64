/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - convertize's command line */
#ifndef CONVERTIZE_OPTIONS_H
#define CONVERTIZE_OPTIONS_H

#include <stdbool.h>

/* Statuses of convertize itself, as env(1) and nohup(1) have them; all others are the program's. */
#define OPTIONS_STATUS_FAILED 125
#define OPTIONS_STATUS_CANNOT_RUN 126
#define OPTIONS_STATUS_NOT_FOUND 127

/* Statuses of "convertize check" beside 0. */
#define OPTIONS_CHECK_FAILED 1
#define OPTIONS_CHECK_USAGE 2
#define OPTIONS_CHECK_DEGRADED 3

struct options {
	bool check;          /* "convertize check", not a program to be run */
	char **program;      /* and its arguments, ending with NULL; NULL: none */
	const char *library; /* the file to preload; NULL: library_find() looks for it */
	bool force;          /* run a program that can't be converted, too */
	bool json;           /* print the facts as one JSON object */
	bool fix;            /* print the commands that mend what is wrong */
	bool fix_run;        /* run those of them that are for this machine */
	unsigned int given;  /* a bit for each option_id: see options_explain() */
};

enum options_result {
	OPTIONS_RUN,
	OPTIONS_EXIT,  /* --help or --version has been answered */
	OPTIONS_USAGE, /* what is wrong was said on standard error */
};

/*
 * options_parse() - read the command line
 * Options that are settings of libconvert.so become its environment variables at once.
 * @options->check says which use of convertize was meant even if something else is wrong.
 */
enum options_result options_parse(struct options *options, int argc, char *argv[]);

/*
 * options_explain() - say a problem with a variable in terms of the option that has set it
 * @problem: as settings_read() words it, the variable first
 * @option: set to "--converter", or to the variable if that came from the environment
 * Returns the part of @problem behind the variable's name.
 */
const char *options_explain(const struct options *options, const char *problem, char option[32]);

#endif
