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
	OPTION_MANAGE,
	OPTION_ONCE,
	OPTION_REMOVE,
	OPTION_DEVICE,
	OPTION_NEVER_DEVICE,
	OPTION_BACKUP_DEVICE,
	OPTION_TABLES,
	OPTION_BESIDE_VPN,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_COUNT
};

/* What convertize is called for: the first word that is no option names it, unless that is a program to be run. */
enum command {
	COMMAND_RUN,
	COMMAND_CHECK,
	COMMAND_ENABLE,
	COMMAND_DISABLE,
	COMMAND_LIST,
	COMMAND_ENVIRONMENT,
	COMMAND_PATHS,
	COMMAND_HELP,
	COMMAND_VERSION,
	COMMAND_COUNT
};

extern const char *const command_names[COMMAND_COUNT]; /* that of COMMAND_RUN is "" */

/* Bits that say with which commands an option may be given. */
#define SCOPE(command) (1u << (command))
#define SCOPE_ANY (SCOPE(COMMAND_COUNT) - 1)

struct option_row {
	const char *name;
	const char *argument; /* NULL: takes none; with "[" in front: may take one */
	const char *help;
	unsigned int scope;
	const char *variable; /* the environment variable that it sets, of libconvert.so or of convertize; NULL: none */
	const char *value;    /* the variable's value, for an option without an argument */
	bool list;            /* given again, the option adds to the variable, behind a comma */
};

extern const struct option_row option_table[OPTION_COUNT];

/* May the option stand in a configuration file? These are the settings of libconvert.so, where that is, and which paths are managed. */
bool option_is_setting(enum option_id id);

/* May the option's variable be handed on to other programs? It may not if it is convertize's own. */
bool option_is_library_variable(enum option_id id);

/*
 * Exit statuses beside 0. Those from 125 on are for running a program, as env(1) and nohup(1) have them: all others are the program's then.
 * The other commands share the first ones.
 */
enum {
	STATUS_FAILED = 1,   /* something failed or was refused; nothing is converted; no network works */
	STATUS_USAGE = 2,    /* wrong options or settings */
	STATUS_DEGRADED = 3, /* check: connections are converted, but not as well as they could be */
	STATUS_NOT_RUN = 125,
	STATUS_CANNOT_RUN = 126,
	STATUS_NOT_FOUND = 127,
};

/* Where the value of a setting comes from, if neither from the command line nor from the environment. */
struct options_origin {
	const char *file; /* NULL: from these, or it isn't set */
	unsigned int line;
};

/* How a program is reached. */
enum options_method { METHOD_AUTO, METHOD_PRELOAD, METHOD_SUPERVISE, METHOD_UNKNOWN };

struct options {
	enum command command;
	char **program;      /* and its arguments, ending with NULL; NULL: none */
	char **arguments;    /* all of convertize's own, with its name */
	const char *executable; /* the program's file; NULL: as its name says */
	char **units;        /* of "enable" and "disable", ending with NULL; NULL: none */
	const char *library; /* the file to preload; NULL: library_find() looks for it */
	enum options_method method;
	const char *method_word; /* as it was given */
	bool quiet;          /* print no notes and warnings */
	bool force;          /* run a program that can't be converted, too */
	bool json;           /* print the facts as one JSON object */
	bool fix;            /* print the commands that repair this machine */
	bool fix_run;        /* run those of them that are for this machine */
	bool user;           /* units of the user's own service manager */
	bool session;        /* login sessions, not units */
	bool dry_run;        /* print files and commands, and change nothing */
	bool shell;          /* print commands for a shell */
	bool manage, once, remove; /* the task of "paths"; none: show them */
	uint64_t given;      /* a bit for each option_id: see options_has() */
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
	OPTIONS_EXIT,  /* --help or --version has been answered */
	OPTIONS_USAGE, /* the mistake was said on standard error */
};

/*
 * options_parse() - read the command line
 * Options that are settings of libconvert.so become its environment variables at once.
 * @options->command says which use of convertize was meant even if something else is wrong.
 */
enum options_result options_parse(struct options *options, int argc, char *argv[]);

/*
 * options_similar() - the command, or with @setting the name of a setting, that @word is nearly: one or two letters are wrong
 * Returns NULL if there is none, or if @word is one of them.
 */
const char *options_similar(const char *word, bool setting);

/* Sets @options->library, once the files with defaults were read. */
void options_find_library(struct options *options);

/*
 * options_explain() - say a problem with a variable in terms of the option that has set it
 * @problem: as settings_read() words it, the variable first
 * @option: set to "--converter", to "FILE:LINE: converter", or to the variable if that came from the environment
 * Returns the part of @problem behind the variable's name.
 */
const char *options_explain(const struct options *options, const char *problem, char option[static OPTIONS_EXPLAIN_MAX]);

#endif
