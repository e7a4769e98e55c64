/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - convertize's command line: one table is parsed, and printed by --help */
#include "config.h"

#include "convertize/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum option_id {
	OPTION_CONVERTER,
	OPTION_PORT,
	OPTION_BYPASS,
	OPTION_FALLBACK,
	OPTION_COOKIE,
	OPTION_TIMEOUT,
	OPTION_EARLY_DATA,
	OPTION_NO_BYPASS_MPTCP,
	OPTION_WITHHOLDING,
	OPTION_CACHE,
	OPTION_LOG,
	OPTION_WARN,
	OPTION_LIBRARY,
	OPTION_FORCE,
	OPTION_JSON,
	OPTION_FIX,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_COUNT
};

/* With which of the two uses of convertize an option may be given. */
enum option_scope { SCOPE_ANY, SCOPE_RUN, SCOPE_CHECK };

static const struct {
	const char *name;
	const char *argument; /* NULL: takes none; with "[" in front: may take one */
	const char *help;
	enum option_scope scope;
	const char *variable; /* the environment variable of libconvert.so that it sets; NULL: none */
	const char *value;    /* what the variable is set to by an option without an argument */
	bool list;            /* given again, the option adds to the variable, behind a comma */
} option_table[] = {
	[OPTION_CONVERTER] = { "converter", "ADDR[:PORT]",
			       "a converter's address or name; may be given again:\n"
			       "connections go to the first that can be used",
			       SCOPE_ANY, "CONVERT_ADDR", NULL, true },
	[OPTION_PORT] = { "port", "PORT", "the port of converters that are named without one", SCOPE_ANY,
			  "CONVERT_PORT", NULL, false },
	[OPTION_BYPASS] = { "bypass", "RULES",
			    "destinations that are connected to directly, such as\n"
			    "10.0.0.0/8 or :22; may be given again",
			    SCOPE_ANY, "CONVERT_BYPASS", NULL, true },
	[OPTION_FALLBACK] = { "fallback", "direct|none",
			      "where no converter can be used, connections go\n"
			      "directly, or they fail", SCOPE_ANY,
			      "CONVERT_FALLBACK", NULL, false },
	[OPTION_COOKIE] = { "cookie", "TEXT",
			    "the cookie for the converter; lists of processes\n"
			    "show this option to everybody, and not the variable",
			    SCOPE_ANY, "CONVERT_COOKIE", NULL, false },
	[OPTION_TIMEOUT] = { "timeout", "SECONDS",
			     "give a converter up after so many seconds of silence\n"
			     "(default 3)",
			     SCOPE_ANY, "CONVERT_TIMEOUT", NULL, false },
	[OPTION_EARLY_DATA] = { "early-data", NULL,
				"send the program's first bytes in the SYN; they may\n"
				"arrive twice: see libconvert.so(7)",
				SCOPE_ANY, "CONVERT_EARLY_DATA", "1", false },
	[OPTION_NO_BYPASS_MPTCP] = { "no-bypass-mptcp", NULL,
				     "use the converter for servers that speak MPTCP, too",
				     SCOPE_ANY, "CONVERT_BYPASS_MPTCP", "0", false },
	[OPTION_WITHHOLDING] = { "withholding", "MILLISECONDS",
				 "for how long at most the converter withholds SYNs;\n"
				 "0: it doesn't (default: what the converter says)",
				 SCOPE_ANY, "CONVERT_WITHHOLDING", NULL, false },
	[OPTION_CACHE] = { "cache", "DIRECTORY|none", "where programs keep what they learn from connections\n"
			   "for each other",
			   SCOPE_ANY, "CONVERT_CACHE", NULL, false },
	[OPTION_LOG] = { "log", "FILE", "write a line for each connection; - is standard error",
			 SCOPE_ANY, "CONVERT_LOG", NULL, false },
	[OPTION_WARN] = { "warn", NULL,
			  "say on standard error which programs it starts whose\n"
			  "connections can't be converted",
			  SCOPE_ANY, "CONVERT_WARN", "1", false },
	[OPTION_LIBRARY] = { "library", "FILE", "the libconvert.so to preload", SCOPE_ANY,
			     "CONVERT_LIBRARY", NULL, false },
	[OPTION_FORCE] = { "force", NULL, "run the program even if none of its connections\n"
			   "would be converted",
			   SCOPE_RUN, NULL, NULL, false },
	[OPTION_JSON] = { "json", NULL, "check: print the facts as one JSON object", SCOPE_CHECK, NULL, NULL,
			  false },
	[OPTION_FIX] = { "fix", "[=run]",
			 "check: print the commands that mend what is wrong;\n"
			 "with =run, run those that are for this machine, and\n"
			 "check again",
			 SCOPE_CHECK, NULL, NULL, false },
	[OPTION_HELP] = { "help", NULL, "print this and exit", SCOPE_ANY, NULL, NULL, false },
	[OPTION_VERSION] = { "version", NULL, "print the version and exit", SCOPE_ANY, NULL, NULL,
			     false },
};
static_assert(sizeof(option_table) / sizeof(option_table[0]) == OPTION_COUNT,
	      "an entry for each option");
static_assert(OPTION_COUNT <= 32, "a bit for each in struct options");

