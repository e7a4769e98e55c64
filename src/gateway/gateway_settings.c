/* SPDX-License-Identifier: BSD-3-Clause */
/* gateway_settings.c - the options of convertgw, its rules, and the settings of the client that it is towards converters */
#include "config.h"

#include "gateway/gateway_settings.h"

#include "daemon/log.h"

#include <assert.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DAY 86400
#define LIMIT_MAX 100000000
#define CACHE_DEFAULT "/run/convertgw"
#define DSCP_MAX 63
#define NUMBER_DEFAULT 8803 /* of the routing table, the first queue and the port */

#define MEMBER(member) .offset = offsetof(struct gateway_settings, member)

static const struct place nowhere;

static struct gateway_settings *settings_of(const struct option_value *v)
{
	return v->settings;
}

/* ----- values ----- */

static bool apply_action(const struct option_value *v)
{
	settings_of(v)->action = (enum gateway_action)v->spec->fallback;
	return true;
}

/* Adds a word to a list with commas between its elements; its length is in spec->max. */
static bool apply_list(const struct option_value *v)
{
	char *list = option_target(v);
	const size_t used = strlen(list);

	if (!*v->text || used + strlen(v->text) + 2 > v->spec->max)
		return option_refuse(v, *v->text ? "is one too many" : "is empty");
	snprintf(list + used, v->spec->max - used, "%s%s", used ? "," : "", v->text);
	return true;
}

static bool apply_text(const struct option_value *v)
{
	if (!*v->text || strlen(v->text) >= v->spec->max)
		return option_refuse(v, "has to have from 1 to %u bytes", v->spec->max - 1);
	strcpy(option_target(v), v->text);
	return true;
}

/* Is it a name that Linux permits for an interface, and nft(8) can read between quotation marks? Or the beginning of names, and "*"? */
static bool is_interface(const char *text)
{
	const size_t len = strlen(text), name_len = strcspn(text, "*");

	return name_len > 0 && len < IFNAMSIZ && len - name_len <= 1 && !strpbrk(text, " \t\n\"\\/:") && strcmp(text, ".") != 0 &&
	       strcmp(text, "..") != 0;
}

bool gateway_device_matches(const char *pattern, const char *name)
{
	const size_t len = strcspn(pattern, "*");

	return strncmp(pattern, name, len) == 0 && (pattern[len] || !name[len]);
}

bool gateway_settings_have_lan(const struct gateway_settings *settings, const char *device)
{
	for (size_t i = 0; i < settings->lan_count; i++)
		if (gateway_device_matches(settings->lan[i], device) || gateway_device_matches(device, settings->lan[i]))
			return true;
	return false;
}

static bool apply_lan(const struct option_value *v)
{
	struct gateway_settings *settings = settings_of(v);

	if (!is_interface(v->text))
		return option_refuse(v, "can't be the name of an interface; see: ip link");
	if (gateway_device_matches(v->text, "lo"))
		return option_refuse(v, "is this host itself; write --host for its own programs");
	if (settings->lan_count == GATEWAY_INTERFACES_MAX)
		return option_refuse(v, "is one too many, the limit is %d", GATEWAY_INTERFACES_MAX);
	strcpy(settings->lan[settings->lan_count++], v->text);
	return true;
}

/* Reads a number of 32 bits (0x: hexadecimal), to the end of the text or to @until. Sets @end. */
static bool read_number(const char *text, char until, uint32_t *out, const char **end)
{
	unsigned long number;
	char *stop;

	errno = 0;
	number = strtoul(text, &stop, 0);
	*end = stop;
	*out = (uint32_t)number;
	return !errno && stop != text && text[0] >= '0' && text[0] <= '9' && number <= UINT32_MAX && (!*stop || *stop == until);
}

static bool apply_mark(const struct option_value *v)
{
	uint32_t mark;
	const char *end;

	if (!read_number(v->text, '\0', &mark, &end) || __builtin_popcount(mark) != 2)
		return option_refuse(v, "isn't a number with exactly two bits set; write 0x%x", GATEWAY_MARK_DEFAULT);
	settings_of(v)->mark = mark;
	return true;
}

/* Refuses the kernel's own tables: in "main", the route would send all of this host's packets to itself. */
static bool apply_table(const struct option_value *v)
{
	if (!option_number(v))
		return false;
	if (settings_of(v)->table < RT_TABLE_DEFAULT || settings_of(v)->table > RT_TABLE_LOCAL)
		return true;
	return option_refuse(v, "is a table that the kernel uses itself; write another number, such as %d", NUMBER_DEFAULT);
}

