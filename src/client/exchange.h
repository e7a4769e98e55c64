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

#include "client/converters.h"
#include "client/handshake.h"
#include "client/paths_facts.h"
#include "client/ride.h"
#include "client/settings.h"

/*
 * exchange_bypasses() - is @server better reached without a converter, over Multipath TCP all the way (Section 5.1)?
 * The user wants that, connections may go without a converter at all (CONVERT_FALLBACK), and the very converter that would be asked has
 * said that the server speaks Multipath TCP.
 */
bool exchange_bypasses(const struct settings *settings, const union sockaddr_ip *server);

/*
 * exchange_ask() - what a request says beside the server's address
 * Whether the server speaks Multipath TCP is asked once, by connections that could use it directly, which are those
 * over Multipath TCP (@mptcp); a silent request that asks has a response if it does. What the converter supports is asked until it
 * is proven, and not where the user has said whether it withholds SYNs: the SYN+ACK confirms no server to a request that asks. It is
 * asked again where it took silent requests some time ago.
 *
 * The request is silent where all of this lets it be: the converter takes silent requests, isn't asked what it supports, and Multipath
 * TCP holds, at which the front end won't look again behind the SYN+ACK. The front end has to clear ask.silent where not all of the
 * request goes into a SYN.
 */
struct handshake_ask exchange_ask(const struct settings *settings, int converter, const union sockaddr_ip *server,
				  bool mptcp, converters_cookie_number number);

/*
 * exchange_keeps_mptcp() - will a connection that is Multipath TCP at its SYN+ACK stay that?
 * It did lately, or the user says so by CONVERT_WITHHOLDING. Otherwise the SYN+ACK confirms no server over Multipath TCP.
 */
bool exchange_keeps_mptcp(const struct settings *settings, int converter);

/*
 * exchange_ask_blindly() - make a blind request of @ask, of exchange_ask(), for a connection whose response can't be taken off
 * What was to be asked of the server isn't asked then. Returns false, with nothing changed, if the converter isn't known to take
 * blind requests, or has to be asked what it takes.
 */
bool exchange_ask_blindly(const struct settings *settings, int converter, struct handshake_ask *ask);

/*
 * exchange_hold_ms() - for how long at most may the SYN of a request on @path be withheld, handshake_ask's hold_ms?
 * For so long that its SYN+ACK comes before the kernel sends it again, or, if the request is @numbered (handshake_ask's attempt), before
 * the front end makes it again. Milliseconds. 0: nothing is to be said, since that is no less than what the converter withholds SYNs for,
 * or it doesn't understand, the path's round trip isn't known, or without Multipath TCP (@mptcp) a SYN that is sent again does no harm.
 * Only a request that goes into a SYN, and doesn't ask what the converter supports, has a use for it.
 */
unsigned int exchange_hold_ms(const struct settings *settings, const struct path_id *path, bool mptcp, bool numbered);

/*
 * exchange_ride_failed() - the ride before @next, by @path, has failed: keeps what that says of the way to the converter
 * @syn_at: when the SYN was sent, CLOCK_MONOTONIC in ns
 */
void exchange_ride_failed(const struct path_id *path, enum ride next, int64_t syn_at);

/* The server was reached, over Multipath TCP to the converter if @mptcp; @told is the response. */
void exchange_done(int converter, const union sockaddr_ip *server, const struct handshake_step *told, bool mptcp);

/*
 * exchange_done_silently() - the server was reached, as the SYN+ACK to a silent request has said: ride_is_silent()
 * @asked_mptcp: the request asked whether the server speaks Multipath TCP. It doesn't, or there would have been a response.
 * Nothing else is learned from it, not even that it is a converter which has answered.
 */
void exchange_done_silently(int converter, const union sockaddr_ip *server, bool asked_mptcp);

/*
 * exchange_reset_silently() - a connection that was made so was reset
 * The server may have done so, or the converter, because Multipath TCP was lost behind the handshake, at which no client looks
 * then: doc/private-tlvs.md. The next request is one with an answer, which tells.
 */
void exchange_reset_silently(int converter);

/*
 * exchange_take_remedy() - may the same request succeed, after the error @told?
 * With a cookie that the converter wants (once for each connection: *@cookie_asked is set), without the TCP option that
 * it doesn't support (*@ask_mptcp is cleared), without a Hold Time TLV, which it doesn't understand (exchange_hold_ms() returns 0 from
 * then on), or without the cookie that it gave once and refuses now: its number was @number.
 * Where a silent request (*@silent) was followed by no response, though one was due, it may succeed if it isn't silent (*@silent
 * is cleared): the two ends weren't of one mind, or nobody at that address knows of silence. @told may be what
 * handshake_on_close() or handshake_on_error() has made of the end of such a stream.
 */
bool exchange_take_remedy(int converter, converters_cookie_number number, const struct handshake_step *told,
			  bool *cookie_asked, bool *ask_mptcp, bool *silent);

/* It failed for @why, and there is no remedy: the converter isn't asked for why->rest seconds, or not for @server. */
void exchange_failed(int converter, const union sockaddr_ip *server, const struct handshake_step *why);

/*
 * exchange_silent() - nothing, or not all of a response, came in time
 * The converter has to prove itself again. @alive: its host acknowledges what it is sent, and nothing has come.
 * Returns why the exchange failed, for exchange_failed().
 */
struct handshake_step exchange_silent(int converter, const union sockaddr_ip *server, bool alive);

#endif
