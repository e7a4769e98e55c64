/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - the options of the command line and of the configuration file */
#include "config.h"

#include "convertd/config/options.h"

#include "convertd/base/log.h"
#include "convertd/config/settings.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY 86400
#define METRICS_PORT_EXAMPLE 9103
#define LIMIT_MAX 100000000

/* Linux permits more characters in the name of an interface, but none that anybody uses, or nft(8) could read. */
#define DEVICE_CHARACTERS                                                                          \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@+"

#define MEMBER(member) .offset = offsetof(struct settings, member)

static void *member(const struct option_spec *spec, struct settings *settings)
{
	return (char *)settings + spec->offset;
}

static bool apply_flag(const struct option_spec *spec, struct settings *settings, const char *value,
		       const struct place *place, struct problems *problems)
{
	(void)value;
	(void)place;
	(void)problems;
	*(bool *)member(spec, settings) = true;
	return true;
}

static bool apply_no_hairpin(const struct option_spec *spec, struct settings *settings,
			     const char *value, const struct place *place,
			     struct problems *problems)
{
	settings->access.no_hairpin_place = *place;
	return apply_flag(spec, settings, value, place, problems);
}

static bool apply_number(const struct option_spec *spec, struct settings *settings,
			 const char *value, const struct place *place, struct problems *problems)
{
	char quote[PROBLEM_QUOTE_MAX], *end;
	unsigned long number;

	errno = 0;
	number = strtoul(value, &end, 10);
	if (errno || *end || value[0] < '0' || value[0] > '9' || number < spec->min ||
	    number > spec->max) {
		problems_add(problems, place, "%s is not a number%s%s from %u to %u",
			     problems_quote(value, quote), spec->unit ? " of " : "",
			     spec->unit ? spec->unit : "", spec->min, spec->max);
		return false;
	}
	*(unsigned *)member(spec, settings) = (unsigned)number;
	return true;
}

/* Stores the @index of a word among @words; -1 stands for none of them, and is told to @problems. */
static bool apply_word(const struct option_spec *spec, struct settings *settings, const char *value,
		       int index, const char *words, const struct place *place,
		       struct problems *problems)
{
	char quote[PROBLEM_QUOTE_MAX];

	if (index < 0) {
		problems_add(problems, place, "%s is none of %s", problems_quote(value, quote),
			     words);
		return false;
	}
	*(unsigned *)member(spec, settings) = (unsigned)index;
	return true;
}

static bool apply_log_level(const struct option_spec *spec, struct settings *settings,
			    const char *value, const struct place *place,
			    struct problems *problems)
{
	return apply_word(spec, settings, value, log_level_parse(value),
			  "error, warning, info, debug", place, problems);
}

static bool apply_log_format(const struct option_spec *spec, struct settings *settings,
			     const char *value, const struct place *place,
			     struct problems *problems)
{
	return apply_word(spec, settings, value, log_format_parse(value), "text, json", place,
			  problems);
}

static bool apply_congestion(const struct option_spec *spec, struct settings *settings,
			     const char *value, const struct place *place,
			     struct problems *problems)
{
	char quote[PROBLEM_QUOTE_MAX], list[CONGESTION_LIST_MAX];
	int error = *value && strlen(value) < CONGESTION_NAME_MAX ? congestion_check(value) :
								    -ENOENT;

	if (!error) {
		strcpy(member(spec, settings), value);
		return true;
	}
	problems_quote(value, quote);
	if (error == -ENOENT)
		problems_add(problems, place,
			     "%s is no congestion control of this kernel; it has: %s (and what "
			     "modprobe tcp_NAME loads)",
			     quote, congestion_available(list));
	else if (error == -EPERM)
		problems_add(problems, place,
			     "%s needs CAP_NET_ADMIN, unless net.ipv4.tcp_allowed_congestion_control "
			     "has it",
			     quote);
	else
		problems_add(problems, place, "%s can't be tried: %s", quote, strerror(-error));
	return false;
}

