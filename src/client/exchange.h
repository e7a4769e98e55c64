/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange.h - one request to a converter and its response: what is asked, and what is learned from how it ends
 *
 * A front end chooses a converter (converters_choice.h), sends it what handshake_request() makes of exchange_ask(), shows
 * what comes to handshake_on_bytes(), and tells this module how it ended. The same request is made again where
 * exchange_take_remedy() says so; else, after a failure that isn't the server's, the next converter is chosen.
 *
 * @converter is an index everywhere, of converters_choose(); @server is the destination.
 */
#ifndef CLIENT_EXCHANGE_H
#define CLIENT_EXCHANGE_H

#include "client/converters_cookies.h"
#include "client/handshake.h"
#include "client/ride.h"
#include "client/settings.h"

/*
 * exchange_bypasses() - is @server better reached without a converter, over Multipath TCP all the way (Section 5.1)?
 * The user wants that, and the server is known to speak Multipath TCP itself.
 */
bool exchange_bypasses(const struct settings *settings, const union sockaddr_ip *server);

/*
 * exchange_ask() - what a request says beside the server's address
 * Whether the server speaks Multipath TCP is asked once, by connections that could use it directly, which are those
 * over Multipath TCP (@mptcp). What the converter supports is asked until it is proven, and not where the user has
 * said whether it withholds SYNs: the SYN+ACK confirms no server to a request that asks.
 */
struct handshake_ask exchange_ask(const struct settings *settings, int converter, const union sockaddr_ip *server,
				  bool mptcp, converters_cookie_number number);

/*
 * exchange_keeps_mptcp() - will a connection that is Multipath TCP at its SYN+ACK stay that?
 * It did lately, or the user says so by CONVERT_WITHHOLDING. Otherwise the SYN+ACK confirms no server over Multipath TCP.
 */
bool exchange_keeps_mptcp(const struct settings *settings, int converter);

/* The ride before @next has failed: keeps what that says of the way to the converter. */
void exchange_ride_failed(int converter, enum ride next);

/* The server was reached, over Multipath TCP to the converter if @mptcp; @told is the response. */
void exchange_done(int converter, const union sockaddr_ip *server, const struct handshake_step *told, bool mptcp);

/*
 * exchange_take_remedy() - may the same request succeed, after the error @told?
 * With a cookie that the converter wants (once for each connection: *@cookie_asked is set), without the TCP option that
 * it doesn't support (*@ask_mptcp is cleared), or without the cookie that it gave once and refuses now: its number was @number.
 */
bool exchange_take_remedy(int converter, converters_cookie_number number, const struct handshake_step *told,
			  bool *cookie_asked, bool *ask_mptcp);

/* It failed for @why, and there is no remedy: the converter isn't asked for why->rest seconds, or not for @server. */
void exchange_failed(int converter, const union sockaddr_ip *server, const struct handshake_step *why);

/*
 * exchange_silent() - nothing, or not all of a response, came in time
 * The converter has to prove itself again. @alive: its host acknowledges what it is sent, and nothing has come.
 * Returns why the exchange failed, for exchange_failed().
 */
struct handshake_step exchange_silent(int converter, const union sockaddr_ip *server, bool alive);

#endif
