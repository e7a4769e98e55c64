/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange.h - one request to a converter and its response: the content of the request, and the lessons of its outcome
 *
 * A front end chooses a converter (converters_choose()), builds a request from exchange_ask() with handshake_request(), passes the response
 * to handshake_on_bytes(), and reports the outcome to this module. It repeats the request if exchange_take_remedy() says so; after another
 * failure that isn't the server's it chooses the next converter.
 *
 * @converter is always an index of converters_choose(), @path the path to one; @server is the destination.
 */
#ifndef CLIENT_EXCHANGE_H
#define CLIENT_EXCHANGE_H

#include "client/converters.h"
#include "client/handshake.h"
#include "client/paths.h"
#include "client/settings.h"

/*
 * exchange_bypasses() - is @server better reached without a converter, over Multipath TCP all the way (Section 5.1)?
 * Yes if the user wants that, CONVERT_FALLBACK allows connections without a converter, CONVERT_PATHS has neither =never nor =backup, and
 * the converter that we would ask has said that the server speaks Multipath TCP.
 */
bool exchange_bypasses(const struct settings *settings, const union sockaddr_ip *server);

/*
 * exchange_ask() - choose the content of a request beside the server's address
 * We ask once whether the server speaks Multipath TCP, and only over Multipath TCP (@mptcp), since only such connections could go to the
 * server directly. If the server does, even a silent request that asks this gets a response. We ask for the converter's supported
 * extensions until the converter is proven, and again if it took silent requests some time ago. We don't if the user has said that
 * converters withhold SYNs, because the SYN+ACK to a request with an Info TLV confirms no server.
 *
 * The request is silent if the converter takes silent requests, the request doesn't ask for the supported extensions, and Multipath TCP
 * holds, so that the front end won't check it again behind the SYN+ACK. The front end must clear ask.silent if a part of the request
 * doesn't fit into a SYN, and set ask.cookie.
 */
struct handshake_ask exchange_ask(const struct settings *settings, const struct path_id *path, const union sockaddr_ip *server,
				  bool mptcp);

/*
 * exchange_keeps_mptcp() - will a connection on @path that is Multipath TCP at its SYN+ACK stay Multipath TCP?
 * Yes if one did lately, or if the user says so by CONVERT_WITHHOLDING. Otherwise the SYN+ACK confirms no server over Multipath TCP.
 */
bool exchange_keeps_mptcp(const struct settings *settings, const struct path_id *path);

/*
 * exchange_ask_blindly() - turn @ask, of exchange_ask(), into a blind request, for a connection whose response can't be taken off
 * The request then doesn't ask about the server's Multipath TCP. Returns false, with nothing changed, if the converter isn't known to take
 * blind requests, if the request has to ask for its supported extensions, or if Multipath TCP may not hold (exchange_keeps_mptcp()).
 */
bool exchange_ask_blindly(const struct settings *settings, const struct path_id *path, struct handshake_ask *ask);

/*
 * exchange_hold_ms() - return for how long at most the converter may withhold the SYN of a request on @path (hold_ms of handshake_ask)
 * Milliseconds. The SYN+ACK must come before the kernel repeats the SYN or, if the request is @numbered (attempt of handshake_ask), before
 * the front end repeats the request. 0: the request says nothing, because the converter withholds SYNs no longer than that anyway or
 * doesn't understand the TLV, because we don't know the path's round trip, or because a repeated SYN does no harm without Multipath TCP
 * (@mptcp). Only a request that goes into a SYN, and doesn't ask for the supported extensions, needs it.
 */
unsigned int exchange_hold_ms(const struct settings *settings, const struct path_id *path, bool mptcp, bool numbered);

/*
 * exchange_way_failed() - note why we ask by @next on @path now: ASK_TCP after a fallback, another way after a SYN whose data wasn't taken
 * @syn_at: when the SYN was sent, CLOCK_MONOTONIC in ns
 */
void exchange_way_failed(const struct path_id *path, enum ask_way next, int64_t syn_at);

/* Notes that the server was reached, over Multipath TCP to the converter if @mptcp; @told is the response. */
void exchange_done(const struct path_id *path, const union sockaddr_ip *server, const struct handshake_step *told, bool mptcp);

/*
 * exchange_done_silently() - note that the server was reached, according to the SYN+ACK to a silent request: synack_is_silent()
 * @asked_mptcp: the request asked whether the server speaks Multipath TCP. It doesn't, or there would have been a response.
 * We learn nothing else from it, not even that a converter has answered.
 */
void exchange_done_silently(int converter, const union sockaddr_ip *server, bool asked_mptcp);

/*
 * exchange_reset_silently() - note that a connection made by a silent request was reset
 * The cause may be the server, or the converter after Multipath TCP was lost behind the handshake, which the client doesn't check after a
 * silent request: doc/private-tlvs.md. The next request asks for a response, which tells; then requests may be silent again.
 */
void exchange_reset_silently(const struct path_id *path);

/*
 * exchange_take_remedy() - may the same request succeed in another form, after the error @told?
 * The other form is one of these: with a cookie that the converter wants (once for each connection: sets *@cookie_asked); without the TCP
 * option that it doesn't support (clears *@ask_mptcp); without a Hold Time TLV, which it doesn't understand (exchange_hold_ms() returns 0
 * from then on); without the cookie that it gave once and refuses now (@number is its number). If no response followed a silent request
 * (*@silent), though one was due, the request may succeed without silence (clears *@silent): the two ends disagreed, or no host at that
 * address knows of silence. @told may come from handshake_on_close() or handshake_on_error() at the end of such a stream.
 */
bool exchange_take_remedy(int converter, converters_cookie_number number, const struct handshake_step *told,
			  bool *cookie_asked, bool *ask_mptcp, bool *silent);

/*
 * Notes that the request failed for @why, without a remedy: for why->rest seconds nobody asks the converter, or nobody asks it for @server;
 * 0: all may.
 */
void exchange_failed(int converter, const union sockaddr_ip *server, const struct handshake_step *why);

/*
 * exchange_unanswered() - note that no response, or only a part of one, came in time
 * The converter has to prove itself again. @alive: its host acknowledges our bytes, but has sent none.
 * Returns why the exchange failed, for exchange_failed().
 */
struct handshake_step exchange_unanswered(int converter, const union sockaddr_ip *server, bool alive);

#endif
