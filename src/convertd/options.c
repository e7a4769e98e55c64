/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - convertd's command line: one table is parsed, and printed by --help */
#include "config.h"

#include "convertd/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PORT 1234
#define DEFAULT_CONNECT_TIMEOUT 30
#define DEFAULT_REQUEST_TIMEOUT 10
#define TIMEOUT_MAX 86400

#define STRING(x) #x
#define EXPAND(x) STRING(x)

enum option_id {
	OPTION_LISTEN,
	OPTION_CONNECT_TIMEOUT,
	OPTION_REQUEST_TIMEOUT,
	OPTION_LOG_LEVEL,
	OPTION_NO_SYN_WINDOW_FIX,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_COUNT
};

static const struct {
	const char *name;
	const char *argument; /* NULL: takes none */
	const char *help;
} option_table[] = {
	[OPTION_LISTEN] = { "listen", "ADDR:PORT",
			    "accept clients there; may be given again\n"
			    "(default [::]:" EXPAND(DEFAULT_PORT) "; [::] takes IPv4 as well)" },
	[OPTION_CONNECT_TIMEOUT] = { "connect-timeout", "SECONDS",
				     "give up on a server after this long\n"
				     "(default " EXPAND(DEFAULT_CONNECT_TIMEOUT) ")" },
	[OPTION_REQUEST_TIMEOUT] = { "request-timeout", "SECONDS",
				     "give up on a client without a request after this long\n"
				     "(default " EXPAND(DEFAULT_REQUEST_TIMEOUT) ")" },
	[OPTION_LOG_LEVEL] = { "log-level", "LEVEL",
			       "print error, warning, info or debug and all before it\n"
			       "(default info)" },
	[OPTION_NO_SYN_WINDOW_FIX] = { "no-syn-window-fix", NULL,
				       "install no nftables rules; see convertd(8)" },
	[OPTION_HELP] = { "help", NULL, "print this and exit" },
	[OPTION_VERSION] = { "version", NULL, "print the version and exit" },
};
static_assert(sizeof(option_table) / sizeof(option_table[0]) == OPTION_COUNT,
	      "an entry for each option");

static enum options_result usage(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static enum options_result usage(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "convertd: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return OPTIONS_USAGE;
}

static void print_help(void)
{
	printf("Usage: convertd [OPTION]...\n"
	       "Convert TCP connections of RFC 8803 clients, over Multipath TCP, to plain TCP.\n\n");
	for (int i = 0; i < OPTION_COUNT; i++) {
		const char *argument = option_table[i].argument, *text = option_table[i].help;
		const char *line_end;
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", option_table[i].name, argument ? " " : "",
			 argument ? argument : "");
		while ((line_end = strchr(text, '\n'))) {
			printf("  %-27s %.*s\n", left, (int)(line_end - text), text);
			left[0] = '\0';
			text = line_end + 1;
		}
		printf("  %-27s %s\n", left, text);
	}
	printf("\nManual: man 8 convertd\n");
}

static enum options_result parse_listen(struct options *options, const char *text)
{
	union sockaddr_ip address;

	/* 0 can't be written as a port: it stands for none. */
	if (sockaddr_ip_parse(&address, text, 0) < 0)
		return usage("--listen: \"%s\" is not ADDR:PORT with a numeric address and a port from "
			     "1 to 65535; write 192.0.2.1:1234 or [2001:db8::1]:1234",
			     text);
	if (sockaddr_ip_port(&address) == 0)
		return usage("--listen: \"%s\" has no port; write %s%s%s:%d", text,
			     strchr(text, ':') && text[0] != '[' ? "[" : "", text,
			     strchr(text, ':') && text[0] != '[' ? "]" : "", DEFAULT_PORT);
	if (options->listen_count == OPTIONS_LISTEN_MAX)
		return usage("--listen: \"%s\" is one too many, the limit is %d; [::]:PORT listens on "
			     "all addresses of the host",
			     text, OPTIONS_LISTEN_MAX);
	if (address.sa.sa_family == AF_INET6 && sockaddr_ip_is_v4(&address)) {
		struct in6_addr mapped = address.in6.sin6_addr;

		sockaddr_ip_set(&address, AF_INET, &mapped, sockaddr_ip_port(&address));
	}
	options->listen[options->listen_count++] = address;
	return OPTIONS_RUN;
}

static enum options_result parse_seconds(unsigned *seconds, enum option_id id, const char *text)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || *end || text[0] < '0' || text[0] > '9' || value < 1 || value > TIMEOUT_MAX)
		return usage("--%s: \"%s\" is not a number of seconds from 1 to %d",
			     option_table[id].name, text, TIMEOUT_MAX);
	*seconds = (unsigned)value;
	return OPTIONS_RUN;
}

static enum options_result parse_log_level(struct options *options, const char *text)
{
	int level = log_level_parse(text);

	if (level < 0)
		return usage("--log-level: \"%s\" is none of error, warning, info, debug", text);
	options->log_level = (enum log_level)level;
	return OPTIONS_RUN;
}

static enum options_result parse_option(struct options *options, enum option_id id,
					const char *argument)
{
	switch (id) {
	case OPTION_LISTEN:
		return parse_listen(options, argument);
	case OPTION_CONNECT_TIMEOUT:
		return parse_seconds(&options->connect_timeout, id, argument);
	case OPTION_REQUEST_TIMEOUT:
		return parse_seconds(&options->request_timeout, id, argument);
	case OPTION_LOG_LEVEL:
		return parse_log_level(options, argument);
	case OPTION_NO_SYN_WINDOW_FIX:
		options->syn_window_fix = false;
		return OPTIONS_RUN;
	case OPTION_HELP:
		print_help();
		return OPTIONS_EXIT;
	case OPTION_VERSION:
		printf("convertd (%s) %s\n", PACKAGE_NAME, PACKAGE_VERSION);
		return OPTIONS_EXIT;
	case OPTION_COUNT:
		break;
	}
	return OPTIONS_USAGE;
}

enum options_result options_parse(struct options *options, int argc, char *argv[])
{
	struct option getopt_table[OPTION_COUNT + 1] = { 0 };
	enum options_result result;
	int index = 0, c;

	memset(options, 0, sizeof(*options));
	options->connect_timeout = DEFAULT_CONNECT_TIMEOUT;
	options->request_timeout = DEFAULT_REQUEST_TIMEOUT;
	options->log_level = LOG_LEVEL_INFO;
	options->syn_window_fix = true;
	for (int i = 0; i < OPTION_COUNT; i++) {
		getopt_table[i].name = option_table[i].name;
		getopt_table[i].has_arg =
			option_table[i].argument ? required_argument : no_argument;
	}
	/* The leading colon silences getopt: its own messages name no remedy. */
	while ((c = getopt_long(argc, argv, ":", getopt_table, &index)) != -1) {
		if (c == ':')
			return usage("%s needs a value; see convertd --help", argv[optind - 1]);
		if (c != 0 && optopt)
			return usage("-%c: no such option; see convertd --help", optopt);
		if (c != 0)
			return usage("%s: no such option, or it takes no value; see convertd --help",
				     argv[optind - 1]);
		result = parse_option(options, (enum option_id)index, optarg);
		if (result != OPTIONS_RUN)
			return result;
	}
	if (optind < argc)
		return usage("\"%s\" is not an option; addresses go behind --listen", argv[optind]);
	if (!options->listen_count)
		return parse_listen(options, "[::]:" EXPAND(DEFAULT_PORT));
	return OPTIONS_RUN;
}
