/* SPDX-License-Identifier: BSD-3-Clause */
/* command_line.c - convertize's command line: one table is parsed, and printed by --help */
#include "config.h"

#include "convertize/options/command_line.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYNOPSIS \
	"Usage: convertize [OPTION]... [--] PROGRAM [ARGUMENT]...\n" \
	"       convertize check [OPTION]... [PROGRAM]\n" \
	"       convertize enable|disable [OPTION]... UNIT...\n" \
	"       convertize enable|disable --session [OPTION]...\n" \
	"       convertize list [OPTION]...\n" \
	"       convertize environment [OPTION]...\n" \
	"       convertize paths [--manage | --once | --remove] [OPTION]...\n"

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
	       "Multipath TCP; or tell whether this machine, this network and the program can;\n"
	       "or have systemd's services or login sessions converted by default; or show and\n"
	       "manage the networks that Multipath TCP uses.\n\n");
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
	       "\nManual: man 1 convertize\n");
}

/* Sets the variable of an option, where libconvert.so and settings_read() find it. */
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
	case OPTION_ROOT:
		options->root = argument;
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

/*
 * Parses what follows a command's name: options, and words, which are a program or units. They stay in @argv, one behind
 * the other.
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
		if (optind < argc)
			words[count++] = argv[optind];
	}
	words[count] = NULL;
	if (count && options->command == COMMAND_CHECK)
		options->program = words;
	else if (count)
		options->units = words;
	return OPTIONS_RUN;
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
	if (options->user && options->root)
		return usage("%s: --user and --root don't go together: users have their units at home", name);
	if (options->session && (options->user || options->root))
		return usage("%s: --session is about this user on this machine; leave --%s out", name,
			     options->user ? "user" : "root");
	if (options->command == COMMAND_CHECK && options->program && options->program[1])
		return usage("check: \"%s\" is one word too many; it takes one program, without arguments",
			     options->program[1]);
	if (options->command == COMMAND_PATHS && options->manage + options->once + options->remove > 1)
		return usage("paths: --manage, --once and --remove are different things; say one of them");
	if (options->command == COMMAND_PATHS && options->dry_run && !options->manage && !options->once && !options->remove)
		return usage("paths: without --manage, --once or --remove nothing is changed anyway; leave --dry-run out");
	if ((options->command == COMMAND_LIST || options->command == COMMAND_ENVIRONMENT || options->command == COMMAND_PATHS) &&
	    options->units)
		return usage("%s: \"%s\" is one word too many; it takes options only", name, options->units[0]);
	return OPTIONS_RUN;
}

/* Checked behind the scopes: where the option has no meaning its value doesn't matter. */
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

/* Returns the command that a word stands for. */
static enum command command_of(const char *word)
{
	for (int i = COMMAND_CHECK; i < COMMAND_COUNT; i++)
		if (strcmp(word, command_names[i]) == 0)
			return (enum command)i;
	return COMMAND_RUN;
}

enum options_result options_parse(struct options *options, int argc, char *argv[])
{
	enum options_result result;

	memset(options, 0, sizeof(*options));
	options->arguments = argv;
	result = parse_options(options, argc, argv);
	/* behind "--" the word "check" names a program */
	if (result == OPTIONS_RUN && optind < argc && strcmp(argv[optind - 1], "--") != 0)
		options->command = command_of(argv[optind]);
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
