/* SPDX-License-Identifier: BSD-3-Clause */
/* option_table.h - the options of convertize: for the command line, for its files, and for --help */
#ifndef CONVERTIZE_OPTION_TABLE_H
#define CONVERTIZE_OPTION_TABLE_H

#include <stdbool.h>

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
	OPTION_FORCE,
	OPTION_JSON,
	OPTION_FIX,
	OPTION_USER,
	OPTION_ROOT,
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
	const char *value;    /* what the variable is set to by an option without an argument */
	bool list;            /* given again, the option adds to the variable, behind a comma */
};

extern const struct option_row option_table[OPTION_COUNT];

/* May the option stand in a configuration file? These are the settings of libconvert.so, where that is, and which paths are managed. */
bool option_is_setting(enum option_id id);

/* May the option's variable be handed on to other programs? It may not if it is convertize's own. */
bool option_is_library_variable(enum option_id id);

#endif
