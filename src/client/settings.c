/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.c - the settings that a Convert client reads from its environment, constant afterwards */
#include "config.h"

#include "client/settings.h"

#include "client/resolve.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the networks on which connections begin (CONVERT_PATHS) --- */

static const char *const use_names[] = { [PATH_USE_ORDERED] = "", [PATH_USE_BACKUP] = "backup", [PATH_USE_NEVER] = "never" };
static_assert(sizeof(use_names) / sizeof(use_names[0]) == PATH_USE_COUNT, "a name for each");

static bool use_read(enum path_use *out, const char *text)
{
	for (int use = PATH_USE_BACKUP; use < PATH_USE_COUNT; use++) {
		*out = (enum path_use)use;
		if (strcmp(text, use_names[use]) == 0)
			return true;
	}
	return false;
}

/* Follows the kernel's dev_valid_name(). Text that looks like a mistyped address is no device. */
static bool device_is_plausible(const char *name)
{
	if (!*name || strlen(name) >= IF_NAMESIZE || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	for (const char *c = name; *c; c++)
		if (isspace((unsigned char)*c) || *c == '/' || *c == ':')
			return false;
	return name[strspn(name, "0123456789.")] != '\0';
}

const char *path_preferences_add(struct path_preferences *out, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : strlen(text);
	struct path_wish *wish = &out->wishes[out->count];
	char name[SOCKADDR_STRLEN];
	union sockaddr_ip addr;

	if (out->count == PATH_PREFERENCES_MAX)
		return "is one network too many";
	*wish = (struct path_wish){ .use = PATH_USE_ORDERED };
	if (equals && !use_read(&wish->use, equals + 1))
		return "has neither backup nor never after the =; write the network first: wwan0=backup";
	if (len >= sizeof(name))
		return "is neither a device nor an address";
	memcpy(name, text, len);
	name[len] = '\0';
	if (sockaddr_ip_parse(&addr, name, 1) == 0 && sockaddr_ip_port(&addr) == 1)
		wish->address = sockaddr_ip_in6(&addr);
	else if (device_is_plausible(name))
		strcpy(wish->device, name);
	else
		return "is neither a device nor an address; say wlan0, 192.0.2.7, wwan0=backup or tun0=never";
	out->count++;
	return NULL;
}

const char *path_wish_format(const struct path_wish *wish, char buf[static SOCKADDR_STRLEN])
{
	const struct prefix whole = { .address = wish->address, .length = 128 };

	return *wish->device ? strcpy(buf, wish->device) : prefix_format(&whole, buf);
}

const char *path_use_name(enum path_use use)
{
	return use_names[use];
}

static bool names_one_as(const struct path_preferences *wanted, enum path_use least)
{
	for (size_t i = 0; i < wanted->count; i++)
		if (wanted->wishes[i].use >= least)
			return true;
	return false;
}

bool path_preferences_forbid(const struct path_preferences *wanted)
{
	return names_one_as(wanted, PATH_USE_NEVER);
}

bool path_preferences_restrict(const struct path_preferences *wanted)
{
	return names_one_as(wanted, PATH_USE_BACKUP);
}

enum path_use path_preferences_of(const struct path_preferences *wanted, const char *device, const struct in6_addr *address,
			      uint8_t *preference)
{
	enum path_use strictest = PATH_USE_ORDERED;

	*preference = PATH_PREFERENCE_NONE;
	for (size_t i = 0; i < wanted->count; i++) {
		const struct path_wish *wish = &wanted->wishes[i];

		if (*wish->device ? strcmp(wish->device, device) != 0 : memcmp(&wish->address, address, sizeof(*address)) != 0)
			continue;
		if (wish->use > strictest)
			strictest = wish->use;
		if (wish->use == PATH_USE_ORDERED && *preference == PATH_PREFERENCE_NONE)
			*preference = (uint8_t)i;
	}
	if (strictest != PATH_USE_ORDERED)
		*preference = PATH_PREFERENCE_NONE;
	return strictest;
}

#define SEPARATORS ", \t\n"

/* Notes what is wrong with a setting, in words for the user. Returns false. */
static bool __attribute__((format(printf, 2, 3))) problem(struct settings *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(out->problem, sizeof(out->problem), format, args);
	va_end(args);
	return false;
}

static bool port_read(uint16_t *port, const char *text)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < 1 || value > 65535)
		return false;
	*port = (uint16_t)value;
	return true;
}

/* Does @name have only letters, digits, hyphens, dots and underscores, and begin with neither a hyphen nor a dot? */
static bool name_is_plausible(const char *name)
{
	if (!*name || *name == '-' || *name == '.')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("-._", *name))
			return false;
	return true;
}