static bool apply_hold_syn(const struct option_spec *spec, struct settings *settings,
			   const char *value, const struct place *place, struct problems *problems)
{
	static const char *const words[] = {
		[SETTINGS_HOLD_AUTO] = "auto",
		[SETTINGS_HOLD_ON] = "on",
		[SETTINGS_HOLD_OFF] = "off",
	};
	char quote[PROBLEM_QUOTE_MAX];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(value, words[i]) != 0)
			continue;
		*(enum settings_hold *)member(spec, settings) = (enum settings_hold)i;
		return true;
	}
	problems_add(problems, place, "%s is none of auto, on, off", problems_quote(value, quote));
	return false;
}

static bool apply_action(const struct option_spec *spec, struct settings *settings,
			 const char *value, const struct place *place, struct problems *problems)
{
	(void)value;
	(void)place;
	(void)problems;
	settings->action = (enum settings_action)spec->fallback;
	return true;
}

static bool apply_path(const struct option_spec *spec, struct settings *settings,
		       const char *value, const struct place *place, struct problems *problems)
{
	struct settings_path *path = member(spec, settings);

	if (!*value) {
		problems_add(problems, place, "\"\" is not a file; write its path");
		return false;
	}
	if (strlen(value) >= sizeof(path->name)) {
		char quote[PROBLEM_QUOTE_MAX];

		problems_add(problems, place, "%s is too long for a path",
			     problems_quote(value, quote));
		return false;
	}
	strcpy(path->name, value);
	path->place = *place;
	return true;
}

static bool apply_make_key(const struct option_spec *spec, struct settings *settings,
			   const char *value, const struct place *place, struct problems *problems)
{
	settings->action = SETTINGS_MAKE_KEY;
	return apply_path(spec, settings, value, place, problems);
}

static bool apply_user(const struct option_spec *spec, struct settings *settings, const char *value,
		       const struct place *place, struct problems *problems)
{
	return user_parse(member(spec, settings), value, place, problems);
}

/*
 * Takes "%DEVICE" out of "ADDR%DEVICE:PORT", where ss(8) prints it: @text is "ADDR:PORT" then.
 * Returns false if there is one that can't be an interface.
 */
static bool take_device(char *text, char device[static IFNAMSIZ])
{
	char *percent = strchr(text, '%'), *colon = percent ? strchr(percent, ':') : NULL;
	size_t len;

	device[0] = '\0';
	if (!percent)
		return true;
	if (!colon)
		return false;
	len = (size_t)(colon - percent) - 1;
	if (len == 0 || len >= IFNAMSIZ || strspn(percent + 1, DEVICE_CHARACTERS) < len)
		return false;
	memcpy(device, percent + 1, len);
	device[len] = '\0';
	memmove(percent, colon, strlen(colon) + 1);
	return true;
}

static bool listen_parse(struct listen_address *listen, const char *value,
			 const struct place *place, struct problems *problems)
{
	char quote[PROBLEM_QUOTE_MAX], text[SOCKADDR_STRLEN + IFNAMSIZ];
	bool bare_v6 = value[0] != '[' && strchr(value, ':') != strrchr(value, ':');

	problems_quote(value, quote);
	/* What is too long is no address: cut, and refused as that. */
	snprintf(text, sizeof(text), "%s", value);
	if (!take_device(text, listen->device)) {
		problems_add(problems, place,
			     "%s names no interface; write 192.0.2.1%%eth0:%d or [::]%%eth0:%d", quote,
			     SETTINGS_PORT, SETTINGS_PORT);
		return false;
	}
	/* 0 can't be written as a port: it stands for none. */
	if (sockaddr_ip_parse(&listen->address, text, 0) < 0) {
		problems_add(problems, place,
			     "%s is not ADDR:PORT with a numeric address and a port from 1 to 65535; "
			     "write 192.0.2.1:%d or [2001:db8::1]:%d",
			     quote, SETTINGS_PORT, SETTINGS_PORT);
		return false;
	}
	if (sockaddr_ip_port(&listen->address) == 0) {
		problems_add(problems, place, "%s has no port; write %s%.50s%s:%d", quote,
			     bare_v6 ? "[" : "", text, bare_v6 ? "]" : "", SETTINGS_PORT);
		return false;
	}
	return true;
}

