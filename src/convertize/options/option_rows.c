/* SPDX-License-Identifier: BSD-3-Clause */
/* option_rows.c - the table of convertize's options, which the parser and --help use */
#include "config.h"

#include "convertize/options/command_line.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const char options_synopsis[] =
	"Usage: convertize [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"       convertize check [OPTION]... [PROGRAM] [SERVER[:PORT]]\n"
	"       convertize enable|disable [OPTION]... UNIT...\n"
	"       convertize enable|disable --session [OPTION]...\n"
	"       convertize list [OPTION]...\n"
	"       convertize environment [OPTION]...\n"
	"       convertize status [--watch | --json] [OPTION]...\n"
	"       convertize paths [--manage | --once | --remove] [OPTION]...\n";

/* Commands that use the settings of libconvert.so. */
#define SETS (SCOPE(COMMAND_RUN) | SCOPE(COMMAND_CHECK) | SCOPE(COMMAND_ENABLE) | SCOPE(COMMAND_ENVIRONMENT))
/* Commands that ask converters. */
#define ASKS (SETS | SCOPE(COMMAND_PATHS))
#define PATHS SCOPE(COMMAND_PATHS)
#define SHOWS (SCOPE(COMMAND_STATUS) | SCOPE(COMMAND_TOP))
#define UNITS (SCOPE(COMMAND_ENABLE) | SCOPE(COMMAND_DISABLE) | SCOPE(COMMAND_LIST))

const char *const command_names[] = {
	[COMMAND_RUN] = "",
	[COMMAND_CHECK] = "check",
	[COMMAND_ENABLE] = "enable",
	[COMMAND_DISABLE] = "disable",
	[COMMAND_LIST] = "list",
	[COMMAND_ENVIRONMENT] = "environment",
	[COMMAND_PATHS] = "paths",
	[COMMAND_STATUS] = "status",
	[COMMAND_TOP] = "top",
	[COMMAND_HELP] = "help",
	[COMMAND_VERSION] = "version",
};
static_assert(sizeof(command_names) / sizeof(command_names[0]) == COMMAND_COUNT, "a name for each command");

