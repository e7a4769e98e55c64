/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - load: a client that measures, and the server that answers it; the command line */
#include "config.h"

#include "client.h"
#include "server.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
	"Usage: load serve [--mptcp] [--no-delay] [--verify] PORT\n"
	"       load run --to ADDR:PORT [OPTION]...\n"
	"\n"
	"serve answers requests, run makes them and prints what it has measured as a JSON\n"
	"object: bytes, connections, errors by errno, quantiles in microseconds.\n"
	"\n"
	"  --to ADDR:PORT        connect there: a proxy or the server\n"
	"  --via WAY             direct, socks5, convert-syn, convert-behind or\n"
	"                        convert-silent: in the SYN, to a converter that withholds it and takes\n"
	"                        silent requests (direct)\n"
	"  --server ADDR:PORT    the server to ask a proxy for\n"
	"  --user USER:PASSWORD  for socks5\n"
	"  --from ADDR           from this local address\n"
	"  --mptcp               Multipath TCP sockets\n"
	"  --no-delay            without Nagle's algorithm (TCP_NODELAY)\n"
	"  --concurrency N       so many connections at a time (1)\n"
	"  --connections N       so many in all\n"
	"  --seconds S           or: measure for so long, behind --warmup S (0)\n"
	"  --over S              with --connections: open them evenly within so many seconds, however\n"
	"                        many others there still are\n"
	"  --requests N          on each connection (1)\n"
	"  --request BYTES       its size, 24 or more (24)\n"
	"  --response BYTES      and its response's (1)\n"
	"  --early               send the request behind the Convert message, without waiting\n"
	"  --withheld            of a converter that withholds SYNs, the SYN+ACK is enough to go on if\n"
	"                        it confirms the server (convert-syn)\n"
	"  --hold                keep all --connections open, until the standard input ends; with\n"
	"                        --seconds, each byte there makes all of them repeat their request for\n"
	"                        so long, and what was measured is printed\n"
	"  --timeline MS         print the bytes of each such interval as well\n"
	"  --verify              end at the first byte that is not the right one\n"
	"\n"
	"BYTES may end in K, M, G or T (powers of 1000).\n";

enum option_id {
	OPTION_TO,
	OPTION_VIA,
	OPTION_SERVER,
	OPTION_USER,
	OPTION_FROM,
	OPTION_MPTCP,
	OPTION_NO_DELAY,
	OPTION_CONCURRENCY,
	OPTION_CONNECTIONS,
	OPTION_SECONDS,
	OPTION_WARMUP,
	OPTION_OVER,
	OPTION_REQUESTS,
	OPTION_REQUEST,
	OPTION_RESPONSE,
	OPTION_EARLY,
	OPTION_WITHHELD,
	OPTION_HOLD,
	OPTION_TIMELINE,
	OPTION_VERIFY,
	OPTION_HELP,
	OPTION_COUNT
};

static const struct option option_table[] = {
	[OPTION_TO] = { .name = "to", .has_arg = 1 },
	[OPTION_VIA] = { .name = "via", .has_arg = 1 },
	[OPTION_SERVER] = { .name = "server", .has_arg = 1 },
	[OPTION_USER] = { .name = "user", .has_arg = 1 },
	[OPTION_FROM] = { .name = "from", .has_arg = 1 },
	[OPTION_MPTCP] = { .name = "mptcp" },
	[OPTION_NO_DELAY] = { .name = "no-delay" },
	[OPTION_CONCURRENCY] = { .name = "concurrency", .has_arg = 1 },
	[OPTION_CONNECTIONS] = { .name = "connections", .has_arg = 1 },
	[OPTION_SECONDS] = { .name = "seconds", .has_arg = 1 },
	[OPTION_WARMUP] = { .name = "warmup", .has_arg = 1 },
	[OPTION_OVER] = { .name = "over", .has_arg = 1 },
	[OPTION_REQUESTS] = { .name = "requests", .has_arg = 1 },
	[OPTION_REQUEST] = { .name = "request", .has_arg = 1 },
	[OPTION_RESPONSE] = { .name = "response", .has_arg = 1 },
	[OPTION_EARLY] = { .name = "early" },
	[OPTION_WITHHELD] = { .name = "withheld" },
	[OPTION_HOLD] = { .name = "hold" },
	[OPTION_TIMELINE] = { .name = "timeline", .has_arg = 1 },
	[OPTION_VERIFY] = { .name = "verify" },
	[OPTION_HELP] = { .name = "help" },
	[OPTION_COUNT] = { .name = NULL },
};

struct arguments {
	struct client_options client;
	union sockaddr_ip server;
	const char *via, *user;
};

static void wrong(enum option_id id, const char *text, const char *expected)
	__attribute__((noreturn));

static void wrong(enum option_id id, const char *text, const char *expected)
{
	errx(2, "--%s: \"%s\" is not %s; see load --help", option_table[id].name, text, expected);
}

/* A number from @least on, with one of the suffixes if @suffixes. */
static uint64_t number_read(enum option_id id, const char *text, uint64_t least, bool suffixes)
{
	static const char units[] = "KMGT";
	const char *unit;
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (suffixes && *end && (unit = strchr(units, *end))) {
		for (const char *u = units; u <= unit; u++)
			value *= 1000;
		end++;
	}
	if (errno || *end || end == text || text[0] == '-' || value < least)
		wrong(id, text, least ? "a number large enough" : "a number");
	return value;
}