static bool apply_metrics(const struct option_value *v)
{
	return option_add_metrics(v, settings_of(v)->metrics, &settings_of(v)->metrics_count, GATEWAY_METRICS_DEFAULT);
}

/* ----- rules ----- */

static bool rule_client(struct gateway_rule *rule, const char *text)
{
	return prefix_parse(&rule->client, text, strlen(text)) == 0;
}

static bool rule_destination(struct gateway_rule *rule, const char *text)
{
	return prefix_rule_parse(&rule->destination, text) == 0;
}

static bool rule_device(struct gateway_rule *rule, const char *text)
{
	snprintf(rule->device, sizeof(rule->device), "%s", text);
	return is_interface(text);
}

static bool rule_dscp(struct gateway_rule *rule, const char *text)
{
	uint32_t number;
	const char *end;

	rule->has_dscp = read_number(text, '\0', &number, &end) && number <= DSCP_MAX;
	rule->dscp = (uint8_t)number;
	return rule->has_dscp;
}

static bool rule_mark(struct gateway_rule *rule, const char *text)
{
	const char *end;

	rule->mark_mask = UINT32_MAX;
	rule->has_mark = read_number(text, '/', &rule->mark, &end) && (!*end || read_number(end + 1, '\0', &rule->mark_mask, &end)) &&
			 !(rule->mark & ~rule->mark_mask);
	return rule->has_mark;
}

static const struct {
	const char *word, *example;
	bool (*read)(struct gateway_rule *rule, const char *text);
} conditions[] = {
	{ "client", "192.168.1.20 or 192.168.2.0/24", rule_client },
	{ "destination", "198.51.100.0/24, [2001:db8::/32]:443 or :25", rule_destination },
	{ "device", "br0", rule_device },
	{ "dscp", "a number up to 63", rule_dscp },
	{ "mark", "0x10 or 0x10/0xff", rule_mark },
};

#define CONDITIONS (sizeof(conditions) / sizeof(conditions[0]))

/* Reads one condition, a word and its value. Returns false after adding the error. */
static bool read_condition(const struct option_value *v, struct gateway_rule *rule, const char *word, const char *value)
{
	for (size_t i = 0; i < CONDITIONS; i++) {
		if (strcmp(word, conditions[i].word) != 0)
			continue;
		return (value && conditions[i].read(rule, value)) || option_refuse(v, "has no right value behind \"%s\"; write %s %s", word,
										  word, conditions[i].example);
	}
	return option_refuse(v, "has an unknown word; write \"all\", or one or more of: client PREFIX, destination PREFIX[:PORTS], "
				"device INTERFACE, dscp NUMBER, mark NUMBER[/MASK]");
}

static bool add_rule(const struct option_value *v, const struct gateway_rule *rule)
{
	struct gateway_settings *settings = settings_of(v);
	struct gateway_rule *rules = reallocarray(settings->rules, settings->rule_count + 1, sizeof(*rules));

	if (!rules) {
		problems_add(v->problems, v->place, "out of memory");
		return false;
	}
	settings->rules = rules;
	rules[settings->rule_count++] = *rule;
	return true;
}

static bool apply_rule(const struct option_value *v)
{
	struct gateway_rule rule = { .way = (enum gateway_way)v->spec->min, .destination.port_last = UINT16_MAX, .place = *v->place };
	char text[512], *rest = text, *word;

	if (strlen(v->text) >= sizeof(text))
		return option_refuse(v, "is too long for a rule");
	strcpy(text, v->text);
	word = strtok_r(text, " \t", &rest);
	if (!word)
		return option_refuse(v, "isn't a rule; write \"all\" if that is meant");
	if (strcmp(word, "all") == 0)
		word = strtok_r(NULL, " \t", &rest);
	for (; word; word = strtok_r(NULL, " \t", &rest))
		if (!read_condition(v, &rule, word, strtok_r(NULL, " \t", &rest)))
			return false;
	if (rule.client.length && rule.destination.prefix.length &&
	    IN6_IS_ADDR_V4MAPPED(&rule.client.address) != IN6_IS_ADDR_V4MAPPED(&rule.destination.prefix.address))
		return option_refuse(v, "names a client and a destination of different address families: it can't match");
	return add_rule(v, &rule);
}

