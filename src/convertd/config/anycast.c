/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * anycast.c - checks that this host is set up for addresses that several converters share (no I/O)
 *
 * The problem. Routers that spread one address over several hosts (anycast, ECMP, a balancer with direct return:
 * doc/several-converters.md) choose by addresses and ports. The second subflow of a Multipath TCP connection has
 * other ones than the first, so it may reach another host, which knows nothing of that connection and resets it.
 *
 * So each host announces an address of its own (ADD_ADDR, RFC 8684 3.4.1), to which clients send further
 * subflows, and keeps them from sending any to the shared address by the C flag (RFC 8684 3.1,
 * net.mptcp.allow_join_initial_addr_port).
 *
 * For each part of this setup that is missing there is a warning that names the command to mend it. The check is made when
 * settings come into force, and again whenever routes or addresses change (surroundings.c): MPTCP endpoints are managed
 * by other programs, which change them while convertd runs. --check-config doesn't make it, as that looks only once, and
 * perhaps on another host.
 */
#include "config.h"

#include "convertd/config/anycast.h"

#include "convertd/base/listen_address.h"
#include "convertd/policy/own.h"

#include <linux/mptcp.h>
#include <string.h>

/* Subflows besides the first one: the least that two networks need, and the recommended number. */
#define SUBFLOWS_MIN 2
#define SUBFLOWS_WANTED 8

bool anycast_add(struct anycast *anycast, const char *text, const struct place *place,
		struct problems *problems)
{
	struct anycast_address *address = &anycast->address[anycast->count];
	char quote[PROBLEM_QUOTE_MAX];
	union sockaddr_ip parsed;

	problems_quote(text, quote);
	/* A written port can't be 0, so port 0 means that the text has none. */
	if (sockaddr_ip_parse(&parsed, text, 0) < 0 || sockaddr_ip_port(&parsed) != 0)
		problems_add(problems, place,
			     "%s is no numeric address without a port; write 192.0.2.1 or 2001:db8::1",
			     quote);
	else if (anycast->count == ANYCAST_MAX)
		problems_add(problems, place, "%s is one too many, the limit is %d", quote,
			     ANYCAST_MAX);
	else {
		*address = (struct anycast_address){ .address = parsed, .place = *place };
		anycast->count++;
		return true;
	}
	return false;
}

static bool same_address(const union sockaddr_ip *a, const union sockaddr_ip *b)
{
	struct in6_addr one = sockaddr_ip_in6(a), other = sockaddr_ip_in6(b);

	return IN6_ARE_ADDR_EQUAL(&one, &other);
}

static bool is_shared(const struct anycast *anycast, const union sockaddr_ip *address)
{
	for (size_t i = 0; i < anycast->count; i++)
		if (same_address(&anycast->address[i].address, address))
			return true;
	return false;
}

/* Tells whether a listener receives what is sent to @address. */
static bool is_listening(const struct anycast_facts *facts, const union sockaddr_ip *address)
{
	for (size_t i = 0; i < facts->listen_count; i++) {
		const union sockaddr_ip *at = &facts->listen[i].address;
		struct in6_addr in6 = sockaddr_ip_in6(at);
		bool v4_any = at->sa.sa_family == AF_INET && at->in.sin_addr.s_addr == INADDR_ANY;

		if (IN6_IS_ADDR_UNSPECIFIED(&in6) || same_address(at, address) ||
		    (v4_any && sockaddr_ip_is_v4(address)))
			return true;
	}
	return false;
}

/* Finds an address of this host's own that is announced to clients of this family. Returns NULL without one. */
static const struct mptcp_endpoint *find_own(const struct anycast *anycast,
				       const struct anycast_facts *facts, bool v4)
{
	for (size_t i = 0; i < facts->endpoints->count; i++) {
		const struct mptcp_endpoint *endpoint = &facts->endpoints->endpoint[i];

		if (endpoint->flags & MPTCP_PM_ADDR_FLAG_SIGNAL && !endpoint->foreign &&
		    sockaddr_ip_is_v4(&endpoint->address) == v4 &&
		    !is_shared(anycast, &endpoint->address))
			return endpoint;
	}
	return NULL;
}

static void check_address(const struct anycast *anycast, const struct anycast_address *address,
			  const struct anycast_facts *facts, struct problems *warnings)
{
	bool v4 = sockaddr_ip_is_v4(&address->address);
	const struct mptcp_endpoint *own = find_own(anycast, facts, v4);
	union sockaddr_ip with_port;
	char text[SOCKADDR_STRLEN];

	if (!own) {
		problems_add(warnings, &address->place,
			     "no IPv%c address of this node's own is announced, so that second "
			     "subflows don't find it; announce one with: ip mptcp endpoint add "
			     "ADDRESS dev DEVICE signal",
			     v4 ? '4' : '6');
		return;
	}
	/* If an endpoint has a port, the kernel itself listens there. */
	if (sockaddr_ip_port(&own->address) || is_listening(facts, &own->address))
		return;
	with_port = own->address;
	sockaddr_ip_set_port(&with_port, sockaddr_ip_port(&facts->listen[0].address));
	problems_add(warnings, &address->place,
		     "convertd doesn't listen on %s, which this node announces, so that second "
		     "subflows are refused; add --listen %s, or listen on [::]",
		     sockaddr_ip_format(&with_port, text), text);
}

