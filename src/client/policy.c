/* SPDX-License-Identifier: BSD-3-Clause */
/* policy.c - which connections are converted */
#include "config.h"

#include "client/policy.h"

#include <assert.h>
#include <string.h>

static const char *const reasons[] = {
	[POLICY_CONVERT] = "converted",
	[POLICY_DIRECT_DISABLED] = "no converter is configured",
	[POLICY_DIRECT_LOCAL] = "the destination is this host",
	[POLICY_DIRECT_LINK] = "a link-local address means nothing to the converter",
	[POLICY_DIRECT_GROUP] = "the destination is a multicast or broadcast address",
	[POLICY_DIRECT_CONVERTER] = "the destination is the converter itself",
	[POLICY_DIRECT_RESOLVER] = "it is to find the converter's address",
	[POLICY_DIRECT_BYPASS] = "CONVERT_BYPASS says so",
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

/* Those of convertd's built-in denials (convertd/policy/access.c) that are in use as addresses of servers, as far as anybody knows. */
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