static bool apply_listen(const struct option_spec *spec, struct settings *settings,
			 const char *value, const struct place *place, struct problems *problems)
{
	struct listen_address listen = { 0 };
	union sockaddr_ip *address = &listen.address;
	char quote[PROBLEM_QUOTE_MAX];

	(void)spec;
	if (!listen_parse(&listen, value, place, problems))
		return false;
	if (settings->listen_count == LISTEN_ADDRESSES_MAX) {
		problems_add(problems, place,
			     "%s is one too many, the limit is %d; [::]:PORT listens on all addresses "
			     "of the host",
			     problems_quote(value, quote), LISTEN_ADDRESSES_MAX);
		return false;
	}
	if (address->sa.sa_family == AF_INET6 && sockaddr_ip_is_v4(address)) {
		struct in6_addr mapped = address->in6.sin6_addr;

		sockaddr_ip_set(address, AF_INET, &mapped, sockaddr_ip_port(address));
	}
	settings->listen[settings->listen_count++] = listen;
	return true;
}

/* spec->min: 1 if it allows, 0 if it denies. */
static bool add_rule(const struct option_spec *spec, struct settings *settings, const char *value,
		     const struct prefix_rule *match, int parsed, const struct place *place,
		     struct problems *problems)
{
	const struct access_rule rule = { .match = *match, .allow = spec->min, .place = *place };
	char quote[PROBLEM_QUOTE_MAX], text[PREFIX_STRLEN];

	if (parsed == -ERANGE)
		problems_add(problems, place, "%s has bits behind its length; write %s if that is meant",
			     problems_quote(value, quote), prefix_format(&match->prefix, text));
	else if (parsed < 0)
		problems_add(problems, place, "%s is no %s; write 198.51.100.0/24 or 2001:db8::/32%s",
			     problems_quote(value, quote), spec->unit,
			     spec->max ? ", with ports 198.51.100.0/24:443, [2001:db8::/32]:80-90, :25" :
					 "");
	else if (access_rules_add(member(spec, settings), &rule) < 0)
		problems_add(problems, place, "out of memory");
	else
		return true;
	return false;
}

static bool apply_client(const struct option_spec *spec, struct settings *settings,
			 const char *value, const struct place *place, struct problems *problems)
{
	struct prefix_rule match = { .port_last = UINT16_MAX };
	int parsed = prefix_parse(&match.prefix, value, strlen(value));

	return add_rule(spec, settings, value, &match, parsed, place, problems);
}

static bool apply_destination(const struct option_spec *spec, struct settings *settings,
			      const char *value, const struct place *place,
			      struct problems *problems)
{
	struct prefix_rule match;
	int parsed = prefix_rule_parse(&match, value);

	return add_rule(spec, settings, value, &match, parsed, place, problems);
}

static bool add_host(struct settings *settings, const struct prefix *prefix, const char *quote,
		     const struct place *place, struct problems *problems)
{
	if (access_add_host(&settings->access, prefix))
		return true;
	problems_add(problems, place, "%s is one too many, the limit is %d; prefixes take many addresses at once",
		     quote, ACCESS_HOST_MAX);
	return false;
}