/* Tells whether a NAT translates @address to this host. */
static bool is_translated(const struct anycast_facts *facts, const struct in6_addr *address)
{
	return facts->own && own_is_told(facts->own, address);
}

/* Warns of endpoints with addresses that aren't this host's, as when the configuration of another host was copied. */
static void check_foreign(const struct place *place, const struct anycast_facts *facts,
			  struct problems *warnings)
{
	for (size_t i = 0; i < facts->endpoints->count; i++) {
		const struct mptcp_endpoint *endpoint = &facts->endpoints->endpoint[i];
		struct in6_addr address = sockaddr_ip_in6(&endpoint->address);
		struct prefix single = prefix_of(&address, 128);
		char text[PREFIX_STRLEN];

		if (endpoint->foreign && endpoint->flags & MPTCP_PM_ADDR_FLAG_SIGNAL &&
		    !is_translated(facts, &address))
			problems_add(warnings, place,
				     "%s is announced, but is no address of this node's, so that "
				     "second subflows reach another one (unless a NAT translates "
				     "it to this node: then add --own-address %s); take it away "
				     "with: ip mptcp endpoint delete id %u",
				     prefix_format(&single, text), text, endpoint->id);
	}
}

/* Warns of a shared address that isn't this host's: the kernel drops or forwards what clients send there. */
static void check_local(const struct anycast_address *address, const struct anycast_facts *facts,
			struct problems *warnings)
{
	struct in6_addr in6 = sockaddr_ip_in6(&address->address);
	struct prefix single = prefix_of(&in6, 128);
	char text[PREFIX_STRLEN];

	if (!facts->is_local || facts->is_local(facts->is_local_arg, &in6) ||
	    is_translated(facts, &in6))
		return;
	prefix_format(&single, text);
	problems_add(warnings, &address->place,
		     "%s is no address of this node's, so that nothing that clients send there reaches "
		     "convertd (unless a NAT translates it to this node: then add --own-address %s); add it "
		     "with: ip address add %s dev lo",
		     text, text, text);
}

/* Warns of a low limit of subflows: the first one goes to the shared address, and each network of a client takes one more. */
static void check_limit(const struct place *place, const struct endpoints *endpoints,
			struct problems *warnings)
{
	if (endpoints->subflow_limit < SUBFLOWS_MIN)
		problems_add(warnings, place,
			     "a connection may have %u subflows besides its first one, so that "
			     "clients can't use all of their networks; allow more with: ip mptcp "
			     "limits set subflows %u",
			     endpoints->subflow_limit, SUBFLOWS_WANTED);
}

/* Warns if the C flag is set though no address is shared: the sysctl was left behind, or --shared-address is missing. */
static void check_unshared(const struct anycast_facts *facts, struct problems *warnings)
{
	static const struct place nowhere;

	if (!facts->endpoints)
		return;
	check_foreign(&nowhere, facts, warnings);
	if (facts->allow_join_initial)
		return;
	for (size_t i = 0; i < facts->endpoints->count; i++)
		if (facts->endpoints->endpoint[i].flags & MPTCP_PM_ADDR_FLAG_SIGNAL)
			return;
	problems_add(warnings, &nowhere,
		     "net.mptcp.allow_join_initial_addr_port is 0 and no address is announced: clients "
		     "use one path only; set it to 1 with sysctl -w, or announce an address with: ip "
		     "mptcp endpoint add ADDRESS dev DEVICE signal");
}

void anycast_check(const struct anycast *anycast, const struct anycast_facts *facts,
		  struct problems *warnings)
{
	if (!anycast->count) {
		check_unshared(facts, warnings);
		return;
	}
	if (facts->endpoints) {
		check_foreign(&anycast->address[0].place, facts, warnings);
		check_limit(&anycast->address[0].place, facts->endpoints, warnings);
	}
	if (facts->allow_join_initial > 0)
		problems_add(warnings, &anycast->address[0].place,
			     "net.mptcp.allow_join_initial_addr_port is %d: clients send second "
			     "subflows to the shared address, where they reach any node; set it "
			     "with: sysctl -w net.mptcp.allow_join_initial_addr_port=0",
			     facts->allow_join_initial);
	for (size_t i = 0; i < anycast->count; i++)
		check_local(&anycast->address[i], facts, warnings);
	for (size_t i = 0; facts->endpoints && i < anycast->count; i++) {
		bool seen = false;

		for (size_t j = 0; j < i; j++)
			seen |= sockaddr_ip_is_v4(&anycast->address[j].address) ==
				sockaddr_ip_is_v4(&anycast->address[i].address);
		if (!seen)
			check_address(anycast, &anycast->address[i], facts, warnings);
	}
}