/* ----- the table ----- */

#define NUMBER(member, what, least, most, preset) option_number, MEMBER(member), .unit = what, .min = least, .max = most, .fallback = preset
#define LIST(member) apply_list, MEMBER(member), .max = sizeof(((struct gateway_settings *)0)->member), .flags = OPTION_REPEATS
#define TEXT(member) apply_text, MEMBER(member), .max = sizeof(((struct gateway_settings *)0)->member)
#define RULE(way) apply_rule, .min = way, .flags = OPTION_REPEATS
#define ACTION(action) apply_action, .fallback = action

static const struct option_spec table[] = {
	{ "Clients", "lan", "INTERFACE",
	  "convert the connections of hosts that arrive at this\n"
	  "interface, such as a bridge of containers; cali*: at\n"
	  "all whose names begin so; repeatable",
	  apply_lan, .flags = OPTION_REPEATS },
	{ NULL, "host", NULL, "convert those of this host's own programs", option_flag, MEMBER(host) },

	{ "Rules (the first one that matches decides)", "convert", "RULE",
	  "convert these connections; route them where that\n"
	  "isn't possible; repeatable, as all rules are. RULE is\n"
	  "\"all\", or one or more of: client PREFIX,\n"
	  "destination PREFIX[:PORTS], device INTERFACE,\n"
	  "dscp NUMBER, mark NUMBER[/MASK]",
	  RULE(GATEWAY_CONVERT) },
	{ NULL, "route", "RULE",
	  "route these connections, as without a gateway; if no\n"
	  "rule matches, those to private networks and to the\n"
	  "ports of DNS are routed as well",
	  RULE(GATEWAY_ROUTE) },
	{ NULL, "require", "RULE",
	  "convert these connections, or refuse them: they never\n"
	  "go past the converter, even if the gateway is killed",
	  RULE(GATEWAY_REQUIRE) },
	{ NULL, "refuse-quic", NULL,
	  "refuse UDP to port 443, so that browsers use TCP,\n"
	  "which can be converted", option_flag, MEMBER(refuse_quic) },

	{ "Converters", "converter", "ADDR[:PORT]|NAME",
	  "ask this converter, or the one after it if it fails;\n"
	  "repeatable", LIST(texts.converters) },
	{ NULL, "cookie", "TEXT", "send converters this cookie; other users of this host\nmay see it: see --cookie-file", TEXT(texts.cookie) },
	{ NULL, "cookie-file", "FILE", "send converters the cookie in this file's first line", option_path, MEMBER(texts.cookie_file) },
	{ NULL, "paths", "LIST",
	  "networks in the order in which connections begin on\n"
	  "them: DEVICE or ADDRESS, also =backup or =never", LIST(texts.paths) },
	{ NULL, "converter-timeout", "SECONDS", "try the next converter if one is silent for this long\n(default 3)", TEXT(texts.timeout) },
	{ NULL, "cache", "DIRECTORY", "keep facts about converters and networks here\n(default " CACHE_DEFAULT ")",
	  option_path, MEMBER(texts.cache) },

	{ "Limits (0: none)", "max-connections", "N", "connections of all clients", NUMBER(limits.connections.total, NULL, 0, LIMIT_MAX, 0) },
	{ NULL, "max-connections-per-client", "N", "connections of each client",
	  NUMBER(limits.connections.per_client, NULL, 0, LIMIT_MAX, 0) },
	{ NULL, "max-pending", "N", "unanswered connections of all clients; above it the\nclient with most has one routed",
	  NUMBER(limits.pending.total, NULL, 0, LIMIT_MAX, 4096) },
	{ NULL, "max-pending-per-client", "N", "unanswered connections of each client",
	  NUMBER(limits.pending.per_client, NULL, 0, LIMIT_MAX, 256) },
	{ NULL, "client-prefix-v4", "BITS", "IPv4 addresses that share these bits: one client", NUMBER(limits.prefix_v4, "bits", 0, 32, 32) },
	{ NULL, "client-prefix-v6", "BITS", "IPv6 addresses that share these bits: one client",
	  NUMBER(limits.prefix_v6, "bits", 0, 128, 128) },

	{ "Time-outs", "connect-timeout", "SECONDS", "give up on a server that doesn't answer", NUMBER(connect_timeout, "seconds", 1, DAY, 130) },
	{ NULL, "stall-timeout", "SECONDS", "reset a connection whose peer takes no data\n(0: never)",
	  NUMBER(stall_timeout, "seconds", 0, 30 * DAY, 900) },
	{ NULL, "half-close-timeout", "SECONDS", "reset a half-closed connection without data\n(0: never)",
	  NUMBER(half_close_timeout, "seconds", 0, 30 * DAY, 7200) },
	{ NULL, "idle-timeout", "SECONDS", "reset a connection without data (0: never)", NUMBER(idle_timeout, "seconds", 0, 30 * DAY, 0) },
	{ NULL, "drain-timeout", "SECONDS", "let connections continue after SIGTERM\n(0: cut them)",
	  NUMBER(drain_timeout, "seconds", 0, DAY, 30) },

	{ "Netfilter and routing", "mark", "NUMBER",
	  "two bits of packet marks that nobody else on this\n"
	  "host uses (default 0x0c000000)", apply_mark, .flags = 0 },
	{ NULL, "table", "NUMBER", "routing table for diverted packets (default 8803)", apply_table, MEMBER(table), .min = 1,
	  .max = 0xfffffffe },
	{ NULL, "queue", "NUMBER", "first netfilter queue to try", NUMBER(first_queue, NULL, 0, 65000, NUMBER_DEFAULT) },
	{ NULL, "port", "NUMBER", "port on loopback for diverted connections", NUMBER(port, NULL, 1, 65535, NUMBER_DEFAULT) },

	{ "Other", "config", "FILE", "read settings from this file, too", option_path, MEMBER(config), .flags = OPTION_COMMAND_LINE },
	{ NULL, "check-config", NULL, "check all settings and this host, and exit", ACTION(GATEWAY_CHECK), .flags = OPTION_COMMAND_LINE },
	{ NULL, "workers", "N", "threads that serve clients (0: one for each CPU)", NUMBER(workers, NULL, 0, GATEWAY_WORKERS_MAX, 0) },
	{ NULL, "log-level", "LEVEL", "print this level and more severe ones: error,\nwarning, info or debug (default info)", option_word,
	  MEMBER(log_level), .unit = "error, warning, info, debug" },
	{ NULL, "log-format", "FORMAT", "text, or json: an object a line (default text)", option_word, MEMBER(log_format),
	  .unit = "text, json" },
	{ NULL, "log-rate", "N", "log lines a second for each outcome (0: all)", NUMBER(log_rate, NULL, 0, 100000, 20) },
	{ NULL, "metrics", "ADDRESS", "serve metrics by HTTP at ADDR:PORT or unix:/PATH;\nrepeatable (default: nowhere)", apply_metrics,
	  .flags = OPTION_REPEATS },
	{ NULL, "help", NULL, "print this, and exit", ACTION(GATEWAY_HELP), .flags = OPTION_COMMAND_LINE | OPTION_LAST },
	{ NULL, "version", NULL, "print the version, and exit", ACTION(GATEWAY_VERSION), .flags = OPTION_COMMAND_LINE | OPTION_LAST },
	{ 0 },
};

