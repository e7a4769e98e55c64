/* SPDX-License-Identifier: BSD-3-Clause */
/* command_line.h - convertize's options: one table for the command line, for convertize.conf and for --help */
#ifndef CONVERTIZE_COMMAND_LINE_H
#define CONVERTIZE_COMMAND_LINE_H

#include "common/problems.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Files with defaults, a user's and the administrator's: conf.c. */
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

/* The command: the first word that isn't an option names it. Any other word names a program to run. */
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

/* A row of the table of options: option_rows.c. */
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
enum options_method { METHOD_AUTO, METHOD_PRELOAD, METHOD_SUPERVISE };

struct options {
	enum command command;
	char **program;      /* the program and its arguments, ending with NULL; NULL: none */
	char **arguments;    /* convertize's own argv */
	const char *server;  /* of "check": HOST or HOST:PORT; NULL: none */
	const char *executable; /* the program's file; NULL: its name leads to the file */
	char **units;        /* of "enable" and "disable", ending with NULL; NULL: none */
	enum options_method method;
	bool fix_run;        /* --fix=run */
	uint64_t given;      /* a bit for each option of the command line: see options_has() */
	struct options_origin origin[OPTION_COUNT];
};

/* Was the option on the command line? */
static inline bool options_has(const struct options *options, enum option_id id)
{
	return options->given & UINT64_C(1) << id;
}

#define OPTIONS_PLACE_MAX 320

enum options_result {
	OPTIONS_RUN,
	OPTIONS_EXIT,  /* options_parse() has printed the answer to --help or --version */
	OPTIONS_USAGE, /* options_parse() has named a mistake on standard error */
};

/*
 * options_parse() - read the command line
 * Options that are settings become environment variables at once. Sets @options->command also if something behind the command is wrong.
 */
enum options_result options_parse(struct options *options, int argc, char *argv[]);

/*
 * options_similar() - find the command that the user may have meant by @word, with one or two letters wrong
 * @setting: find a setting instead. Returns NULL if no name is similar, or if @word is a right name.
 */
const char *options_similar(const char *word, bool setting);

/* Returns the value of an option's variable, after conf_load(); NULL: it is unset or empty. */
const char *option_value(enum option_id id);

/*
 * options_place() - write where an option's variable was set: "--converter", "FILE:LINE: converter", or, in the environment, the variable
 * Returns @place.
 */
const char *options_place(const struct options *options, enum option_id id, char place[static OPTIONS_PLACE_MAX]);

/* Prints a problem, which begins with an option's name or variable; instead of that prints its options_place(). */
void options_explain(const struct options *options, const char *problem);

/* --- convertize.conf (conf.c): the defaults of an administrator and of a user, and whose sessions are converted --- */

#define CONF_BYTES_MAX (256 * 1024)

enum conf_session { CONF_SESSION_UNSET, CONF_SESSION_NO, CONF_SESSION_YES };

struct conf {
	char path[PATH_MAX];
	bool is_system;                   /* the administrator's file, or --config's: may choose users whose sessions are converted */
	char *values[OPTION_COUNT];       /* of the variables; NULL: not in the file */
	unsigned int lines[OPTION_COUNT]; /* the first line that has it; 0: none */
	enum conf_session session;
	unsigned int session_line;
	char *users, *groups;             /* names with blanks between them; NULL: the file names none */
};

/*
 * conf_parse() - parse the text of a file; without I/O
 * @conf: path and is_system are set, the rest is zero. conf_fini() frees the values.
 * @text: has @len bytes and room for one more; the parser overwrites it
 * Adds each mistake to @problems, with its line. settings_read() checks the values later.
 */
void conf_parse(struct conf *conf, char *text, size_t len, struct problems *problems);

void conf_fini(struct conf *conf);

/* The files, in the order of precedence: the user's before the administrator's. */
struct conf_files {
	struct conf files[2];
	size_t count;
};

/*
 * conf_load() - read the files and set the variables that the environment doesn't have
 * @options: origin gets the file and line of each variable
 * @system_only: leave the user's own file out; "convertize paths" then fails if this user may not read the administrator's
 * Returns false after naming the mistakes on standard error. A missing file is no mistake, unless CONVERT_CONFIG names it.
 */
bool conf_load(struct conf_files *out, struct options *options, bool system_only);

/* Writes the path of a file or directory in the user's directory of configurations. Returns false if the user has no home directory. */
bool conf_user_path(char path[static PATH_MAX], const char *name);

/* The user of a session. */
struct login_user {
	uid_t uid;
	const char *name;          /* NULL: unknown */
	const char *const *groups; /* names, ending with NULL */
};

/*
 * conf_session() - do the files want the user's sessions converted? Without I/O.
 * @file: set to the file that decides; NULL: none does
 * The user's own file overrides the administrator's, which applies to the users and groups that it names, or else to all but root.
 */
bool conf_session(const struct conf_files *files, const struct login_user *user, const char **file);

#endif