static const char wrong_converter[] = "is neither an address nor a name; "
				      "say 192.0.2.1, [2001:db8::1]:1234 or converter.example";

/* Checks a name that begins with an underscore, which is a service's and not a host's. Returns NULL, or the error. */
static const char *service_check(struct settings_converter *out, bool has_port)
{
	if (!srv_is_service(out->name) || !name_is_plausible(out->name))
		return "is no service of converters; "
		       "say _convert._tcp.example, or the name of a host";
	if (has_port)
		return "is a service, and its SRV records have the ports; say it without one";
	out->port = 0;
	return NULL;
}

/* Reads one element of CONVERT_ADDR. Returns NULL, or words about the error that complete "X …". */
static const char *converter_read(struct settings_converter *out, const char *text, uint16_t port)
{
	char *colon;

	memset(out, 0, sizeof(*out));
	if (sockaddr_ip_parse(&out->addr, text, port) == 0) {
		out->port = sockaddr_ip_port(&out->addr);
		return NULL;
	}
	out->addr.sa.sa_family = AF_UNSPEC;
	out->port = port;
	if (strlen(text) >= sizeof(out->name))
		return wrong_converter;
	strcpy(out->name, text);
	colon = strchr(out->name, ':');
	if (colon)
		*colon = '\0';
	if (out->name[0] == '_')
		return service_check(out, colon);
	if (colon && !port_read(&out->port, colon + 1))
		return wrong_converter;
	/* digits and dots that are no address are a typing error; don't ask DNS for them */
	if (!out->name[strspn(out->name, "0123456789.")])
		return wrong_converter;
	return name_is_plausible(out->name) ? NULL : wrong_converter;
}

static bool converter_add(struct settings *out, const char *text, const void *port)
{
	const char *wrong;

	if (out->converter_count == SETTINGS_CONVERTERS_MAX)
		return problem(out, "CONVERT_ADDR: more than %d converters; remove \"%.60s\"", SETTINGS_CONVERTERS_MAX, text);
	wrong = converter_read(&out->converters[out->converter_count], text,
			       *(const uint16_t *)port);
	if (wrong)
		return problem(out, "CONVERT_ADDR: \"%.60s\" %s", text, wrong);
	out->converter_count++;
	return true;
}

static bool bypass_add(struct settings *out, const char *text, const void *unused)
{
	(void)unused;
	if (out->bypass_count == SETTINGS_BYPASS_MAX)
		return problem(out, "CONVERT_BYPASS: more than %d rules; remove \"%.60s\"", SETTINGS_BYPASS_MAX, text);
	if (prefix_rule_parse(&out->bypass[out->bypass_count], text) < 0)
		return problem(out, "CONVERT_BYPASS: \"%.60s\" is no prefix and no port; say 10.0.0.0/8, [2001:db8::/32]:443 or :8000-8999",
			       text);
	out->bypass_count++;
	return true;
}

static bool path_add(struct settings *out, const char *text, const void *unused)
{
	const char *wrong = path_preferences_add(&out->paths, text);

	(void)unused;
	return !wrong || problem(out, "CONVERT_PATHS: \"%.60s\" %s", text, wrong);
}

/* Calls @add with each element; returns false as soon as @add does, which has noted the problem. */
static bool list_read(struct settings *out, const char *list, const void *arg,
		      bool (*add)(struct settings *out, const char *text, const void *arg))
{
	char text[SETTINGS_NAME_MAX + sizeof("[]:65535")];

	while (*(list += strspn(list, SEPARATORS))) {
		size_t len = strcspn(list, SEPARATORS);

		/* cut an element that is longer than any valid one; @add refuses the rest */
		snprintf(text, sizeof(text), "%.*s", (int)(len < sizeof(text) ? len : sizeof(text)), list);
		if (!add(out, text, arg))
			return false;
		list += len;
	}
	return true;
}

static bool port_setting_read(struct settings *out, const char *text, uint16_t *port)
{
	if (!text || !*text || port_read(port, text))
		return true;
	return problem(out, "CONVERT_PORT: \"%.40s\" is not a port; say a number from 1 to 65535", text);
}

static bool cookie_read(struct settings *out, const char *cookie)
{
	size_t len = cookie ? strlen(cookie) : 0;

	if (len > sizeof(out->cookie))
		return problem(out, "CONVERT_COOKIE has %zu bytes; %zu are the most", len, sizeof(out->cookie));
	if (len)
		memcpy(out->cookie, cookie, len);
	out->cookie_len = len;
	return true;
}

/* Copies a path. open() would fail for one that is too long, so it counts as none. */
static void path_read(char out[SETTINGS_PATH_MAX], const char *path)
{
	if (path && strlen(path) < SETTINGS_PATH_MAX)
		strcpy(out, path);
}

