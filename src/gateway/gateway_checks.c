/* SPDX-License-Identifier: BSD-3-Clause */
/* gateway_checks.c - finds what on this host would keep a gateway from working as its settings say */
#include "config.h"

#include "gateway/gateway_checks.h"

#include "common/os.h"
#include "host/lookup.h"

#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A sysctl that has to have a bit, or the value 1, and for whom. */
static const struct {
	const char *name, *remedy;
	bool lan; /* only for hosts behind this one */
	const char *otherwise;
} sysctls[] = {
	{ "net.mptcp.enabled", "net.mptcp.enabled=1", false, "connections to the converter use one network" },
	{ "net.ipv4.tcp_fastopen", "net.ipv4.tcp_fastopen=1", false, "each connection takes a round trip more" },
	{ "net.ipv4.ip_forward", "net.ipv4.ip_forward=1", true, "this host forwards nothing, and converts nothing of hosts behind it" },
	{ "net.ipv6.conf.all.forwarding", "net.ipv6.conf.all.forwarding=1", true, "it forwards no IPv6, and converts none of hosts behind it" },
};

static void tell(gateway_warn *warn, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void tell(gateway_warn *warn, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	warn(text);
}

static void check_interfaces(const struct gateway_settings *settings, gateway_warn *warn)
{
	for (size_t i = 0; i < settings->lan_count; i++)
		if (!if_nametoindex(settings->lan[i]))
			tell(warn, "there is no interface %s yet (see: ip link); its hosts' connections are converted once there is", settings->lan[i]);
}

static bool is_lan(const struct gateway_settings *settings, const char *device)
{
	for (size_t i = 0; i < settings->lan_count; i++)
		if (strcmp(settings->lan[i], device) == 0)
			return true;
	return false;
}

/* A converter that is reached through the LAN isn't beyond this router, so that its clients can reach it themselves. */
static void check_converters(const struct gateway_settings *settings, gateway_warn *warn)
{
	char device[IF_NAMESIZE], text[SOCKADDR_STRLEN];

	for (size_t i = 0; i < settings->client.converter_count; i++) {
		const struct settings_converter *converter = &settings->client.converters[i];
		struct host_way way = { 0 };

		if (converter->name[0])
			continue;
		host_way_ask(-1, &converter->addr, NULL, 0, &way);
		if (way.error)
			tell(warn, "there is no route to converter %s: all connections are routed", sockaddr_ip_format(&converter->addr, text));
		else if (if_indextoname(way.index, device) && is_lan(settings, device))
			tell(warn, "converter %s is reached by %s, where the clients are", sockaddr_ip_format(&converter->addr, text), device);
	}
}

void gateway_check_host(const struct gateway_settings *settings, gateway_warn *warn)
{
	for (size_t i = 0; i < sizeof(sysctls) / sizeof(sysctls[0]); i++) {
		const int value = sysctls[i].lan && !settings->lan_count ? 1 : sysctl_read(sysctls[i].name);

		if (value >= 0 && !(value & 1))
			tell(warn, "%s is %d: %s; set it with: sysctl -w %s", sysctls[i].name, value, sysctls[i].otherwise, sysctls[i].remedy);
	}
	check_interfaces(settings, warn);
	check_converters(settings, warn);
}
