/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.c - what the environment tells a Convert client, immutable once read */
#include "config.h"

#include "client/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS ", \t\n"

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

/* Letters, digits, hyphens, dots and underscores (SRV owners), not starting with a hyphen. */
static bool name_is_plausible(const char *name)
{
	if (!*name || *name == '-' || *name == '.')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("-._", *name))
			return false;
	return true;
}

/* One element of CONVERT_ADDR. */
static bool converter_read(struct settings_converter *out, const char *text, uint16_t port)
{
	char *colon;

	memset(out, 0, sizeof(*out));
	if (sockaddr_ip_parse(&out->addr, text, port) == 0) {
		out->port = sockaddr_ip_port(&out->addr);
		return true;
	}
	out->addr.sa.sa_family = AF_UNSPEC;
	out->port = port;
	if (strlen(text) >= sizeof(out->name))
		return false;
	strcpy(out->name, text);
	colon = strchr(out->name, ':');
	if (colon) {
		*colon = '\0';
		if (!port_read(&out->port, colon + 1))
			return false;
	}
	/* All digits and dots but no address: a typing error, not a name to ask DNS for. */
	if (!out->name[strspn(out->name, "0123456789.")])
		return false;
	return name_is_plausible(out->name);
}

static bool converters_read(struct settings *out, const char *list, uint16_t port)
{
	while (*(list += strspn(list, SEPARATORS))) {
		char text[SETTINGS_NAME_MAX + sizeof("[]:65535")];
		size_t len = strcspn(list, SEPARATORS);

		if (out->converter_count == SETTINGS_CONVERTERS_MAX) {
			snprintf(out->problem, sizeof(out->problem),
				 "CONVERT_ADDR: more than %d converters", SETTINGS_CONVERTERS_MAX);
			return false;
		}
		snprintf(text, sizeof(text), "%.*s", (int)len, list);
		if (len >= sizeof(text) ||
		    !converter_read(&out->converters[out->converter_count], text, port)) {
			snprintf(out->problem, sizeof(out->problem),
				 "CONVERT_ADDR: \"%.60s\" is neither an address nor a name; "
				 "say 192.0.2.1, [2001:db8::1]:1234 or converter.example",
				 text);
			return false;
		}
		out->converter_count++;
		list += len;
	}
	if (!out->converter_count)
		snprintf(out->problem, sizeof(out->problem),
			 "CONVERT_ADDR is empty: set it to the converter's address");
	return out->converter_count > 0;
}

void settings_read(struct settings *out, settings_lookup *lookup)
{
	const char *list = lookup("CONVERT_ADDR");
	const char *port_text = lookup("CONVERT_PORT");
	const char *cookie = lookup("CONVERT_COOKIE");
	uint16_t port = SETTINGS_PORT_DEFAULT;

	memset(out, 0, sizeof(*out));
	out->log = lookup("CONVERT_LOG");
	if (out->log && !*out->log)
		out->log = NULL;
	if (!list) {
		snprintf(out->problem, sizeof(out->problem),
			 "CONVERT_ADDR is not set: set it to the converter's address");
		return;
	}
	if (port_text && *port_text && !port_read(&port, port_text)) {
		snprintf(out->problem, sizeof(out->problem),
			 "CONVERT_PORT: \"%.40s\" is not a port; say a number from 1 to 65535",
			 port_text);
		return;
	}
	if (cookie && strlen(cookie) > sizeof(out->cookie)) {
		snprintf(out->problem, sizeof(out->problem),
			 "CONVERT_COOKIE has %zu bytes; %zu are the most", strlen(cookie),
			 sizeof(out->cookie));
		return;
	}
	if (!converters_read(out, list, port))
		return;
	if (cookie) {
		out->cookie_len = strlen(cookie);
		memcpy(out->cookie, cookie, out->cookie_len);
	}
	out->enabled = true;
}