static bool apply_shared_address(const struct option_spec *spec, struct settings *settings,
			 const char *value, const struct place *place, struct problems *problems)
{
	char quote[PROBLEM_QUOTE_MAX];
	union sockaddr_ip parsed;
	struct in6_addr address;
	struct prefix single;

	problems_quote(value, quote);
	/* A written port can't be 0, so port 0 means that the text has none. */
	if (sockaddr_ip_parse(&parsed, value, 0) < 0 || sockaddr_ip_port(&parsed) != 0) {
		problems_add(problems, place,
			     "%s is no numeric address without a port; write 192.0.2.1 or 2001:db8::1", quote);
		return false;
	}
	*(bool *)member(spec, settings) = true;
	address = sockaddr_ip_in6(&parsed);
	single = prefix_of(&address, 128);
	return add_host(settings, &single, quote, place, problems);
}

static bool apply_own_address(const struct option_spec *spec, struct settings *settings, const char *value,
			      const struct place *place, struct problems *problems)
{
	char quote[PROBLEM_QUOTE_MAX], meant[PREFIX_STRLEN];
	struct prefix prefix;
	int parsed = prefix_parse(&prefix, value, strlen(value));
	bool v4 = !parsed && IN6_IS_ADDR_V4MAPPED(&prefix.address) && prefix.length >= 96;

	(void)spec;
	problems_quote(value, quote);
	if (parsed == -ERANGE)
		problems_add(problems, place, "%s has bits behind its length; write %s if that is meant",
			     quote, prefix_format(&prefix, meant));
	else if (parsed < 0 || prefix.length == (v4 ? 96 : 0))
		problems_add(problems, place,
			     "%s is no address by which this host can be reached; write 192.0.2.1 or "
			     "2001:db8::/64",
			     quote);
	else
		return add_host(settings, &prefix, quote, place, problems);
	return false;
}

static bool apply_source(const struct option_spec *spec, struct settings *settings,
			 const char *value, const struct place *place, struct problems *problems)
{
	return sources_add(member(spec, settings), value, place, problems);
}

static bool apply_preserve(const struct option_spec *spec, struct settings *settings,
			   const char *value, const struct place *place, struct problems *problems)
{
	settings->sources.preserve_place = *place;
	return apply_flag(spec, settings, value, place, problems);
}

static bool apply_metrics(const struct option_spec *spec, struct settings *settings,
			  const char *value, const struct place *place, struct problems *problems)
{
	struct metrics_address where = { 0 };
	char quote[PROBLEM_QUOTE_MAX];
	bool is_path = strncmp(value, "unix:", 5) == 0;

	(void)spec;
	problems_quote(value, quote);
	if (is_path && value[5] == '/' && strlen(value + 5) < sizeof(where.path)) {
		strcpy(where.path, value + 5);
	} else if (is_path || sockaddr_ip_parse(&where.address, value, 0) < 0 ||
		   sockaddr_ip_port(&where.address) == 0) {
		problems_add(problems, place,
			     "%s is neither ADDR:PORT nor unix:/PATH of at most %d bytes; write "
			     "127.0.0.1:%d or unix:/run/convertd/metrics.sock",
			     quote, METRICS_PATH_MAX - 1, METRICS_PORT_EXAMPLE);
		return false;
	}
	if (settings->metrics_count == METRICS_ADDRESSES_MAX) {
		problems_add(problems, place, "%s is one too many, the limit is %d", quote,
			     METRICS_ADDRESSES_MAX);
		return false;
	}
	settings->metrics[settings->metrics_count++] = where;
	return true;
}

#define NUMBER(member, what, least, most, preset)                                                   \
	apply_number, MEMBER(member), .unit = what, .min = least, .max = most, .fallback = preset

/* A rule's min is whether it allows, its max whether it takes ports. */
#define RULE(list, what, allows, ports)                                                            \
	MEMBER(access.list), .unit = what, .min = allows, .max = ports, .flags = OPTION_REPEATS