#define SYNOPSIS \
	"Usage: convertize [OPTION]... [--] PROGRAM [ARGUMENT]...\n" \
	"       convertize check [OPTION]... [PROGRAM]\n"

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
	       "Run a program whose TCP connections go through an RFC 8803 converter, over\n"
	       "Multipath TCP; or tell whether this machine, this network and the program can.\n\n");
	for (int i = 0; i < OPTION_COUNT; i++) {
		const char *argument = option_table[i].argument, *text = option_table[i].help;
		const char *line_end;
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", option_table[i].name,
			 argument && *argument != '[' ? " " : "",
			 argument ? argument : "");
		while ((line_end = strchr(text, '\n'))) {
			printf("  %-26s %.*s\n", left, (int)(line_end - text), text);
			left[0] = '\0';
			text = line_end + 1;
		}
		printf("  %-26s %s\n", left, text);
		if (option_table[i].variable)
			printf("  %-26s [%s%s%s]\n", "", option_table[i].variable,
			       option_table[i].value ? "=" : "",
			       option_table[i].value ? option_table[i].value : "");
	}
	printf("\n[NAME] is the environment variable that has the same effect."
	       "\nManual: man 1 convertize\n");
}

/* Sets the variable of an option, where libconvert.so and settings_read() find it. */
static enum options_result set_variable(struct options *options, enum option_id id,
					const char *value)
{
	const char *variable = option_table[id].variable, *before = getenv(variable);
	bool again = options->given & 1u << id;
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
	options->given |= 1u << id;
	switch (id) {
	case OPTION_FORCE:
		options->force = true;
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

/* Parses options up to the first word that is none. */
static enum options_result parse_options(struct options *options, int argc, char *argv[])
{
	struct option getopt_table[OPTION_COUNT + 1] = { 0 };
	enum options_result result;
	int index = 0, c;

	for (int i = 0; i < OPTION_COUNT; i++) {
		getopt_table[i].name = option_table[i].name;
		getopt_table[i].has_arg =
			!option_table[i].argument	  ? no_argument :
			*option_table[i].argument == '[' ? optional_argument :
							   required_argument;
	}
	/* The colon silences getopt: its own messages name no remedy. */
	while ((c = getopt_long(argc, argv, "+:", getopt_table, &index)) != -1) {
		if (c == ':')
			return usage("%s needs a value; see convertize --help", argv[optind - 1]);
		if (c != 0 && optopt)
			return usage("-%c: no such option; see convertize --help", optopt);
		if (c != 0)
			return usage("%s: no such option, or it takes no value; see convertize "
				     "--help",
				     argv[optind - 1]);
		result = parse_option(options, (enum option_id)index, optarg);
		if (result != OPTIONS_RUN)
			return result;
	}
	return OPTIONS_RUN;
}

/* Parses what follows "check": one word for a program, with options before and behind it. */
static enum options_result parse_check(struct options *options, int argc, char *argv[])
{
	static char *program[2];

	while (optind < argc) {
		enum options_result result;

		optind++;
		result = parse_options(options, argc, argv);
		if (result != OPTIONS_RUN)
			return result;
		if (optind >= argc)
			break;
		if (program[0])
			return usage("check: \"%s\" is one word too many; it takes one program, "
				     "without arguments",
				     argv[optind]);
		program[0] = argv[optind];
		options->program = program;
	}
	return OPTIONS_RUN;
}

static enum options_result check_scopes(const struct options *options)
{
	for (int i = 0; i < OPTION_COUNT; i++) {
		if (!(options->given & 1u << i))
			continue;
		if (options->check && option_table[i].scope == SCOPE_RUN)
			return usage("--%s has no meaning with \"check\", which runs nothing",
				     option_table[i].name);
		if (!options->check && option_table[i].scope == SCOPE_CHECK)
			return usage("--%s belongs to \"convertize check\"", option_table[i].name);
	}
	return OPTIONS_RUN;
}

enum options_result options_parse(struct options *options, int argc, char *argv[])
{
	enum options_result result;

	memset(options, 0, sizeof(*options));
	result = parse_options(options, argc, argv);
	/* behind "--" the word "check" names a program */
	options->check = result == OPTIONS_RUN && optind < argc &&
			 strcmp(argv[optind], "check") == 0 && strcmp(argv[optind - 1], "--") != 0;
	if (options->check)
		result = parse_check(options, argc, argv);
	else if (result == OPTIONS_RUN && optind < argc)
		options->program = argv + optind;
	if (result == OPTIONS_RUN)
		result = check_scopes(options);
	if (result == OPTIONS_RUN && !options->check && !options->program) {
		fputs(SYNOPSIS "See convertize --help.\n", stderr);
		return OPTIONS_USAGE;
	}
	options->library = getenv(option_table[OPTION_LIBRARY].variable);
	if (options->library && !*options->library)
		options->library = NULL;
	return result;
}

const char *options_explain(const struct options *options, const char *problem, char option[32])
{
	size_t len = strcspn(problem, ": ");

	snprintf(option, 32, "%.*s", (int)(len < 31 ? len : 31), problem);
	for (int i = 0; i < OPTION_COUNT; i++)
		if (options->given & 1u << i && option_table[i].variable &&
		    strcmp(option_table[i].variable, option) == 0)
			snprintf(option, 32, "--%s", option_table[i].name);
	return problem + len;
}
