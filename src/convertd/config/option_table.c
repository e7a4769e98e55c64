/* SPDX-License-Identifier: BSD-3-Clause */
/* option_table.c - the options of the command line and of the configuration file */
#include "config.h"

#include "convertd/config/convertd_settings.h"

#include "convert/convert.h"
#include "daemon/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define DAY 86400
#define LIMIT_MAX 100000000

/* Linux permits more characters in the name of an interface, but none that anybody uses, or nft(8) could read. */
#define DEVICE_CHARACTERS                                                                          \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@+"

#define MEMBER(member) .offset = offsetof(struct convertd_settings, member)

static struct convertd_settings *settings_of(const struct option_value *v)
{
	return v->settings;
}

/* ----- flags, numbers, words, files ----- */

static bool apply_no_hairpin(const struct option_value *v)
{
	settings_of(v)->access.no_hairpin_place = *v->place;
	return option_flag(v);
}

static bool apply_preserve(const struct option_value *v)
{
	settings_of(v)->sources.preserve_place = *v->place;
	return option_flag(v);
}

static bool apply_congestion(const struct option_value *v)
{
	int error = *v->text && strlen(v->text) < CONGESTION_NAME_MAX ? congestion_check(v->text) : -ENOENT;
	char list[CONGESTION_LIST_MAX];

	if (error == -ENOENT)
		return option_refuse(v, "isn't a congestion control of this kernel; it has: %s (and what modprobe tcp_NAME "
				 "loads)",
			      congestion_available(list));
	if (error == -EPERM)
		return option_refuse(v, "needs CAP_NET_ADMIN, unless net.ipv4.tcp_allowed_congestion_control has it");
	if (error)
		return option_refuse(v, "can't be tried: %s", strerror(-error));
	strcpy(option_target(v), v->text);
	return true;
}

static bool apply_action(const struct option_value *v)
{
	settings_of(v)->action = (enum settings_action)v->spec->fallback;
	return true;
}

static bool apply_make_key(const struct option_value *v)
{
	settings_of(v)->action = SETTINGS_MAKE_KEY;
	return option_path(v);
}

static bool apply_client_name(const struct option_value *v)
{
	if (!cookies_name_is_right(v->text))
		return option_refuse(v, "isn't a name of a client; write at most %d letters, digits, dots, underscores and dashes",
			      COOKIES_NAME_MAX);
	strcpy(option_target(v), v->text);
	return apply_action(v);
}

static bool take_name(char name[static USER_NAME_MAX], const char *text, size_t len)
{
	if (len == 0 || len >= USER_NAME_MAX)
		return false;
	memcpy(name, text, len);
	name[len] = '\0';
	return true;
}

/* Splits "NAME" or "NAME:GROUP". */
static bool apply_user(const struct option_value *v)
{
	struct user *user = option_target(v);
	size_t len = strcspn(v->text, ":");

	*user = (struct user){ .place = *v->place };
	if (take_name(user->name, v->text, len) &&
	    (!v->text[len] || take_name(user->group, v->text + len + 1, strlen(v->text + len + 1))))
		return true;
	return option_refuse(v, "is not NAME or NAME:GROUP, of at most %d bytes each", USER_NAME_MAX - 1);
}

/* ----- addresses and prefixes ----- */

/*
 * Removes "%DEVICE" from "ADDR%DEVICE:PORT", where ss(8) prints it, so that @text is "ADDR:PORT". Returns false if
 * DEVICE can't be an interface.
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

/* Cuts four decimal digits off the end of an IPv6 address that is one without them, too: the user may mean a port. */
static bool ends_with_port(char *text, const char **port)
{
	char *colon = strrchr(text, ':');
	struct in6_addr address;

	*port = colon + 1;
	if (strlen(*port) != 4 || strspn(*port, "0123456789") != 4 || **port == '0')
		return false;
	*colon = '\0';
	if (inet_pton(AF_INET6, text, &address) == 1)
		return true;
	*colon = ':';
	return false;
}

static bool parse_listen(const struct option_value *v, struct listen_address *listen)
{
	bool bare_v6 = v->text[0] != '[' && strchr(v->text, ':') != strrchr(v->text, ':');
	char text[SOCKADDR_STRLEN + IFNAMSIZ];
	const char *port;

	/* A text that is too long isn't an address; it is cut here, and refused below. */
	snprintf(text, sizeof(text), "%s", v->text);
	if (!take_device(text, listen->device))
		return option_refuse(v, "names no interface; write 192.0.2.1%%eth0:%d or [::]%%eth0:%d", SETTINGS_PORT,
			      SETTINGS_PORT);
	/* Nobody can write the port 0: it stands for none. */
	if (sockaddr_ip_parse(&listen->address, text, 0) < 0)
		return option_refuse(v, "is not ADDR:PORT with a numeric address and a port from 1 to 65535; write "
				 "192.0.2.1:%d or [2001:db8::1]:%d",
			      SETTINGS_PORT, SETTINGS_PORT);
	if (sockaddr_ip_port(&listen->address) == 0 && bare_v6 && ends_with_port(text, &port))
		return option_refuse(v, "has no brackets; write [%s]:%s for port %s, or [%s:%s]:%d for the address", text, port, port,
				     text, port, SETTINGS_PORT);
	if (sockaddr_ip_port(&listen->address) == 0)
		return option_refuse(v, "has no port; write %s%.50s%s:%d", bare_v6 ? "[" : "", text, bare_v6 ? "]" : "",
			      SETTINGS_PORT);
	return true;
}