const struct option_row option_table[] = {
	[OPTION_CONVERTER] = { "converter", "ADDR[:PORT]",
		"a converter's address or name; repeatable: the first\n"
		"usable one is used",
		ASKS | SHOWS, "CONVERT_ADDR", NULL, true },
	[OPTION_PORT] = { "port", "PORT",
		"the port of converters without one", ASKS | SHOWS,
		"CONVERT_PORT", NULL, false },
	[OPTION_BYPASS] = { "bypass", "RULES",
		"destinations to connect to directly, such as\n"
		"10.0.0.0/8 or :22; repeatable",
		SETS, "CONVERT_BYPASS", NULL, true },
	[OPTION_PATHS] = { "paths", "NETWORKS",
		"devices or addresses that connections begin on, in\n"
		"this order, with =backup or =never; repeatable",
		ASKS, "CONVERT_PATHS", NULL, true },
	[OPTION_FALLBACK] = { "fallback", "direct|none",
		"without a usable converter, connect directly or fail", SETS,
		"CONVERT_FALLBACK", NULL, false },
	[OPTION_COOKIE] = { "cookie", "TEXT",
		"the cookie for the converter; process lists show\n"
		"this option, but not the variable",
		ASKS, "CONVERT_COOKIE", NULL, false },
	[OPTION_TIMEOUT] = { "timeout", "SECONDS",
		"how long a converter may be silent (default 3)",
		ASKS, "CONVERT_TIMEOUT", NULL, false },
	[OPTION_EARLY_DATA] = { "early-data", NULL,
		"send the program's first bytes in the SYN; they may\n"
		"arrive twice: see libconvert.so(7)",
		SETS, "CONVERT_EARLY_DATA", "1", false },
	[OPTION_NO_BYPASS_MPTCP] = { "no-bypass-mptcp", NULL,
		"use the converter also for servers that speak\n"
		"Multipath TCP",
		SETS, "CONVERT_BYPASS_MPTCP", "0", false },
	[OPTION_WITHHOLDING] = { "withholding", "MS",
		"how long the converter withholds SYNs; 0: not at all\n"
		"(default: ask the converter)",
		SETS, "CONVERT_WITHHOLDING", NULL, false },
	[OPTION_SILENCE] = { "silence", "auto|never",
		"whether converters may omit their responses",
		SETS, "CONVERT_SILENCE", NULL, false },
	[OPTION_CACHE] = { "cache", "DIRECTORY|none",
		"where this user's programs share what they learn",
		SETS | SHOWS, "CONVERT_CACHE", NULL, false },
	[OPTION_LOG] = { "log", "FILE",
		"log a line for each connection; - is standard error",
		SETS, "CONVERT_LOG", NULL, false },
	[OPTION_WARN] = { "warn", NULL,
		"name started programs that can't be converted on\n"
		"stderr (default except in sessions and services)",
		SETS, "CONVERT_WARN", "1", false },
	[OPTION_LIBRARY] = { "library", "FILE",
		"the libconvert.so to preload", SETS,
		"CONVERT_LIBRARY", NULL, false },
	[OPTION_METHOD] = { "method", "preload|supervise",
		"preload the library, or supervise the program\n"
		"(default: as the program needs)",
		SCOPE(COMMAND_RUN), NULL, NULL, false },
	[OPTION_EXECUTABLE] = { "executable", "FILE",
		"the file to run, if PROGRAM is only its name",
		SCOPE(COMMAND_RUN), NULL, NULL, false },
	[OPTION_CONFIG] = { "config", "FILE|none",
		"read defaults only from this file; see\n"
		"convertize.conf(5)",
		SCOPE_ANY, "CONVERT_CONFIG", NULL, false },
	[OPTION_QUIET] = { "quiet", NULL, "print no notes and warnings; check: only faults\n"
			   "(-q)",
			   SCOPE(COMMAND_RUN) | SCOPE(COMMAND_CHECK) | SCOPE(COMMAND_ENABLE) | SCOPE(COMMAND_DISABLE), NULL, NULL, false },
	[OPTION_FORCE] = { "force", NULL,
		"run the program, or enable the unit, although it\n"
		"can't be converted",
		SCOPE(COMMAND_RUN) | SCOPE(COMMAND_ENABLE), NULL, NULL, false },
	[OPTION_JSON] = { "json", NULL,
		"check, paths, status: print a JSON object", SCOPE(COMMAND_CHECK) | PATHS | SCOPE(COMMAND_STATUS), NULL, NULL,
		false },
	[OPTION_FIX] = { "fix", "[=run]",
		"check: print the commands that repair the faults;\n"
		"with =run, run those for this machine and check\n"
		"again",
		SCOPE(COMMAND_CHECK), NULL, NULL, false },
	[OPTION_USER] = { "user", NULL,
		"units of this user's own service manager", UNITS, NULL, NULL, false },
	[OPTION_SESSION] = { "session", NULL,
		"this user's login sessions, from the next one on",
		SCOPE(COMMAND_ENABLE) | SCOPE(COMMAND_DISABLE), NULL, NULL, false },
	[OPTION_DRY_RUN] = { "dry-run", NULL,
		"print the files, or the commands of ip(8), and\n"
		"change nothing",
		SCOPE(COMMAND_ENABLE) | SCOPE(COMMAND_DISABLE) | PATHS, NULL, NULL, false },
	[OPTION_SHELL] = { "shell", NULL,
		"environment: print commands for a shell",
		SCOPE(COMMAND_ENVIRONMENT), NULL, NULL, false },
	[OPTION_WATCH] = { "watch", NULL,
		"status: show connections until q is typed, as top", SHOWS, NULL, NULL, false },
	[OPTION_MANAGE] = { "manage", NULL,
		"paths: adapt endpoints, rules and tables to the\n"
		"networks until stopped",
		PATHS, NULL, NULL, false },
	[OPTION_ONCE] = { "once", NULL,
		"paths: adapt them once", PATHS, NULL, NULL, false },
	[OPTION_REMOVE] = { "remove", NULL,
		"paths: remove what an earlier run left", PATHS, NULL, NULL, false },
	[OPTION_DEVICE] = { "device", "NAMES",
		"paths: use only these devices, of whatever kind;\n"
		"repeatable; * matches anything",
		PATHS, "CONVERTIZE_DEVICE", NULL, true },
	[OPTION_NEVER_DEVICE] = { "never-device", "NAMES",
		"paths: devices to leave alone", PATHS,
		"CONVERTIZE_NEVER_DEVICE", NULL, true },
	[OPTION_BACKUP_DEVICE] = { "backup-device", "NAMES",
		"paths: devices to use only if no other works", PATHS,
		"CONVERTIZE_BACKUP_DEVICE", NULL, true },
	[OPTION_TABLES] = { "tables", "FIRST-LAST",
		"paths: the routing tables that may be used\n"
		"(default 8803-8866)",
		PATHS, "CONVERTIZE_TABLES", NULL, false },
	[OPTION_QUOTA] = { "quota", "QUOTAS",
		"paths: bytes after which a network is a backup, such\n"
		"as wwan0=5G/month; 5G:6G adds a limit; repeatable",
		PATHS, "CONVERTIZE_QUOTA", NULL, true },
	[OPTION_BESIDE_VPN] = { "beside-vpn", NULL,
		"use networks beside a VPN that takes all traffic",
		ASKS, "CONVERT_BESIDE_VPN", "1", false },
	[OPTION_HELP] = { "help", NULL,
		"print this, and exit (-h)", SCOPE_ANY, NULL, NULL, false },
	[OPTION_VERSION] = { "version", NULL,
		"print the version, and exit (-V)", SCOPE_ANY, NULL, NULL,
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

void options_print_all(void)
{
	printf("%s"
	       "Run a program over Multipath TCP, through an RFC 8803 converter; test whether\n"
	       "that works; convert services and login sessions; show connections; manage networks.\n\n", options_synopsis);
	for (int i = 0; i < OPTION_COUNT; i++) {
		const char *argument = option_table[i].argument, *text = option_table[i].help;
		const char *line_end;
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", option_table[i].name,
			 argument && *argument != '[' ? " " : "",
			 argument ? argument : "");
		while ((line_end = strchr(text, '\n'))) {
			printf("  %-25s %.*s\n", left, (int)(line_end - text), text);
			left[0] = '\0';
			text = line_end + 1;
		}
		printf("  %-25s %s\n", left, text);
		if (option_table[i].variable)
			printf("  %-25s [%s%s%s]\n", "", option_table[i].variable,
			       option_table[i].value ? "=" : "",
			       option_table[i].value ? option_table[i].value : "");
	}
	printf("\n[NAME] is the environment variable that has the same effect."
	       "\nDefaults are read from ~/.config/convertize.conf and " CONF_SYSTEM "."
	       "\nExit status: the program's, or 125 to 127 if it isn't run; with a command, 0 done, 1 failed,"
	       "\n2 wrong options or settings, 3 degraded (check)."
	       "\nManual: man 1 convertize\n");
}