const struct option_spec options_table[] = {
	{ "Listening", "listen", "ADDR[%DEVICE]:PORT",
	  "accept clients at this address, with DEVICE only\n"
	  "those that arrive on that interface; repeatable\n"
	  "(default " SETTINGS_LISTEN_DEFAULT "; [::] takes IPv4, too)",
	  apply_listen, .flags = OPTION_REPEATS },
	{ NULL, "shared-address", "ADDR",
	  "other converters have this address, too: deny it\n"
	  "as a destination; repeatable",
	  apply_shared_address, MEMBER(shared_address), .flags = OPTION_REPEATS },
	{ NULL, "no-syn-window-fix", NULL,
	  "don't correct the windows of Multipath TCP SYNs",
	  apply_flag, MEMBER(no_syn_window_fix) },
	{ NULL, "hold-syn", "WHEN",
	  "withhold SYNs until their servers have answered,\n"
	  "which saves a round trip: auto (if possible), on,\n"
	  "off (default auto)",
	  apply_hold_syn, MEMBER(hold_syn) },
	{ NULL, "hold-time", "MILLISECONDS",
	  "withhold each SYN for this long at most",
	  NUMBER(hold_time, "milliseconds", 1, 2900, 700) },
	{ NULL, "drop-foreign-syns", NULL,
	  "drop SYNs that don't begin with a request", apply_flag,
	  MEMBER(drop_foreign_syns) },
	{ NULL, "no-silence", NULL,
	  "answer each request, also if the SYN+ACK says all",
	  apply_flag, MEMBER(no_silence) },

	{ "Access (the longest matching prefix decides)", "allow-client", "PREFIX",
	  "accept these clients, and no others that no rule\n"
	  "matches; repeatable, as all rules are",
	  apply_client, RULE(clients, "prefix", true, false) },
	{ NULL, "deny-client", "PREFIX",
	  "refuse these clients with Not Authorized", apply_client,
	  RULE(clients, "prefix", false, false) },
	{ NULL, "allow-destination", "PREFIX[:PORTS]",
	  "connect to these servers, and to no others that no\n"
	  "rule matches; private networks and this host need\n"
	  "such a rule",
	  apply_destination, RULE(destinations, "prefix or port", true, true) },
	{ NULL, "deny-destination", "PREFIX[:PORTS]",
	  "refuse these servers with Not Authorized",
	  apply_destination, RULE(destinations, "prefix or port", false, true) },
	{ NULL, "own-address", "PREFIX",
	  "deny this address as this host's own, such as that\n"
	  "of a NAT in front of it; repeatable",
	  apply_own_address, .flags = OPTION_REPEATS },
	{ NULL, "no-hairpin", NULL,
	  "deny destinations that --allow-client allows",
	  apply_no_hairpin, MEMBER(access.no_hairpin) },

	{ "Addresses towards servers (RFC 8803, section 4.4)", "source", "PREFIX",
	  "connect to servers from these addresses, of which\n"
	  "each client keeps one; repeatable\n"
	  "(default: the host's routes choose)",
	  apply_source, MEMBER(sources), .flags = OPTION_REPEATS },
	{ NULL, "preserve-client-address", NULL,
	  "connect from the client's own address", apply_preserve,
	  MEMBER(sources.preserve) },

	{ "Cookies (RFC 8803, section 6.2.7)", "cookie-key", "FILE",
	  "require cookies made with the keys in this file", apply_path, MEMBER(cookie_key) },
	{ NULL, "cookie-lifetime", "SECONDS",
	  "a computed cookie is valid for this long at least",
	  NUMBER(cookie_lifetime, "seconds", 1, 30 * DAY, DAY) },
	{ NULL, "cookie-list", "FILE",
	  "accept the cookies in this file, one a line", apply_path,
	  MEMBER(cookie_list) },
	{ NULL, "cookie-demand", "PERCENT",
	  "demand cookies while unproven clients take this\n"
	  "share of --max-pending (0: never)",
	  NUMBER(cookie_demand, "percent", 0, 100, 12) },

	{ "Limits (0: none)", "max-connections", "N",
	  "connections of all clients\n"
	  "(0: as many as the limit of open files allows)",
	  NUMBER(limits.connections.total, NULL, 0, LIMIT_MAX, 0) },
	{ NULL, "max-connections-per-client", "N",
	  "connections of each client",
	  NUMBER(limits.connections.per_client, NULL, 0, LIMIT_MAX, 0) },
	{ NULL, "max-pending", "N",
	  "unanswered requests of all clients; above it the\n"
	  "network with most gives one up",
	  NUMBER(limits.pending.total, NULL, 0, LIMIT_MAX, 4096) },
	{ NULL, "max-pending-per-client", "N",
	  "unanswered requests of each client",
	  NUMBER(limits.pending.per_client, NULL, 0, LIMIT_MAX, 0) },
	{ NULL, "max-memory", "MIB",
	  "kernel memory of connections; above it stalled\n"
	  "ones are reset (0: half of what the host allows)",
	  NUMBER(max_memory, "MiB", 0, LIMIT_MAX, 0) },
	{ NULL, "max-memory-per-client", "MIB",
	  "the same for each client (0: an eighth of it)",
	  NUMBER(max_memory_per_client, "MiB", 0, LIMIT_MAX, 0) },
	{ NULL, "max-errors", "N",
	  "error replies a second; above it connections are\n"
	  "reset",
	  NUMBER(limits.errors.total, NULL, 0, LIMIT_MAX, 1000) },
	{ NULL, "max-errors-per-client", "N",
	  "error replies a second to each client",
	  NUMBER(limits.errors.per_client, NULL, 0, LIMIT_MAX, 20) },
	{ NULL, "client-prefix-v4", "BITS",
	  "IPv4 addresses that share these bits: one client",
	  NUMBER(limits.prefix_v4, "bits", 0, 32, 32) },
	{ NULL, "client-prefix-v6", "BITS",
	  "IPv6 addresses that share these bits: one client",
	  NUMBER(limits.prefix_v6, "bits", 0, 128, 64) },
	{ NULL, "retry-delay", "SECONDS",
	  "how long Resource Exceeded tells clients to wait",
	  NUMBER(retry_delay, "seconds", 1, 255, 10) },

	{ "Time-outs", "request-timeout", "SECONDS",
	  "reset a client that sends no complete request",
	  NUMBER(request_timeout, "seconds", 1, DAY, 10) },
	{ NULL, "connect-timeout", "SECONDS",
	  "give up on a server that doesn't answer",
	  NUMBER(connect_timeout, "seconds", 1, DAY, 30) },
	{ NULL, "stall-timeout", "SECONDS",
	  "reset a connection whose peer takes no data\n"
	  "(0: never)",
	  NUMBER(stall_timeout, "seconds", 0, 30 * DAY, 900) },
	{ NULL, "half-close-timeout", "SECONDS",
	  "reset a half-closed connection without data\n"
	  "(0: never)",
	  NUMBER(half_close_timeout, "seconds", 0, 30 * DAY, 3600) },
	{ NULL, "idle-timeout", "SECONDS",
	  "reset a connection without data (0: never)",
	  NUMBER(idle_timeout, "seconds", 0, 30 * DAY, 0) },
	{ NULL, "drain-timeout", "SECONDS",
	  "let connections continue after SIGTERM\n"
	  "(0: cut them)",
	  NUMBER(drain_timeout, "seconds", 0, DAY, 30) },

	{ "Privileges", "user", "NAME[:GROUP]",
	  "become this user when root starts convertd",
	  apply_user, MEMBER(user) },
	{ NULL, "no-syscall-filter", NULL,
	  "permit all system calls", apply_flag,
	  MEMBER(no_syscall_filter) },
	{ NULL, "no-landlock", NULL,
	  "permit all files that the user may open", apply_flag,
	  MEMBER(no_landlock) },

	{ "Speed", "workers", "N",
	  "threads that serve clients (0: one for each CPU)",
	  NUMBER(workers, NULL, 0, SETTINGS_WORKERS_MAX, 0) },
	{ NULL, "congestion-client", "NAME",
	  "congestion control towards clients, such as bbr\n"
	  "(default: net.ipv4.tcp_congestion_control)",
	  apply_congestion, MEMBER(congestion_client) },
	{ NULL, "congestion-server", "NAME",
	  "congestion control towards servers", apply_congestion,
	  MEMBER(congestion_server) },

	{ "Monitoring", "log-level", "LEVEL",
	  "print error, warning, info or debug, and what is\n"
	  "more severe (default info)",
	  apply_log_level, MEMBER(log_level) },
	{ NULL, "log-format", "FORMAT",
	  "text, or json: an object a line (default text)",
	  apply_log_format, MEMBER(log_format) },
	{ NULL, "log-rate", "N",
	  "log lines a second about ends of one kind (0: all)",
	  NUMBER(log_rate, NULL, 0, 100000, 200) },
	{ NULL, "metrics", "ADDRESS",
	  "serve metrics and a status page by HTTP, without a\n"
	  "password, at ADDR:PORT or unix:/PATH; repeatable\n"
	  "(default: nowhere)",
	  apply_metrics, .flags = OPTION_REPEATS },

	{ "Other", "config", "FILE",
	  "read settings from this file; the command line\n"
	  "overrides it",
	  apply_path, MEMBER(config), .flags = OPTION_COMMAND_LINE },
	{ NULL, "check-config", NULL,
	  "check all settings, and exit", apply_action,
	  .fallback = SETTINGS_CHECK, .flags = OPTION_COMMAND_LINE },
	{ NULL, "make-key", "FILE",
	  "write a new file for --cookie-key, and exit", apply_make_key,
	  MEMBER(make_key), .flags = OPTION_COMMAND_LINE | OPTION_LAST },
	{ NULL, "help", NULL,
	  "print this, and exit", apply_action, .fallback = SETTINGS_HELP,
	  .flags = OPTION_COMMAND_LINE | OPTION_LAST },
	{ NULL, "version", NULL,
	  "print the version, and exit", apply_action,
	  .fallback = SETTINGS_VERSION, .flags = OPTION_COMMAND_LINE | OPTION_LAST },
	{ 0 },
};

