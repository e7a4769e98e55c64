/* SPDX-License-Identifier: BSD-3-Clause */
/* converters_choice.h - which converter a connection is made through */
#ifndef CLIENT_CONVERTERS_CHOICE_H
#define CLIENT_CONVERTERS_CHOICE_H

#include "client/converters.h"
#include "client/policy.h"

/* What the choice depends on. */
struct converters_query {
	const union sockaddr_ip *destination;
	int family;       /* of the application's socket: AF_INET or AF_INET6 */
	bool v6only;      /* it takes no v4-mapped address */
	bool any;         /* the socket can be replaced by one of the other family */
	uint32_t tried;   /* a bit for each converter that is out of the question */
	bool may_resolve; /* the call may ask the resolver, which blocks */
};

/*
 * converters_choose() - the converter for a connection, in the order of CONVERT_ADDR
 * @out: the address to send the SYN to, in the socket's family unless @query->any
 *
 * Names are resolved at the first call that gets to them and may, and again when all of their
 * addresses are to be left alone. With CONVERT_FALLBACK=none a converter that is to be left alone is
 * better than none. Returns the converter's index, or CONVERTERS_UNRESOLVED if a name has to be
 * resolved first and may not, or CONVERTERS_NONE with a static text in @reason: if @verdict is still
 * POLICY_CONVERT then no converter can be used now, else the destination is a converter itself or serves
 * to find one.
 */
#define CONVERTERS_UNRESOLVED (-2)
int converters_choose(const struct settings *settings, const struct converters_query *query,
		      union sockaddr_ip *out, enum policy_verdict *verdict, const char **reason);

#endif