static bool apply_listen(const struct option_value *v)
{
	struct convertd_settings *settings = v->settings;
	struct listen_address listen = { 0 };
	union sockaddr_ip *address = &listen.address;

	if (!parse_listen(v, &listen))
		return false;
	if (settings->listen_count == LISTEN_ADDRESSES_MAX)
		return option_refuse(v, "is one too many, the limit is %d; [::]:PORT listens on all addresses of the host",
			      LISTEN_ADDRESSES_MAX);
	if (address->sa.sa_family == AF_INET6 && sockaddr_ip_is_v4(address)) {
		struct in6_addr mapped = address->in6.sin6_addr;

		sockaddr_ip_set(address, AF_INET, &mapped, sockaddr_ip_port(address));
	}
	settings->listen[settings->listen_count++] = listen;
	return true;
}

static bool refuse_bits(const struct option_value *v, const struct prefix *meant)
{
	char text[PREFIX_STRLEN];

	return option_refuse(v, "has bits set beyond its length; write %s if that is meant", prefix_format(meant, text));
}

/* @parsed: the result of parsing @match */
static bool add_rule(const struct option_value *v, const struct prefix_rule *match, int parsed)
{
	const struct access_rule rule = { .match = *match, .allow = v->spec->min, .place = *v->place };

	if (parsed == -ERANGE)
		return refuse_bits(v, &match->prefix);
	if (parsed < 0)
		return option_refuse(v, "is no %s; write 198.51.100.0/24 or 2001:db8::/32%s", v->spec->unit,
			      v->spec->max ? ", with ports 198.51.100.0/24:443, [2001:db8::/32]:80-90, :25" : "");
	if (access_rules_add(option_target(v), &rule) == 0)
		return true;
	problems_add(v->problems, v->place, "out of memory");
	return false;
}

static bool apply_client(const struct option_value *v)
{
	struct prefix_rule match = { .port_last = UINT16_MAX };
	int parsed = prefix_parse(&match.prefix, v->text, strlen(v->text));

	return add_rule(v, &match, parsed);
}

#define SHORTEST_INVALID 4 /* bits of the shortest prefix without a valid server: 224.0.0.0/4 */