static int64_t seconds_read(enum option_id id, const char *text, double unit)
{
	char *end;
	double value = strtod(text, &end);

	if (*end || end == text || value < 0 || value > 1e6)
		wrong(id, text, "a duration");
	return (int64_t)(value * unit);
}

static void address_read(union sockaddr_ip *address, enum option_id id, const char *text)
{
	if (sockaddr_ip_parse(address, text, 0) < 0 || sockaddr_ip_port(address) == 0)
		wrong(id, text, "ADDR:PORT, say 192.0.2.1:80 or [2001:db8::1]:80");
}

static void option_read(struct arguments *arguments, enum option_id id, const char *text)
{
	struct client_options *client = &arguments->client;

	switch (id) {
	case OPTION_TO: address_read(&client->to, id, text); break;
	case OPTION_VIA: arguments->via = text; break;
	case OPTION_SERVER: address_read(&arguments->server, id, text); break;
	case OPTION_USER: arguments->user = text; break;
	case OPTION_FROM:
		if (sockaddr_ip_parse(&client->from, text, 0) < 0)
			wrong(id, text, "an address");
		break;
	case OPTION_MPTCP: client->mptcp = true; break;
	case OPTION_NO_DELAY: client->no_delay = true; break;
	case OPTION_CONCURRENCY:
		client->concurrency = (unsigned int)number_read(id, text, 1, false);
		break;
	case OPTION_CONNECTIONS: client->connections = number_read(id, text, 1, false); break;
	case OPTION_SECONDS: client->duration_ns = seconds_read(id, text, 1e9); break;
	case OPTION_WARMUP: client->warmup_ns = seconds_read(id, text, 1e9); break;
	case OPTION_OVER: client->over_ns = seconds_read(id, text, 1e9); break;
	case OPTION_REQUESTS:
		client->requests = (unsigned int)number_read(id, text, 1, false);
		break;
	case OPTION_REQUEST:
		client->payload.request = number_read(id, text, PAYLOAD_HEAD, true);
		break;
	case OPTION_RESPONSE: client->payload.response = number_read(id, text, 0, true); break;
	case OPTION_EARLY: client->early = true; break;
	case OPTION_WITHHELD: client->withheld = true; break;
	case OPTION_HOLD: client->hold = true; break;
	case OPTION_TIMELINE: client->timeline_ns = seconds_read(id, text, 1e6); break;
	case OPTION_VERIFY: client->verify = true; break;
	case OPTION_HELP: fputs(usage_text, stdout); exit(0);
	case OPTION_COUNT: break;
	}
}

static void options_read(struct arguments *arguments, int argc, char *argv[])
{
	int c, index = 0;

	while ((c = getopt_long(argc, argv, "", option_table, &index)) != -1) {
		if (c != 0)
			exit(2); /* getopt_long() has said why */
		option_read(arguments, (enum option_id)index, optarg);
	}
}

/* What doesn't go together is an error, not a guess. */
static void options_check(struct arguments *arguments)
{
	struct client_options *client = &arguments->client;

	if (client->to.sa.sa_family == AF_UNSPEC)
		errx(2, "where to? say --to ADDR:PORT; see load --help");
	if (!client->connections == !client->duration_ns && !client->hold)
		errx(2, "for how long? say either --connections or --seconds");
	if (client->hold && (!client->connections || client->requests != 1))
		errx(2, "--hold goes with --connections, and one request each");
	if (client->over_ns && (!client->connections || client->hold))
		errx(2, "--over goes with --connections, and not with --hold");
	if (client->early && (client->payload.request > CLIENT_EARLY_MAX || client->requests != 1))
		errx(2, "--early goes with one request of up to %d bytes", CLIENT_EARLY_MAX);
	if (arguments->server.sa.sa_family == AF_UNSPEC)
		arguments->server = client->to;
	if (way_init(&client->way, arguments->via, &arguments->server, arguments->user, client->mptcp) < 0)
		errx(2, "--via \"%s\" is none of %s, or the others don't fit to it", arguments->via,
		     way_names);
	/* SOCKS5 servers may drop what comes with the last step */
	if (client->early && client->way.steps != 1)
		errx(2, "--early goes with --via convert-syn, convert-behind and convert-silent");
	/* so that connections don't use up the client's ports */
	client->payload.close = !client->hold && client->requests == 1;
}

int main(int argc, char *argv[])
{
	struct arguments arguments = {
		.via = "direct",
		.client = { .concurrency = 1,
			    .requests = 1,
			    .payload = { PAYLOAD_HEAD, 1, false } },
	};
	const char *command = argc > 1 ? argv[1] : "";

	options_read(&arguments, argc > 1 ? argc - 1 : argc, argc > 1 ? argv + 1 : argv);
	if (strcmp(command, "serve") == 0 && optind + 2 == argc) {
		int port = atoi(argv[optind + 1]);

		if (port < 1 || port > UINT16_MAX)
			errx(2, "\"%s\" is not a port", argv[optind + 1]);
		server_run((uint16_t)port, arguments.client.mptcp, arguments.client.no_delay, arguments.client.verify);
	}
	if (strcmp(command, "run") != 0 || optind + 1 != argc) {
		fputs(usage_text, strcmp(command, "--help") == 0 ? stdout : stderr);
		return strcmp(command, "--help") == 0 ? 0 : 2;
	}
	options_check(&arguments);
	return client_run(&arguments.client);
}
