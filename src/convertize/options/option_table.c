/* SPDX-License-Identifier: BSD-3-Clause */
/* option_table.c - the options of convertize: for the command line, for its files, and for --help */
#include "config.h"

#include "convertize/options/option_table.h"

#include <assert.h>
#include <stddef.h>

/* Commands that the settings of libconvert.so mean something to. */
#define SETS (SCOPE(COMMAND_RUN) | SCOPE(COMMAND_CHECK) | SCOPE(COMMAND_ENABLE) | SCOPE(COMMAND_ENVIRONMENT))
/* Commands with options that say which converter is asked, and how. */
#define ASKS (SETS | SCOPE(COMMAND_PATHS))
#define PATHS SCOPE(COMMAND_PATHS)
#define UNITS (SCOPE(COMMAND_ENABLE) | SCOPE(COMMAND_DISABLE) | SCOPE(COMMAND_LIST))

const char *const command_names[] = {
	[COMMAND_RUN] = "",
	[COMMAND_CHECK] = "check",
	[COMMAND_ENABLE] = "enable",
	[COMMAND_DISABLE] = "disable",
	[COMMAND_LIST] = "list",
	[COMMAND_ENVIRONMENT] = "environment",
	[COMMAND_PATHS] = "paths",
};
static_assert(sizeof(command_names) / sizeof(command_names[0]) == COMMAND_COUNT, "a name for each command");

