/* SPDX-License-Identifier: BSD-3-Clause */
/* command_line.c - convertize's command line: one table of options, which the parser and --help use */
#include "config.h"

#include "convertize/options/command_line.h"

#include "common/program.h"
#include "common/similar.h"
#include "common/sockaddr.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYNOPSIS \
	"Usage: convertize [OPTION]... [--] PROGRAM [ARGUMENT]...\n" \
	"       convertize check [OPTION]... [PROGRAM] [SERVER[:PORT]]\n" \
	"       convertize enable|disable [OPTION]... UNIT...\n" \
	"       convertize enable|disable --session [OPTION]...\n" \
	"       convertize list [OPTION]...\n" \
	"       convertize environment [OPTION]...\n" \
	"       convertize status [--watch | --json] [OPTION]...\n" \
	"       convertize paths [--manage | --once | --remove] [OPTION]...\n"

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
		"(default: the converter is asked)",
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
		"name on standard error each started program that\n"
		"can't be converted (default but in sessions, services)",
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
	[OPTION_QUIET] = { "quiet", NULL, "print no notes and warnings; check: only what is\n"
			   "wrong (-q)",
			   SCOPE(COMMAND_RUN) | SCOPE(COMMAND_CHECK) | SCOPE(COMMAND_ENABLE) | SCOPE(COMMAND_DISABLE), NULL, NULL, false },
	[OPTION_FORCE] = { "force", NULL,
		"run the program, or enable the unit, although it\n"
		"can't be converted",
		SCOPE(COMMAND_RUN) | SCOPE(COMMAND_ENABLE), NULL, NULL, false },
	[OPTION_JSON] = { "json", NULL,
		"check, paths, status: print a JSON object", SCOPE(COMMAND_CHECK) | PATHS | SCOPE(COMMAND_STATUS), NULL, NULL,
		false },
	[OPTION_FIX] = { "fix", "[=run]",
		"check: print the commands that mend what is wrong;\n"
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
		"status: show them until q is typed (convertize top)", SHOWS, NULL, NULL, false },
	[OPTION_MANAGE] = { "manage", NULL,
		"paths: keep endpoints, rules and tables right until\n"
		"stopped",
		PATHS, NULL, NULL, false },
	[OPTION_ONCE] = { "once", NULL,
		"paths: make them right once", PATHS, NULL, NULL, false },
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
		"paths: bytes for a network, as in wwan0=5G/month: then\n"
		"it is for backup; behind a colon, a limit: repeatable",
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

/* --- parsing ---------------------------------------------------------------------------- */

