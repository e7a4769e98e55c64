/* SPDX-License-Identifier: BSD-3-Clause */
/* command_line.c - reads convertize's command line */
#include "config.h"

#include "convertize/options/command_line.h"

#include "common/program.h"
#include "common/problems.h"
#include "common/sockaddr.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	case OPTION_METHOD:
		options->method = strcmp(argument, "supervise") == 0 ? METHOD_SUPERVISE : METHOD_PRELOAD;
		if (options->method == METHOD_PRELOAD && strcmp(argument, "preload") != 0)
			return usage("--method: \"%s\" isn't a method; it is preload or supervise", argument);
		break;
	case OPTION_EXECUTABLE:
		options->executable = argument;
		break;
	case OPTION_FIX:
		if (argument && strcmp(argument, "run") != 0)
			return usage("--fix=%s: it is --fix, which prints, or --fix=run", argument);
		options->fix_run = argument;
		break;
	case OPTION_HELP:
		options_print_all();
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
	char name[OPTIONS_PLACE_MAX];
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

/* Does the word name a server rather than a program? An address does, HOST:PORT, and a name with a dot if no program has it. */
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

/* Is the word a URL? Then tells how to write its server. */
static bool is_url(const char *word)
{
	const char *host = strstr(word, "://");
	size_t len;

	if (!host || strchr(word, ' '))
		return false;
	host += strlen("://");
	len = strcspn(host, "/?#");
	usage("check: \"%s\" is a URL; to try its server, write %.*s%s", word, (int)len, host,
	      strncmp(word, "http:", 5) == 0 && !memchr(host, ':', len) ? ":80" : "");
	return true;
}

/* Checks the port behind a server's name, if there is one. */
static enum options_result check_server(const char *server)
{
	const char *colon = strrchr(server, ':');
	union sockaddr_ip address;
	unsigned long port;
	char *end;

	if (!colon || sockaddr_ip_parse(&address, server, 1) == 0)
		return OPTIONS_RUN;
	port = strtoul(colon + 1, &end, 10);
	if (colon[1] >= '0' && colon[1] <= '9' && !*end && port >= 1 && port <= UINT16_MAX)
		return OPTIONS_RUN;
	return usage("check: %s: \"%s\" is not a port; say a number from 1 to 65535", server, colon + 1);
}

static enum options_result check_words(const struct options *options)
{
	const char *name = command_names[options->command];
	const bool units = options->command == COMMAND_ENABLE || options->command == COMMAND_DISABLE;
	const int tasks = options_has(options, OPTION_MANAGE) + options_has(options, OPTION_ONCE) + options_has(options, OPTION_REMOVE);

	if (units && !options->units && !options_has(options, OPTION_SESSION))
		return usage("%s: name a service, such as nginx.service, or say --session", name);
	if (units && options->units && options_has(options, OPTION_SESSION))
		return usage("%s: --session is about login sessions, and \"%s\" about a service; say one of them", name,
			     options->units[0]);
	if (options_has(options, OPTION_SESSION) && options_has(options, OPTION_USER))
		return usage("%s: --session is about this user's sessions; leave --user out", name);
	if (options->server && check_server(options->server) != OPTIONS_RUN)
		return OPTIONS_USAGE;
	for (char **word = options->command == COMMAND_CHECK ? options->program : NULL; word && *word; word++)
		if (is_url(*word))
			return OPTIONS_USAGE;
	if (options->command == COMMAND_CHECK && options->program && options->program[1])
		return usage("check: \"%s\" is one word too many; it takes one program, without arguments, and one server",
			     options->program[1]);
	if (tasks > 1)
		return usage("paths: --manage, --once and --remove exclude each other; give one");
	if (tasks && options_has(options, OPTION_JSON))
		return usage("paths: --json shows networks; leave it out where they are changed");
	if (options_has(options, OPTION_JSON) && options_has(options, OPTION_WATCH))
		return usage("%s: --json and --watch exclude each other; give one", name);
	if (options->command == COMMAND_CHECK && options->program && options->program[0] && strchr(options->program[0], ' ') &&
	    access(options->program[0], F_OK) < 0)
		return usage("check: \"%s\": there is no such program; leave the quotes out, and the program's arguments",
			     options->program[0]);
	if (options->command == COMMAND_PATHS && !tasks && options_has(options, OPTION_DRY_RUN))
		return usage("paths: without --manage, --once or --remove nothing is changed anyway; leave --dry-run out");
	if (SCOPE(options->command) & (SCOPE(COMMAND_LIST) | SCOPE(COMMAND_ENVIRONMENT) | SCOPE(COMMAND_PATHS) |
					SCOPE(COMMAND_STATUS) | SCOPE(COMMAND_TOP)) && options->units)
		return usage("%s: \"%s\" is one word too many; it takes options only", name, options->units[0]);
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
			fprintf(stderr, "convertize: warning: %s%s isn't a variable of convertize; did you mean %s%s?\n", prefix, name,
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
		result = check_words(options);
	if (result == OPTIONS_RUN && options->command == COMMAND_RUN && !options->program) {
		fprintf(stderr, "%sSee convertize --help.\n", options_synopsis);
		return OPTIONS_USAGE;
	}
	if (result == OPTIONS_RUN && !options_has(options, OPTION_QUIET) &&
	    SCOPE(options->command) & (SCOPE(COMMAND_RUN) | SCOPE(COMMAND_CHECK) | SCOPE(COMMAND_ENABLE)))
		warn_of_variables();
	return result;
}

const char *option_value(enum option_id id)
{
	const char *value = getenv(option_table[id].variable);

	return value && *value ? value : NULL;
}

const char *options_place(const struct options *options, enum option_id id, char place[static OPTIONS_PLACE_MAX])
{
	const struct options_origin *origin = &options->origin[id];

	if (origin->file)
		snprintf(place, OPTIONS_PLACE_MAX, "%.250s:%u: %s", origin->file, origin->line, option_table[id].name);
	else if (options_has(options, id))
		snprintf(place, OPTIONS_PLACE_MAX, "--%s", option_table[id].name);
	else
		snprintf(place, OPTIONS_PLACE_MAX, "%s", option_table[id].variable);
	return place;
}

void options_explain(const struct options *options, const char *problem)
{
	const size_t len = strcspn(problem, ": ");
	char place[OPTIONS_PLACE_MAX];

	snprintf(place, sizeof(place), "%.*s", (int)(len < 31 ? len : 31), problem);
	for (int i = 0; i < OPTION_COUNT; i++)
		if (option_table[i].variable &&
		    (strcmp(option_table[i].variable, place) == 0 || strcmp(option_table[i].name, place) == 0)) {
			options_place(options, (enum option_id)i, place);
			break;
		}
	fprintf(stderr, "convertize: %s%s\n", place, problem + len);
}