static bool take_word(void *settings, const char *word)
{
	if (strcmp(word, "status") != 0)
		return false;
	((struct gateway_settings *)settings)->action = GATEWAY_STATUS;
	return true;
}

const struct option_program gateway_options = {
	.name = "convertgw",
	.table = table,
	.usage = "Usage: convertgw --converter ADDR {--lan INTERFACE | --host} [OPTION]...\n"
		 "       convertgw status [--config FILE | --metrics ADDRESS]\n"
		 "Convert the TCP connections of hosts behind this one, or of its own programs,\n"
		 "through a converter (RFC 8803), over Multipath TCP.\n",
	.more = "Manual: man 8 convertgw\n",
	.command = "status",
	.instead = "interfaces go behind --lan",
	.take_word = take_word,
};

/* ----- the client's settings ----- */

/* The variables of settings_read(), and the options that we read them from. */
static const struct {
	const char *variable, *option;
} variables[] = {
	{ "CONVERT_ADDR", "converter" },     { "CONVERT_COOKIE", "cookie" }, { "CONVERT_PATHS", "paths" },
	{ "CONVERT_TIMEOUT", "converter-timeout" }, { "CONVERT_CACHE", "cache" },
};

/* The texts that look_up() finds; settings are read by one thread. */
static const struct gateway_texts *texts;

