/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loopback_policy.c - a shim that converts connections to this host as well, for tests whose servers are nowhere else
 *
 * Linked (by --wrap) with the very objects of libconvert.so; only the verdict on loopback addresses differs, and that a
 * request may have them (loopback_address.c). 0.0.0.0 and :: stay direct: they name no host to a converter.
 */
#include "config.h"

#include "client/settings.h"

enum policy_verdict __real_policy_decide(const struct settings *settings,
					 const union sockaddr_ip *destination);
enum policy_verdict __wrap_policy_decide(const struct settings *settings,
					 const union sockaddr_ip *destination);

static bool is_loopback(const union sockaddr_ip *address)
{
	struct in6_addr in6 = sockaddr_ip_in6(address);

	return IN6_IS_ADDR_LOOPBACK(&in6) ||
	       (IN6_IS_ADDR_V4MAPPED(&in6) && in6.s6_addr[12] == 127);
}

enum policy_verdict __wrap_policy_decide(const struct settings *settings,
					 const union sockaddr_ip *destination)
{
	enum policy_verdict verdict = __real_policy_decide(settings, destination);

	return verdict == POLICY_DIRECT_LOCAL && is_loopback(destination) ? POLICY_CONVERT : verdict;
}
