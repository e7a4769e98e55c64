/* SPDX-License-Identifier: BSD-3-Clause */
/* command_line.h - convertize's options: one table for the command line, for convertize.conf and for --help */
#ifndef CONVERTIZE_COMMAND_LINE_H
#define CONVERTIZE_COMMAND_LINE_H

#include <stdbool.h>
#include <stdint.h>

/* Files with defaults, a user's and the administrator's: conf.h. */
#define CONF_NAME "convertize.conf"
#define CONF_SYSTEM CONVERTIZE_SYSCONFDIR "/" CONF_NAME /* see local.mk */

enum option_id {
	OPTION_CONVERTER,
	OPTION_PORT,
	OPTION_BYPASS,
	OPTION_PATHS,
	OPTION_FALLBACK,
	OPTION_COOKIE,
	OPTION_TIMEOUT,
	OPTION_EARLY_DATA,
	OPTION_NO_BYPASS_MPTCP,
	OPTION_WITHHOLDING,
	OPTION_SILENCE,
	OPTION_CACHE,
	OPTION_LOG,
	OPTION_WARN,
	OPTION_LIBRARY,
	OPTION_METHOD,
	OPTION_EXECUTABLE,
	OPTION_CONFIG,
	OPTION_QUIET,
	OPTION_FORCE,
	OPTION_JSON,
	OPTION_FIX,
	OPTION_USER,
	OPTION_SESSION,
	OPTION_DRY_RUN,
	OPTION_SHELL,
	OPTION_WATCH,
	OPTION_MANAGE,
	OPTION_ONCE,
	OPTION_REMOVE,
	OPTION_DEVICE,
	OPTION_NEVER_DEVICE,
	OPTION_BACKUP_DEVICE,
	OPTION_TABLES,
	OPTION_QUOTA,
	OPTION_BESIDE_VPN,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_COUNT
};

/* The command: the first word that is no option names it. Any other word names a program to run. */
enum command {
	COMMAND_RUN,
	COMMAND_CHECK,
	COMMAND_ENABLE,
	COMMAND_DISABLE,
	COMMAND_LIST,
	COMMAND_ENVIRONMENT,
	COMMAND_PATHS,
	COMMAND_STATUS,
	COMMAND_TOP,
	COMMAND_HELP,
	COMMAND_VERSION,
	COMMAND_COUNT
};

extern const char *const command_names[COMMAND_COUNT]; /* COMMAND_RUN has "" */

/* A bit for each command that takes an option. */
#define SCOPE(command) (1u << (command))
#define SCOPE_ANY (SCOPE(COMMAND_COUNT) - 1)

struct option_row {
	const char *name;
	const char *argument; /* NULL: takes none; with "[" in front: may take one */
	const char *help;
	unsigned int scope;
	const char *variable; /* the environment variable that it sets, of libconvert.so or of convertize; NULL: none */
	const char *value;    /* the variable's value, for an option without an argument */
	bool list;            /* the option is repeatable: each adds its argument to the variable, behind a comma */
};

extern const struct option_row option_table[OPTION_COUNT];

extern const char options_synopsis[]; /* lines of text */

/* Prints the answer to --help. */
void options_print_all(void);

/* May a configuration file set the option? It may set those of libconvert.so, the library's path, and the choice of managed paths. */
bool option_is_setting(enum option_id id);

/* Is the option's variable one that other programs get? convertize keeps its own variables to itself. */
bool option_is_library_variable(enum option_id id);

/*
 * Exit statuses beside 0. Where convertize runs a program it exits with those from 125 on, as env(1) and nohup(1) do; all others are
 * the program's. The other commands exit with the first three.
 */
enum {
	STATUS_FAILED = 1,   /* something failed or was refused; nothing is converted; no network works */
	STATUS_USAGE = 2,    /* wrong options or settings */
	STATUS_DEGRADED = 3, /* check: connections are converted, but not as well as they could be */
	STATUS_NOT_RUN = 125,
	STATUS_CANNOT_RUN = 126,
	STATUS_NOT_FOUND = 127,
};

/* The line of a file that has set an option. */
struct options_origin {
	const char *file; /* NULL: the command line or the environment has set it, or nothing has */
	unsigned int line;
};

/* --method: the way in which convertize reaches a program's connections. */
enum options_method { METHOD_AUTO, METHOD_PRELOAD, METHOD_SUPERVISE, METHOD_UNKNOWN };

struct options {
	enum command command;
	char **program;      /* the program and its arguments, ending with NULL; NULL: none */
	char **arguments;    /* convertize's own argv */
	const char *server;  /* of "check": HOST or HOST:PORT; NULL: none */
	const char *executable; /* the program's file; NULL: its name leads to the file */
	char **units;        /* of "enable" and "disable", ending with NULL; NULL: none */
	const char *library; /* the file to preload; NULL: library_find() looks for it */
	enum options_method method;
	const char *method_word; /* as the user wrote it */
	bool quiet;          /* print no notes and warnings */
	bool force;          /* run even a program that convertize can't convert */
	bool json;           /* print the facts as one JSON object */
	bool fix;            /* print the commands that repair this machine */
	bool fix_run;        /* run the commands for this machine */
	bool user;           /* units of the user's own service manager */
	bool session;        /* login sessions, not units */
	bool dry_run;        /* print files and commands, and change nothing */
	bool shell;          /* print commands for a shell */
	bool watch;          /* show connections until stopped */
	bool manage, once, remove; /* the task of "paths"; none: show the networks */
	uint64_t given;      /* a bit for each option of the command line: see options_has() */
	struct options_origin origin[OPTION_COUNT];
};

/* Was the option on the command line? */
static inline bool options_has(const struct options *options, enum option_id id)
{
	return options->given & UINT64_C(1) << id;
}

#define OPTIONS_EXPLAIN_MAX 320

enum options_result {
	OPTIONS_RUN,
	OPTIONS_EXIT,  /* options_parse() has printed the answer to --help or --version */
	OPTIONS_USAGE, /* options_parse() has named a mistake on standard error */
};

/*
 * options_parse() - read the command line
 * Options that are settings of libconvert.so become its environment variables at once.
 * Sets @options->command even if something else is wrong.
 */
enum options_result options_parse(struct options *options, int argc, char *argv[]);

/*
 * options_similar() - find the command that the user may have meant by @word, with one or two letters wrong
 * @setting: find a setting instead. Returns NULL if no name is similar, or if @word is a right name.
 */
const char *options_similar(const char *word, bool setting);

/* Sets @options->library. To call after conf_load(). */
void options_find_library(struct options *options);

/*
 * options_explain() - translate a problem with a variable: name the option that has set it
 * @problem: as settings_read() words it, the variable first
 * @option: set to "--converter", to "FILE:LINE: converter", or to the variable if that came from the environment
 * Returns the part of @problem behind the variable's name.
 */
const char *options_explain(const struct options *options, const char *problem, char option[static OPTIONS_EXPLAIN_MAX]);

#endif