static const char *look_up(const char *name)
{
	const char *const found[] = { texts->converters, texts->cookie, texts->paths, texts->timeout, texts->cache.name };

	static_assert(sizeof(found) / sizeof(found[0]) == sizeof(variables) / sizeof(variables[0]), "a text for each variable");
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (strcmp(name, variables[i].variable) == 0)
			return found[i][0] ? found[i] : NULL;
	/* Whether servers speak Multipath TCP doesn't matter, since clients that do aren't converted. */
	return strcmp(name, "CONVERT_BYPASS_MPTCP") == 0 ? "0" : NULL;
}

/* Adds the error of settings_read(), which begins with the variable, and a colon or a word. */
static void tell_problem(const char *problem, struct problems *problems)
{
	const size_t len = strcspn(problem, ": ");

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (strlen(variables[i].variable) == len && memcmp(problem, variables[i].variable, len) == 0) {
			const struct place place = { .name = variables[i].option };

			problems_add(problems, &place, "%s", problem + len + strspn(problem + len, ": "));
			return;
		}
	problems_add(problems, &nowhere, "%s", problem);
}

static void read_cookie(struct gateway_texts *to, struct problems *problems)
{
	const uid_t owner = geteuid();
	size_t len;
	char *text;

	if (!to->cookie_file.name[0])
		return;
	if (to->cookie[0]) {
		problems_add(problems, &to->cookie_file.place, "there is a cookie in the settings already; remove one of them");
		return;
	}
	text = textfile_read(to->cookie_file.name, &owner, &len, &to->cookie_file.place, problems);
	if (!text)
		return;
	text[strcspn(text, "\r\n")] = '\0';
	if (!*text || strlen(text) >= sizeof(to->cookie))
		problems_add(problems, &to->cookie_file.place, "the first line has to have from 1 to %d bytes", SETTINGS_COOKIE_MAX);
	else
		strcpy(to->cookie, text);
	explicit_bzero(text, len);
	free(text);
}

/* Completes settings that depend on several options. */
static void finish(struct gateway_settings *settings, struct problems *problems)
{
	if (!settings->lan_count && !settings->host)
		problems_add(problems, &nowhere, "no clients; name the interface of the hosts behind this one with --lan, or write --host");
	if (!settings->texts.converters[0]) {
		problems_add(problems, &nowhere, "no converter; name one with --converter");
		return;
	}
	read_cookie(&settings->texts, problems);
	texts = &settings->texts;
	settings_read(&settings->client, look_up);
	if (!settings->client.enabled)
		tell_problem(settings->client.problem, problems);
}

static struct gateway_settings *settings_new(void)
{
	struct gateway_settings *settings = calloc(1, sizeof(*settings));

	if (!settings)
		return NULL;
	options_set_numbers(table, settings);
	settings->limits.keeps_open = true;
	settings->mark = GATEWAY_MARK_DEFAULT;
	settings->table = NUMBER_DEFAULT;
	settings->log_level = LOG_LEVEL_INFO;
	strcpy(settings->texts.cache.name, CACHE_DEFAULT);
	return settings;
}

struct gateway_settings *gateway_settings_read(int argc, char *argv[], struct problems *problems)
{
	struct gateway_settings *settings = settings_new(), *overridden = settings_new();
	struct option_reading reading = { &gateway_options, settings, overridden, problems, { 0 }, { 0 } };

	if (!settings || !overridden) {
		problems_add(problems, &nowhere, "out of memory");
	} else {
		options_read_command_line(&reading, argc, argv);
		if (settings->action <= GATEWAY_STATUS && settings->config.name[0])
			options_read_file(&reading, &settings->config);
		if (settings->action <= GATEWAY_CHECK && !problems->count)
			finish(settings, problems);
	}
	gateway_settings_free(overridden);
	if (!problems->count)
		return settings;
	gateway_settings_free(settings);
	return NULL;
}

void gateway_settings_check_text(const char *name, char *text, size_t len, struct problems *problems)
{
	struct gateway_settings *settings = settings_new(), *overridden = settings_new();
	struct option_reading reading = { &gateway_options, settings, overridden, problems, { 0 }, { 0 } };

	if (settings && overridden)
		options_read_text(&reading, name, text, len);
	gateway_settings_free(overridden);
	gateway_settings_free(settings);
}

void gateway_settings_free(struct gateway_settings *settings)
{
	if (!settings)
		return;
	free(settings->rules);
	free(settings);
}