const struct option_row option_table[] = {
	[OPTION_CONVERTER] = { "converter", "ADDR[:PORT]",
			       "a converter's address or name; may be given again:\n"
			       "connections go to the first that can be used",
			       ASKS, "CONVERT_ADDR", NULL, true },
	[OPTION_PORT] = { "port", "PORT", "the port of converters that are named without one", ASKS,
			  "CONVERT_PORT", NULL, false },
	[OPTION_BYPASS] = { "bypass", "RULES",
			    "destinations that are connected to directly, such as\n"
			    "10.0.0.0/8 or :22; may be given again",
			    SETS, "CONVERT_BYPASS", NULL, true },
	[OPTION_PATHS] = { "paths", "NETWORKS",
			   "devices or addresses that connections begin on, in this\n"
			   "order; with =backup or =never behind one; may be given\n"
			   "again",
			   SETS, "CONVERT_PATHS", NULL, true },
	[OPTION_FALLBACK] = { "fallback", "direct|none",
			      "where no converter can be used, connections go\n"
			      "directly, or they fail", SETS,
			      "CONVERT_FALLBACK", NULL, false },
	[OPTION_COOKIE] = { "cookie", "TEXT",
			    "the cookie for the converter; lists of processes\n"
			    "show this option to everybody, and not the variable",
			    ASKS, "CONVERT_COOKIE", NULL, false },
	[OPTION_TIMEOUT] = { "timeout", "SECONDS",
			     "give a converter up after so many seconds of silence\n"
			     "(default 3)",
			     ASKS, "CONVERT_TIMEOUT", NULL, false },
	[OPTION_EARLY_DATA] = { "early-data", NULL,
				"send the program's first bytes in the SYN; they may\n"
				"arrive twice: see libconvert.so(7)",
				SETS, "CONVERT_EARLY_DATA", "1", false },
	[OPTION_NO_BYPASS_MPTCP] = { "no-bypass-mptcp", NULL,
				     "use the converter for servers that speak MPTCP, too",
				     SETS, "CONVERT_BYPASS_MPTCP", "0", false },
	[OPTION_WITHHOLDING] = { "withholding", "MS",
				 "for how many milliseconds at most the converter\n"
				 "withholds SYNs; 0: it doesn't (default: as it says)",
				 SETS, "CONVERT_WITHHOLDING", NULL, false },
	[OPTION_SILENCE] = { "silence", "auto|never",
			     "let converters that offer it leave out their answers,\n"
			     "or never do",
			     SETS, "CONVERT_SILENCE", NULL, false },
	[OPTION_CACHE] = { "cache", "DIRECTORY|none", "where programs keep what they learn from connections\n"
			   "for each other",
			   SETS, "CONVERT_CACHE", NULL, false },
	[OPTION_LOG] = { "log", "FILE", "write a line for each connection; - is standard error",
			 SETS, "CONVERT_LOG", NULL, false },
	[OPTION_WARN] = { "warn", NULL,
			  "say on standard error which programs it starts whose\n"
			  "connections can't be converted",
			  SETS, "CONVERT_WARN", "1", false },
	[OPTION_LIBRARY] = { "library", "FILE", "the libconvert.so to preload", SETS,
			     "CONVERT_LIBRARY", NULL, false },
	[OPTION_METHOD] = { "method", "preload|supervise",
			    "how the program is reached: by a preloaded library, or\n"
			    "by a supervisor (default: as the program needs)",
			    SCOPE(COMMAND_RUN), NULL, NULL, false },
	[OPTION_EXECUTABLE] = { "executable", "FILE", "the file to run, where PROGRAM is only its name",
				SCOPE(COMMAND_RUN), NULL, NULL, false },
	[OPTION_CONFIG] = { "config", "FILE|none",
			    "read defaults there, and nowhere else; see\n"
			    "convertize.conf(5)",
			    SCOPE_ANY, "CONVERT_CONFIG", NULL, false },
	[OPTION_FORCE] = { "force", NULL, "run the program, or enable the unit, even if none of\n"
			   "its connections would be converted",
			   SCOPE(COMMAND_RUN) | SCOPE(COMMAND_ENABLE), NULL, NULL, false },
	[OPTION_JSON] = { "json", NULL, "check, paths: print one JSON object", SCOPE(COMMAND_CHECK) | PATHS, NULL, NULL,
			  false },
	[OPTION_FIX] = { "fix", "[=run]",
			 "check: print the commands that mend what is wrong;\n"
			 "with =run, run those that are for this machine, and\n"
			 "check again",
			 SCOPE(COMMAND_CHECK), NULL, NULL, false },
	[OPTION_USER] = { "user", NULL, "units of this user's own service manager", UNITS, NULL, NULL, false },
	[OPTION_ROOT] = { "root", "DIRECTORY",
			  "units of the system in this directory, without asking\n"
			  "a service manager",
			  UNITS, NULL, NULL, false },
	[OPTION_SESSION] = { "session", NULL, "this user's login sessions, from the next one on",
			     SCOPE(COMMAND_ENABLE) | SCOPE(COMMAND_DISABLE), NULL, NULL, false },
	[OPTION_DRY_RUN] = { "dry-run", NULL, "print the files, or the commands of ip(8), and\n"
			     "change nothing",
			     SCOPE(COMMAND_ENABLE) | SCOPE(COMMAND_DISABLE) | PATHS, NULL, NULL, false },
	[OPTION_SHELL] = { "shell", NULL, "environment: print commands for a shell",
			   SCOPE(COMMAND_ENVIRONMENT), NULL, NULL, false },
	[OPTION_MANAGE] = { "manage", NULL, "paths: keep endpoints, rules and tables right, for as\n"
			    "long as it runs",
			    PATHS, NULL, NULL, false },
	[OPTION_ONCE] = { "once", NULL, "paths: make them right, and leave them so", PATHS, NULL, NULL, false },
	[OPTION_REMOVE] = { "remove", NULL, "paths: take away what was left of them", PATHS, NULL, NULL, false },
	[OPTION_DEVICE] = { "device", "NAMES", "paths: these devices and no others, of whatever kind;\n"
			    "may be given again, and may have * in it",
			    PATHS, "CONVERTIZE_DEVICE", NULL, true },
	[OPTION_NEVER_DEVICE] = { "never-device", "NAMES", "paths: devices that are left alone", PATHS,
				  "CONVERTIZE_NEVER_DEVICE", NULL, true },
	[OPTION_BACKUP_DEVICE] = { "backup-device", "NAMES",
				   "paths: devices that are used where no other works", PATHS,
				   "CONVERTIZE_BACKUP_DEVICE", NULL, true },
	[OPTION_TABLES] = { "tables", "FIRST-LAST", "paths: the routing tables that are for them\n"
			    "(default 8803-8866)",
			    PATHS, "CONVERTIZE_TABLES", NULL, false },
	[OPTION_BESIDE_VPN] = { "beside-vpn", NULL, "use networks beside a VPN that all traffic goes\n"
				"through, too",
				ASKS, "CONVERT_BESIDE_VPN", "1", false },
	[OPTION_HELP] = { "help", NULL, "print this and exit", SCOPE_ANY, NULL, NULL, false },
	[OPTION_VERSION] = { "version", NULL, "print the version and exit", SCOPE_ANY, NULL, NULL,
			     false },
};
static_assert(sizeof(option_table) / sizeof(option_table[0]) == OPTION_COUNT,
	      "an entry for each option");
static_assert(OPTION_COUNT <= 64, "a bit for each in struct options");

bool option_is_setting(enum option_id id)
{
	return option_table[id].variable && id != OPTION_CONFIG;
}

bool option_is_library_variable(enum option_id id)
{
	return option_is_setting(id) && id != OPTION_LIBRARY && option_table[id].scope & SCOPE(COMMAND_RUN);
}