/* Does the prefix have only addresses that no request may name, such as loopback ones? */
static bool is_never_valid(const struct prefix *prefix)
{
	struct in6_addr last = prefix->address;

	if (prefix->length < (IN6_IS_ADDR_V4MAPPED(&prefix->address) ? 96 : 0) + SHORTEST_INVALID)
		return false;
	for (int bit = prefix->length; bit < 128; bit++)
		last.s6_addr[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	return !convert_address_is_valid(&prefix->address) && !convert_address_is_valid(&last);
}

static bool apply_destination(const struct option_value *v)
{
	struct prefix_rule match;
	int parsed = prefix_rule_parse(&match, v->text);

	if (parsed == 0 && v->spec->min && is_never_valid(&match.prefix))
		return option_refuse(v, "can't be allowed: RFC 8803 forbids such addresses as servers");
	return add_rule(v, &match, parsed);
}

static bool add_host(const struct option_value *v, const struct prefix *prefix)
{
	return access_add_host(&settings_of(v)->access, prefix) ||
	       option_refuse(v, "is one too many, the limit is %d; prefixes take many addresses at once", ACCESS_HOST_MAX);
}

static bool apply_shared_address(const struct option_value *v)
{
	union sockaddr_ip parsed;
	struct in6_addr address;
	struct prefix single;

	/* A written port can't be 0, so port 0 means that the text has none. */
	if (sockaddr_ip_parse(&parsed, v->text, 0) < 0 || sockaddr_ip_port(&parsed) != 0)
		return option_refuse(v, "isn't a numeric address without a port; write 192.0.2.1 or 2001:db8::1");
	address = sockaddr_ip_in6(&parsed);
	single = prefix_of(&address, 128);
	return option_flag(v) && add_host(v, &single);
}

static bool apply_own_address(const struct option_value *v)
{
	struct prefix prefix;
	int parsed = prefix_parse(&prefix, v->text, strlen(v->text));
	bool v4 = !parsed && IN6_IS_ADDR_V4MAPPED(&prefix.address) && prefix.length >= 96;

	if (parsed == -ERANGE)
		return refuse_bits(v, &prefix);
	if (parsed < 0 || prefix.length == (v4 ? 96 : 0))
		return option_refuse(v, "isn't an address by which this host can be reached; write 192.0.2.1 or 2001:db8::/64");
	return add_host(v, &prefix);
}

static bool apply_source(const struct option_value *v)
{
	return sources_add(option_target(v), v->text, v->place, v->problems);
}

static bool apply_metrics(const struct option_value *v)
{
	return option_add_metrics(v, settings_of(v)->metrics, &settings_of(v)->metrics_count, "/run/convertd/metrics.sock");
}

/* ----- the table ----- */

#define NUMBER(member, what, least, most, preset)                                                   \
	option_number, MEMBER(member), .unit = what, .min = least, .max = most, .fallback = preset

/* A rule uses min for whether it allows, and max for whether it takes ports. */
#define RULE(list, what, allows, ports)                                                            \
	MEMBER(access.list), .unit = what, .min = allows, .max = ports, .flags = OPTION_REPEATS

static const struct option_spec table[] = {
	{ "Listening", "listen", "ADDR[%DEVICE]:PORT",
	  "accept clients at this address, with DEVICE only\n"
	  "those that arrive on that interface; repeatable\n"
	  "(default " SETTINGS_LISTEN_DEFAULT "; [::] takes IPv4, too)",
	  apply_listen, .flags = OPTION_REPEATS },
	{ NULL, "shared-address", "ADDR",
	  "other converters have this address, too: deny it\n"
	  "as a destination; repeatable",
	  apply_shared_address, MEMBER(shared_address), .flags = OPTION_REPEATS },
	{ NULL, "hold-syn", "WHEN",
	  "withhold SYNs until their servers have answered,\n"
	  "which saves a round trip: auto (if possible), on,\n"
	  "off (default auto)",
	  option_word, MEMBER(hold_syn), .unit = "auto, on, off" },
	{ NULL, "hold-time", "MILLISECONDS",
	  "withhold each SYN for this long at most",
	  NUMBER(hold_time, "milliseconds", 1, 2900, 700) },
	{ NULL, "drop-foreign-syns", NULL,
	  "drop SYNs that don't begin with a request", option_flag,
	  MEMBER(drop_foreign_syns) },
	{ NULL, "no-silence", NULL,
	  "answer each request, also if the SYN+ACK says all",
	  option_flag, MEMBER(no_silence) },

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
	  "require cookies made with the keys in this file", option_path, MEMBER(cookie_key) },
	{ NULL, "cookie-lifetime", "SECONDS",
	  "a computed cookie is valid for this long at least",
	  NUMBER(cookie_lifetime, "seconds", 1, 30 * DAY, DAY) },
	{ NULL, "cookie-list", "FILE",
	  "accept the cookies in this file, one a line", option_path,
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
	  "permit all system calls", option_flag,
	  MEMBER(no_syscall_filter) },
	{ NULL, "no-landlock", NULL,
	  "permit all files that the user may open", option_flag,
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
	  "print this level and more severe ones: error,\n"
	  "warning, info or debug (default info)",
	  option_word, MEMBER(log_level), .unit = "error, warning, info, debug" },
	{ NULL, "log-format", "FORMAT",
	  "text, or json: an object a line (default text)",
	  option_word, MEMBER(log_format), .unit = "text, json" },
	{ NULL, "log-rate", "N",
	  "log lines a second for each outcome (0: all)",
	  NUMBER(log_rate, NULL, 0, 100000, 200) },
	{ NULL, "metrics", "ADDRESS",
	  "serve metrics and a status page by HTTP, without a\n"
	  "password, at ADDR:PORT or unix:/PATH; repeatable\n"
	  "(default: nowhere)",
	  apply_metrics, .flags = OPTION_REPEATS },

	{ "Other", "config", "FILE",
	  "read settings from this file; the command line\n"
	  "overrides it",
	  option_path, MEMBER(config), .flags = OPTION_COMMAND_LINE },
	{ NULL, "check-config", NULL,
	  "check all settings, and exit", apply_action,
	  .fallback = SETTINGS_CHECK, .flags = OPTION_COMMAND_LINE },
	{ NULL, "new-client", "NAME",
	  "add a cookie for this client to --cookie-list, and\n"
	  "print what the client needs",
	  apply_client_name, MEMBER(client_name), .fallback = SETTINGS_NEW_CLIENT, .flags = OPTION_COMMAND_LINE },
	{ NULL, "remove-client", "NAME",
	  "withdraw this client's cookie", apply_client_name, MEMBER(client_name),
	  .fallback = SETTINGS_REMOVE_CLIENT, .flags = OPTION_COMMAND_LINE },
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

static bool take_word(void *settings, const char *word)
{
	if (strcmp(word, "status") != 0)
		return false;
	((struct convertd_settings *)settings)->action = SETTINGS_STATUS;
	return true;
}

const struct option_program convertd_options = {
	.name = "convertd",
	.table = table,
	.usage = "Usage: convertd [OPTION]...\n"
		 "       convertd status [--config FILE | --metrics ADDRESS]\n"
		 "Convert TCP connections of RFC 8803 clients, over Multipath TCP, to plain TCP.\n",
	.more = "Manual: man 8 convertd, man 5 convertd.conf\n",
	.instead = "addresses go behind --listen",
	.command = "status",
	.take_word = take_word,
};