static enum options_result usage(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static enum options_result usage(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "convertize: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return OPTIONS_USAGE;
}

static void print_help(void)
{
	printf(SYNOPSIS
	       "Run a program over Multipath TCP, through an RFC 8803 converter; test whether\n"
	       "that works; convert services and login sessions; show connections; manage networks.\n\n");
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

/* Sets the variable of an option, which libconvert.so and settings_read() read. */
static enum options_result set_variable(struct options *options, enum option_id id,
					const char *value)
{
	const char *variable = option_table[id].variable, *before = getenv(variable);
	bool again = options_has(options, id);
	char *joined = NULL;
	int ret;

	if (again && option_table[id].list && before) {
		if (asprintf(&joined, "%s,%s", before, value) < 0)
			return usage("out of memory");
		value = joined;
	}
	ret = setenv(variable, value, 1);
	free(joined);
	return ret == 0 ? OPTIONS_RUN : usage("--%s: %s", option_table[id].name, strerror(errno));
}

static enum options_result parse_option(struct options *options, enum option_id id,
					const char *argument)
{
	enum options_result result = OPTIONS_RUN;

	if (option_table[id].variable)
		result = set_variable(options, id, argument ? argument : option_table[id].value);
	options->given |= UINT64_C(1) << id;
	switch (id) {
	case OPTION_QUIET:
		options->quiet = true;
		break;
	case OPTION_FORCE:
		options->force = true;
		break;
	case OPTION_METHOD:
		options->method_word = argument;
		options->method = strcmp(argument, "preload") == 0   ? METHOD_PRELOAD :
				  strcmp(argument, "supervise") == 0 ? METHOD_SUPERVISE :
								       METHOD_UNKNOWN;
		break;
	case OPTION_EXECUTABLE:
		options->executable = argument;
		break;
	case OPTION_JSON:
		options->json = true;
		break;
	case OPTION_FIX:
		if (argument && strcmp(argument, "run") != 0)
			return usage("--fix=%s: it is --fix, which prints, or --fix=run", argument);
		options->fix = true;
		options->fix_run = argument;
		break;
	case OPTION_USER:
		options->user = true;
		break;
	case OPTION_SESSION:
		options->session = true;
		break;
	case OPTION_DRY_RUN:
		options->dry_run = true;
		break;
	case OPTION_SHELL:
		options->shell = true;
		break;
	case OPTION_WATCH:
		options->watch = true;
		break;
	case OPTION_MANAGE:
		options->manage = true;
		break;
	case OPTION_ONCE:
		options->once = true;
		break;
	case OPTION_REMOVE:
		options->remove = true;
		break;
	case OPTION_HELP:
		print_help();
		return OPTIONS_EXIT;
	case OPTION_VERSION:
		printf("convertize (%s) %s\n", PACKAGE_NAME, PACKAGE_VERSION);
		return OPTIONS_EXIT;
	default:
		break;
	}
	return result;
}

const char *options_similar(const char *word, bool setting)
{
	struct similar best = { 0 };

	for (int i = COMMAND_CHECK; !setting && i < COMMAND_COUNT; i++)
		similar_compare(&best, word, command_names[i]);
	for (int i = 0; setting && i < OPTION_COUNT; i++)
		if (option_is_setting((enum option_id)i))
			similar_compare(&best, word, option_table[i].name);
	if (setting)
		similar_compare(&best, word, "session"); /* a setting of files, without an option */
	return best.wrong ? best.name : NULL;
}

/* Names the mistake in an option that getopt doesn't know. */
static enum options_result unknown_option(const char *word)
{
	const char *bare = word + strspn(word, "-");
	char name[OPTIONS_EXPLAIN_MAX];
	struct similar best = { 0 };

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(bare, "="), bare);
	for (int i = COMMAND_CHECK; i < COMMAND_COUNT; i++)
		if (strcmp(name, command_names[i]) == 0)
			return usage("%s: no such option; did you mean \"convertize %s\"?", word, name);
	for (int i = 0; i < OPTION_COUNT; i++)
		similar_compare(&best, name, option_table[i].name);
	if (best.name && !best.wrong && word[1] == '-')
		return usage("%s: --%s takes no value", word, best.name);
	if (best.name)
		return usage("%s: no such option; did you mean --%s?", word, best.name);
	return usage("%s: no such option; see convertize --help", word);
}

/* Returns the option that a letter stands for, or OPTION_COUNT. */
static enum option_id option_of_letter(int letter)
{
	return letter == 'h' ? OPTION_HELP : letter == 'V' ? OPTION_VERSION : letter == 'q' ? OPTION_QUIET : OPTION_COUNT;
}

/* Parses options up to the first word that isn't an option. */
static enum options_result parse_options(struct options *options, int argc, char *argv[])
{
	struct option getopt_table[OPTION_COUNT + 1] = { 0 };
	enum options_result result;
	int index = 0, at = optind ? optind : 1, c;

	for (int i = 0; i < OPTION_COUNT; i++) {
		getopt_table[i].name = option_table[i].name;
		getopt_table[i].has_arg =
			!option_table[i].argument	  ? no_argument :
			*option_table[i].argument == '[' ? optional_argument :
							   required_argument;
	}
	/* The colon silences getopt: its own messages name no remedy. */
	while ((c = getopt_long(argc, argv, "+:hVq", getopt_table, &index)) != -1) {
		if (option_of_letter(c) != OPTION_COUNT) {
			index = (int)option_of_letter(c);
			c = 0;
		}
		if (c == ':')
			return usage("%s needs a value; see convertize --help", argv[optind - 1]);
		if (c != 0)
			return unknown_option(argv[optopt ? at : optind - 1]);
		result = parse_option(options, (enum option_id)index, optarg);
		if (result != OPTIONS_RUN)
			return result;
		at = optind;
	}
	return OPTIONS_RUN;
}

/* Does the word name a server rather than a program? An address does, HOST:PORT, and a name with a dot that is no command's. */
static bool is_server(const char *word)
{
	static struct program program;
	const char *colon = strrchr(word, ':');
	union sockaddr_ip address;

	if (strchr(word, '/'))
		return false;
	if (sockaddr_ip_parse(&address, word, 1) == 0 || (colon && strspn(colon + 1, "0123456789") == strlen(colon + 1)))
		return true;
	return strchr(word, '.') && program_inspect(&program, word) == -ENOENT;
}

/*
 * Parses the words behind a command's name: options, and a program or units. Moves the program's or units' words together
 * in @argv.
 */
static enum options_result parse_words(struct options *options, int argc, char *argv[])
{
	char **words = argv + optind;
	int count = 0;

	while (optind < argc) {
		enum options_result result;

		optind++;
		result = parse_options(options, argc, argv);
		if (result != OPTIONS_RUN)
			return result;
		if (optind < argc && options->command == COMMAND_CHECK && !options->server && is_server(argv[optind]))
			options->server = argv[optind];
		else if (optind < argc)
			words[count++] = argv[optind];
	}
	words[count] = NULL;
	if (count && options->command == COMMAND_CHECK)
		options->program = words;
	else if (count)
		options->units = words;
	return OPTIONS_RUN;
}

/* Tells how to write the server of a URL. Returns false if @word is none. */
static bool is_url(const char *word)
{
	const char *host = strstr(word, "://");
	size_t len;

	if (!host)
		return false;
	host += strlen("://");
	len = strcspn(host, "/?#");
	usage("check: \"%s\" is a URL; to try its server, write %.*s%s", word, (int)len, host,
	      strncmp(word, "http:", 5) == 0 && !memchr(host, ':', len) ? ":80" : "");
	return true;
}

static enum options_result check_words(const struct options *options)
{
	const char *name = command_names[options->command];
	bool units = options->command == COMMAND_ENABLE || options->command == COMMAND_DISABLE;

	if (units && !options->units && !options->session)
		return usage("%s: name a service, such as nginx.service, or say --session", name);
	if (units && options->units && options->session)
		return usage("%s: --session is about login sessions, and \"%s\" about a service; say one of them", name,
			     options->units[0]);
	if (options->session && options->user)
		return usage("%s: --session is about this user's sessions; leave --user out", name);
	for (char **word = options->command == COMMAND_CHECK ? options->program : NULL; word && *word; word++)
		if (is_url(*word))
			return OPTIONS_USAGE;
	if (options->command == COMMAND_CHECK && options->program && options->program[1])
		return usage("check: \"%s\" is one word too many; it takes one program, without arguments, and one server",
			     options->program[1]);
	if (options->command == COMMAND_PATHS && options->manage + options->once + options->remove > 1)
		return usage("paths: --manage, --once and --remove are different things; say one of them");
	if (options->command == COMMAND_PATHS && options->dry_run && !options->manage && !options->once && !options->remove)
		return usage("paths: without --manage, --once or --remove nothing is changed anyway; leave --dry-run out");
	if (SCOPE(options->command) & (SCOPE(COMMAND_LIST) | SCOPE(COMMAND_ENVIRONMENT) | PATHS | SHOWS) && options->units)
		return usage("%s: \"%s\" is one word too many; it takes options only", name, options->units[0]);
	return OPTIONS_RUN;
}

/* Checks the value of --method. check_scopes() comes first: a command without --method rejects the option itself. */
static enum options_result check_method(const struct options *options)
{
	if (options->method == METHOD_UNKNOWN)
		return usage("--method: \"%s\" is no method; it is preload or supervise", options->method_word);
	return OPTIONS_RUN;
}

static enum options_result check_scopes(const struct options *options)
{
	for (int i = 0; i < OPTION_COUNT; i++) {
		const char *name = option_table[i].name;

		if (!options_has(options, (enum option_id)i) || option_table[i].scope & SCOPE(options->command))
			continue;
		if (options->command != COMMAND_RUN)
			return usage("--%s has no meaning with \"%s\"", name, command_names[options->command]);
		for (int command = COMMAND_CHECK; command < COMMAND_COUNT; command++)
			if (option_table[i].scope & SCOPE(command))
				return usage("--%s belongs to \"convertize %s\"", name, command_names[command]);
	}
	return OPTIONS_RUN;
}

/* Returns the command with this name, or COMMAND_RUN: the word names a program. */
static enum command command_of(const char *word)
{
	for (int i = COMMAND_CHECK; i < COMMAND_COUNT; i++)
		if (strcmp(word, command_names[i]) == 0)
			return (enum command)i;
	return COMMAND_RUN;
}

/* Warns of a variable whose name is nearly one of ours: nothing would read it. */
static void warn_of_variables(void)
{
	static const char prefix[] = "CONVERT_";
	const size_t len = sizeof(prefix) - 1;
	char name[64];

	for (char **variable = environ; *variable; variable++) {
		struct similar best = { 0 };

		if (strncmp(*variable, prefix, len) != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*variable + len, "="), *variable + len);
		for (int i = 0; i < OPTION_COUNT; i++)
			if (option_table[i].variable && strncmp(option_table[i].variable, prefix, len) == 0)
				similar_compare(&best, name, option_table[i].variable + len);
		if (best.wrong)
			fprintf(stderr, "convertize: warning: %s%s is no variable of convertize; did you mean %s%s?\n", prefix, name,
				prefix, best.name);
	}
}