int options_find(const char *name)
{
	for (int i = 0; options_table[i].name; i++)
		if (strcmp(options_table[i].name, name) == 0)
			return i;
	return -1;
}

void options_set_defaults(struct settings *settings)
{
	for (const struct option_spec *spec = options_table; spec->name; spec++)
		if (spec->apply == apply_number)
			*(unsigned *)member(spec, settings) = spec->fallback;
	settings->log_level = LOG_LEVEL_INFO;
	settings->log_format = LOG_FORMAT_TEXT;
}

static void print_option(const struct option_spec *spec)
{
	const char *text = spec->help, *line_end;
	char left[64];

	snprintf(left, sizeof(left), "--%s%s%s", spec->name, spec->argument ? " " : "",
		 spec->argument ? spec->argument : "");
	/* What is too long for its column has a line of its own. */
	if (strlen(left) > 27) {
		printf("  %s\n", left);
		left[0] = '\0';
	}
	while ((line_end = strchr(text, '\n'))) {
		printf("  %-27s %.*s\n", left, (int)(line_end - text), text);
		left[0] = '\0';
		text = line_end + 1;
	}
	printf("  %-27s %s\n", left, text);
	if (spec->apply == apply_number)
		printf("  %-27s (default %u)\n", "", spec->fallback);
}

void options_print_help(void)
{
	printf("Usage: convertd [OPTION]...\n"
	       "       convertd status [--config FILE | --metrics ADDRESS]\n"
	       "Convert TCP connections of RFC 8803 clients, over Multipath TCP, to plain TCP.\n");
	for (const struct option_spec *spec = options_table; spec->name; spec++) {
		if (spec->group)
			printf("\n%s:\n", spec->group);
		print_option(spec);
	}
	printf("\nManual: man 8 convertd, man 5 convertd.conf\n");
}
