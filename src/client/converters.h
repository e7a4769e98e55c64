/* SPDX-License-Identifier: BSD-3-Clause */
/* converters.h - the addresses of the configured converters, and what was learned of each */
#ifndef CLIENT_CONVERTERS_H
#define CLIENT_CONVERTERS_H

#include "client/cache.h"
#include "client/handshake.h"
#include "client/policy.h"
#include "convert/convert.h"

#define CONVERTERS_MAX 32 /* addresses over all of CONVERT_ADDR; a bit each in conn.tried */

/* Takes over the numeric addresses. Once, before any other call. */
void converters_init(const struct settings *settings);

/* After fork(), whose child has none of the other threads. */
void converters_repair_in_child(void);

/* Who asks for a converter. */
struct converters_query {
	const union sockaddr_ip *destination;
	int family;     /* of the application's socket */
	bool v6only;    /* it takes no v4-mapped address */
	bool native;    /* nor should it: see address_for() */
	bool any;       /* the socket can be replaced by one of the other family */
	uint32_t tried; /* a bit for each converter that is out of the question */
	bool may_resolve;
};

/*
 * converters_choose() - the converter for a connection, in the order of CONVERT_ADDR
 * @out: the address to send the SYN to, in the socket's family unless @query->any
 *
 * Names are resolved at the first call that gets to them and may, and again when all of their
 * addresses are to be left alone. With CONVERT_FALLBACK=none one that is to be left alone is
 * better than none. Returns the converter's index, or CONVERTERS_UNRESOLVED if a name has to be
 * resolved first and may not, or CONVERTERS_NONE with a static text in @reason: if @verdict is still
 * POLICY_CONVERT then none can be used now, else the destination is a converter itself or serves
 * to find one.
 */
#define CONVERTERS_NONE (-1)
#define CONVERTERS_UNRESOLVED (-2)
int converters_choose(const struct settings *settings, const struct converters_query *query,
		      union sockaddr_ip *out, enum policy_verdict *verdict, const char **reason);

/*
 * converters_index() - the converter at @addr, which another process has chosen
 * It need not be a configured one; then it is never chosen here. CONVERTERS_NONE: no room.
 */
int converters_index(const union sockaddr_ip *addr);

/* Leave this converter alone for @seconds. */
void converters_rest(int index, unsigned int seconds);

/*
 * converters_refused() - it won't serve @destination: don't ask it for that for @seconds
 * A converter that refuses several destinations of one address family in a row, and serves none of it, isn't asked
 * for that family for a while: it may have no way there. Other processes don't ask it either.
 */
void converters_refused(int index, const union sockaddr_ip *destination, unsigned int seconds);

/*
 * converters_silent() - it is there, has never answered anything, and has said nothing of @destination
 * The caller refuses it for that destination. For other processes it is noted in the cache; when they find others
 * besides, the silence is no server's, and it is left alone altogether.
 */
void converters_silent(int index, const union sockaddr_ip *destination);

/*
 * converters_proved() - a valid response came from it
 * From now on, for an hour, its silence is the server's, who may take as long as with a direct
 * connection; until then it may as well be no converter, or a middlebox eats its responses
 * (Section 8). A converter that isn't proven is asked what it supports.
 */
void converters_proved(int index);
bool converters_is_proven(int index);

/*
 * converters_served() - it has reached @destination: refusals before that were about others
 * @told: its response, with the answer to an Info TLV if there was one
 */
void converters_served(int index, const union sockaddr_ip *destination, const struct handshake_step *told);

/*
 * converters_withholds_ms() - for how long at most does it withhold SYNs until the server has answered?
 * Milliseconds, 0: it doesn't, as far as is known, or as the user says. Then its SYN+ACK confirms nothing.
 */
unsigned int converters_withholds_ms(const struct settings *settings, int index);

/* It doesn't, or not always, whatever it says. */
void converters_withholds_nothing(int index);

/*
 * converters_corrects_windows() - may an MPTCP SYN to it carry data, if several paths come up?
 * Linux as a converter takes the window of such a SYN wrongly unless somebody corrects it, and a download
 * over several paths is slower than over one then (src/convertd/syn/syn_window.c). False unless the converter
 * has said so within a day, in its answer to an Info TLV, or the user says that it withholds SYNs.
 */
bool converters_corrects_windows(const struct settings *settings, int index);

/* It was silent for so long that it has to prove itself again. */
void converters_doubt(int index);

/* It wants no request for Multipath TCP towards the server (Unsupported TCP Option). */
void converters_note_no_mptcp(int index);
bool converters_take_mptcp(int index);

/*
 * Whether Multipath TCP gets through to it. Where it didn't, at the SYN+ACK or right behind the handshake, the
 * converter is asked over plain TCP for a while: a socket that falls back loses bytes (DESIGN.md). Where
 * it did lately, a connection need not wait for the converter's first bytes to be sure.
 */
enum cache_mptcp converters_mptcp(int index);
void converters_note_mptcp(int index, enum cache_mptcp verdict);

/*
 * Data in the SYN that is not acknowledged costs a connection its MPTCP (it falls
 * back), so that after CONVERTERS_SYN_DATA_MISSES in a row the request follows the
 * handshake instead, for one round trip more.
 */
#define CONVERTERS_SYN_DATA_MISSES 2
bool converters_take_syn_data(int index);
void converters_note_syn_data(int index, bool taken);

/*
 * Cookies (Section 6.2.7). One that a converter has given, to any process of the user, replaces
 * the configured one. A request is written with a certain cookie, by its number, so
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

/*
 * converters_use_cookie() - a request that another process has begun goes on with @cookie
 * Makes it the current one, in this process only, if it isn't. False if that can't be.
 */
bool converters_use_cookie(const struct settings *settings, int index, struct convert_span cookie);

/* Keeps a cookie that converter @index gave; false if it is too long to be used. */
bool converters_learn_cookie(int index, struct convert_span cookie);

/*
 * converters_forget_cookie() - the converter has refused a request with cookie @number
 * It has another key by now, or another address of ours. Returns false if that was no learned one.
 */
bool converters_forget_cookie(int index, converters_cookie_number number);

#endif