/* Reads seconds, such as "3" or "0.5". Doesn't use strtod(), whose decimal point is the locale's. */
static bool timeout_read(struct settings *out, const char *text)
{
	long seconds, ms = 0;
	char *end;

	out->timeout_ms = SETTINGS_TIMEOUT_DEFAULT_MS;
	if (!text || !*text)
		return true;
	errno = 0;
	seconds = strtol(text, &end, 10);
	if (!errno && isdigit((unsigned char)*text) && *end == '.')
		for (long unit = 100; isdigit((unsigned char)*++end); unit /= 10)
			ms += (*end - '0') * unit;
	if (!errno && isdigit((unsigned char)*text) && !*end && seconds <= SETTINGS_TIMEOUT_MAX_SECONDS &&
	    seconds * 1000 + ms > 0) {
		out->timeout_ms = (int)(seconds * 1000 + ms);
		return true;
	}
	return problem(out, "CONVERT_TIMEOUT: \"%.40s\" is not a time; say seconds, from 0.001 to %d", text, SETTINGS_TIMEOUT_MAX_SECONDS);
}

/* Reads a variable with the value @yes or @no; leaves *@value as it is if it is unset or empty. */
static bool choice_read(struct settings *out, const char *name, const char *text, const char *yes, const char *no, bool *value)
{
	if (!text || !*text)
		return true;
	*value = strcmp(text, yes) == 0;
	if (*value || strcmp(text, no) == 0)
		return true;
	return problem(out, "%s: \"%.40s\" is neither %s nor %s", name, text, no, yes);
}

static bool switch_read(struct settings *out, const char *name, const char *text, bool *value)
{
	return choice_read(out, name, text, "1", "0", value);
}

static bool withholding_read(struct settings *out, const char *text)
{
	unsigned long ms;
	char *end;

	if (!text || !*text)
		return true;
	errno = 0;
	ms = strtoul(text, &end, 10);
	if (!errno && isdigit((unsigned char)*text) && !*end && ms <= SETTINGS_WITHHELD_MAX_MS) {
		out->withheld_ms = (int)ms;
		return true;
	}
	return problem(out, "CONVERT_WITHHOLDING: \"%.40s\" is not a time in milliseconds from 0 to %d", text, SETTINGS_WITHHELD_MAX_MS);
}

static bool cache_read(struct settings *out, const char *text)
{
	path_read(out->cache, text);
	if (!text || !*text || strcmp(text, "none") == 0 || (*text == '/' && *out->cache))
		return true;
	return problem(out, "CONVERT_CACHE: \"%.40s\" is neither an absolute path nor none", text);
}

void settings_read(struct settings *out, settings_lookup *lookup)
{
	const char *list = lookup("CONVERT_ADDR"), *bypass = lookup("CONVERT_BYPASS");
	const char *paths = lookup("CONVERT_PATHS");
	uint16_t port = SETTINGS_PORT_DEFAULT;

	out->bypass_mptcp = out->silence = true;
	out->withheld_ms = SETTINGS_WITHHELD_LEARNED;
	out->timeout_ms = SETTINGS_TIMEOUT_DEFAULT_MS; /* also if not enabled: the process may inherit pending connections */
	path_read(out->log, lookup("CONVERT_LOG"));
	path_read(out->runtime_dir, lookup("XDG_RUNTIME_DIR"));
	if (!list) {
		problem(out, "CONVERT_ADDR is not set: set it to the converter's address");
		return;
	}
	if (!port_setting_read(out, lookup("CONVERT_PORT"), &port) ||
	    !list_read(out, list, &port, converter_add) ||
	    !list_read(out, bypass ? bypass : "", NULL, bypass_add) ||
	    !list_read(out, paths ? paths : "", NULL, path_add) ||
	    !cookie_read(out, lookup("CONVERT_COOKIE")) ||
	    !choice_read(out, "CONVERT_FALLBACK", lookup("CONVERT_FALLBACK"), "none", "direct", &out->fail_closed) ||
	    !timeout_read(out, lookup("CONVERT_TIMEOUT")) ||
	    !withholding_read(out, lookup("CONVERT_WITHHOLDING")) ||
	    !choice_read(out, "CONVERT_SILENCE", lookup("CONVERT_SILENCE"), "auto", "never", &out->silence) ||
	    !cache_read(out, lookup("CONVERT_CACHE")) ||
	    !switch_read(out, "CONVERT_EARLY_DATA", lookup("CONVERT_EARLY_DATA"), &out->early_data) ||
	    !switch_read(out, "CONVERT_BYPASS_MPTCP", lookup("CONVERT_BYPASS_MPTCP"),
			 &out->bypass_mptcp) ||
	    !switch_read(out, "CONVERT_BESIDE_VPN", lookup("CONVERT_BESIDE_VPN"), &out->beside_vpn) ||
	    !switch_read(out, "CONVERT_WARN", lookup("CONVERT_WARN"), &out->warn))
		return;
	out->enabled = out->converter_count || problem(out, "CONVERT_ADDR is empty: set it to the converter's address");
}

