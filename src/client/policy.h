/* SPDX-License-Identifier: BSD-3-Clause */
/* policy.h - which connections are converted */
#ifndef CLIENT_POLICY_H
#define CLIENT_POLICY_H

#include "client/settings.h"

enum policy_verdict {
	POLICY_CONVERT,
	POLICY_DIRECT_DISABLED,   /* no usable configuration */
	POLICY_DIRECT_LOCAL,      /* loopback or unspecified: this host */
	POLICY_DIRECT_LINK,       /* link-local: has no meaning at the converter */
	POLICY_DIRECT_GROUP,      /* multicast or broadcast: Section 6.2.5 forbids them */
	POLICY_DIRECT_CONVERTER,  /* the converter itself */
	POLICY_DIRECT_RESOLVER,   /* it serves to find the converter's own address */
	POLICY_DIRECT_BYPASS,     /* a rule of CONVERT_BYPASS matches */
	POLICY_VERDICT_COUNT
};

/*
 * policy_decide() - what becomes of a connection to @destination
 * A pure function of its arguments. Converters that are names are not resolved
 * here: compare their addresses with policy_is_converter() when they are known.
 */
enum policy_verdict policy_decide(const struct settings *settings,
				  const union sockaddr_ip *destination);

/*
 * policy_is_private() - is it an address of a private network, or of a provider's own (RFC 1918, 4193, 6598, 2544)?
 * Converters refuse these as a rule, unless they are told to serve them, and the client often reaches them by itself.
 */
bool policy_is_private(const union sockaddr_ip *destination);

/* Is @destination on the host that has @converter's address, at whatever port? */
bool policy_is_converter(const union sockaddr_ip *converter,
			 const union sockaddr_ip *destination);

/* Why, in words that complete "not converted: …". */
const char *policy_reason(enum policy_verdict verdict);

#endif
