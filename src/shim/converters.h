/* SPDX-License-Identifier: BSD-3-Clause */
/* converters.h - the configured converters, their addresses, and what was learned of them */
#ifndef SHIM_CONVERTERS_H
#define SHIM_CONVERTERS_H

#include "client/policy.h"
#include "convert/convert.h"

/* Takes over the numeric addresses. Once, before any other call. */
void converters_init(const struct settings *settings);

/*
 * converters_choose() - the converter for a connection to @destination
 * @family: of the application's socket; @v6only: it takes no v4-mapped address
 * @out: the address to send the SYN to, in the socket's family
 *
 * Names are resolved at the first call that gets to them. Returns the converter's index,
 * or -1 with a static text in @reason: if @verdict is still POLICY_CONVERT then none can be
 * used now, else the destination is a converter that was configured by name.
 */
int converters_choose(const struct settings *settings, const union sockaddr_ip *destination,
		      int family, bool v6only, union sockaddr_ip *out,
		      enum policy_verdict *verdict, const char **reason);

/* Leave this converter alone for @seconds. */
void converters_rest(int index, unsigned int seconds);

/*
 * Data in the SYN that is not acknowledged costs a connection its MPTCP (it falls
 * back), so that after CONVERTERS_SYN_DATA_MISSES in a row the request follows the
 * handshake instead, for one round trip more.
 */
#define CONVERTERS_SYN_DATA_MISSES 2
bool converters_take_syn_data(int index);
void converters_note_syn_data(int index, bool taken);

/*
 * Cookies (Section 6.2.7). One that a converter has given replaces the configured one for
 * the rest of the process. A request is written with a certain cookie, by its number, so
 * that a request which is sent in two parts stays the same when another is learned
 * in between.
 */
#define CONVERTERS_COOKIE_MAX 992 /* bytes that fit into a request beside a Connect TLV */
typedef uint8_t converters_cookie_number;

/* The number of the cookie to use now. */
converters_cookie_number converters_cookie_current(int index);

/* Its bytes, length 0 for none. */
struct convert_span converters_cookie(const struct settings *settings, int index,
				      converters_cookie_number number);

/* Keeps a cookie that converter @index gave; false if it is too long to be used. */
bool converters_learn_cookie(int index, struct convert_span cookie);

#endif