/* --- which connections are converted --- */

static const char *const reasons[] = {
	[POLICY_CONVERT] = "converted",
	[POLICY_DIRECT_DISABLED] = "no converter is configured",
	[POLICY_DIRECT_LOCAL] = "the destination is this host",
	[POLICY_DIRECT_LINK] = "a link-local address means nothing to the converter",
	[POLICY_DIRECT_GROUP] = "the destination is a multicast or broadcast address",
	[POLICY_DIRECT_CONVERTER] = "the destination is the converter itself",
	[POLICY_DIRECT_RESOLVER] = "it looks up the converter's address",
	[POLICY_DIRECT_BYPASS] = "CONVERT_BYPASS says so",
	[POLICY_DIRECT_SIGNALS] = "the program waits for signals, and Multipath TCP sends none",
};
static_assert(sizeof(reasons) / sizeof(reasons[0]) == POLICY_VERDICT_COUNT,
	      "a reason for each verdict");

static enum policy_verdict decide_ipv4(const uint8_t a[4])
{
	static const uint8_t broadcast[4] = { 255, 255, 255, 255 };

	if (a[0] == 127 || a[0] == 0) /* Linux connects 0.0.0.0 to itself */
		return POLICY_DIRECT_LOCAL;
	if (a[0] == 169 && a[1] == 254)
		return POLICY_DIRECT_LINK;
	if ((a[0] & 0xf0) == 224 || !memcmp(a, broadcast, sizeof(broadcast)))
		return POLICY_DIRECT_GROUP;
	return POLICY_CONVERT;
}

static enum policy_verdict decide_ipv6(const struct in6_addr *a)
{
	if (IN6_IS_ADDR_LOOPBACK(a) || IN6_IS_ADDR_UNSPECIFIED(a))
		return POLICY_DIRECT_LOCAL;
	if (IN6_IS_ADDR_LINKLOCAL(a))
		return POLICY_DIRECT_LINK;
	if (IN6_IS_ADDR_MULTICAST(a))
		return POLICY_DIRECT_GROUP;
	return POLICY_CONVERT;
}

/* Includes those of convertd's built-in denials (convertd/policy/access.c) that servers are known to use as addresses. */
bool policy_is_private(const union sockaddr_ip *destination)
{
	const struct in6_addr in6 = sockaddr_ip_in6(destination);
	const uint8_t *a = &in6.s6_addr[12];

	if (!IN6_IS_ADDR_V4MAPPED(&in6))
		return (in6.s6_addr[0] & 0xfe) == 0xfc;
	return a[0] == 10 || (a[0] == 100 && (a[1] & 0xc0) == 64) || (a[0] == 172 && (a[1] & 0xf0) == 16) || (a[0] == 192 && a[1] == 168) ||
	       (a[0] == 198 && (a[1] & 0xfe) == 18);
}

bool policy_is_converter(const union sockaddr_ip *converter, const union sockaddr_ip *destination)
{
	struct in6_addr a, b;

	if (converter->sa.sa_family == AF_UNSPEC)
		return false;
	a = sockaddr_ip_in6(converter);
	b = sockaddr_ip_in6(destination);
	return IN6_ARE_ADDR_EQUAL(&a, &b);
}

enum policy_verdict policy_decide(const struct settings *settings,
				  const union sockaddr_ip *destination)
{
	struct in6_addr in6 = sockaddr_ip_in6(destination);
	enum policy_verdict verdict;

	if (!settings->enabled)
		return POLICY_DIRECT_DISABLED;
	verdict = IN6_IS_ADDR_V4MAPPED(&in6) ? decide_ipv4(&in6.s6_addr[12]) : decide_ipv6(&in6);
	if (verdict != POLICY_CONVERT)
		return verdict;
	for (size_t i = 0; i < settings->converter_count; i++)
		if (policy_is_converter(&settings->converters[i].addr, destination))
			return POLICY_DIRECT_CONVERTER;
	for (size_t i = 0; i < settings->bypass_count; i++)
		if (prefix_rule_matches(&settings->bypass[i], destination))
			return POLICY_DIRECT_BYPASS;
	return POLICY_CONVERT;
}

const char *policy_reason(enum policy_verdict verdict)
{
	return reasons[verdict];
}