enum options_result options_parse(struct options *options, int argc, char *argv[])
{
	enum options_result result;

	memset(options, 0, sizeof(*options));
	options->arguments = argv;
	result = parse_options(options, argc, argv);
	/* after "--" the word "check" names a program */
	if (result == OPTIONS_RUN && optind < argc && strcmp(argv[optind - 1], "--") != 0)
		options->command = command_of(argv[optind]);
	if (result == OPTIONS_RUN && (options->command == COMMAND_HELP || options->command == COMMAND_VERSION))
		return parse_option(options, options->command == COMMAND_HELP ? OPTION_HELP : OPTION_VERSION, NULL);
	if (options->command != COMMAND_RUN)
		result = parse_words(options, argc, argv);
	else if (result == OPTIONS_RUN && optind < argc)
		options->program = argv + optind;
	if (result == OPTIONS_RUN)
		result = check_scopes(options);
	if (result == OPTIONS_RUN)
		result = check_method(options);
	if (result == OPTIONS_RUN)
		result = check_words(options);
	if (result == OPTIONS_RUN && options->command == COMMAND_RUN && !options->program) {
		fputs(SYNOPSIS "See convertize --help.\n", stderr);
		return OPTIONS_USAGE;
	}
	if (result == OPTIONS_RUN && !options->quiet &&
	    SCOPE(options->command) & (SCOPE(COMMAND_RUN) | SCOPE(COMMAND_CHECK) | SCOPE(COMMAND_ENABLE)))
		warn_of_variables();
	return result;
}

void options_find_library(struct options *options)
{
	options->library = getenv(option_table[OPTION_LIBRARY].variable);
	if (options->library && !*options->library)
		options->library = NULL;
}

const char *options_explain(const struct options *options, const char *problem, char option[static OPTIONS_EXPLAIN_MAX])
{
	size_t len = strcspn(problem, ": ");

	snprintf(option, OPTIONS_EXPLAIN_MAX, "%.*s", (int)(len < 31 ? len : 31), problem);
	for (int i = 0; i < OPTION_COUNT; i++) {
		const struct options_origin *origin = &options->origin[i];

		if (!option_table[i].variable || strcmp(option_table[i].variable, option) != 0)
			continue;
		if (origin->file)
			snprintf(option, OPTIONS_EXPLAIN_MAX, "%.250s:%u: %s", origin->file, origin->line,
				 option_table[i].name);
		else if (options_has(options, (enum option_id)i))
			snprintf(option, OPTIONS_EXPLAIN_MAX, "--%s", option_table[i].name);
		break;
	}
	return problem + len;
}
