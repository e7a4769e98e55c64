/* SPDX-License-Identifier: BSD-3-Clause */
/* servers.h - which servers are known to speak Multipath TCP themselves (RFC 8803, Section 5.1) */
#ifndef CLIENT_SERVERS_H
#define CLIENT_SERVERS_H

#include "client/handshake.h"

/*
 * What is known of @server: HANDSHAKE_SERVER_UNKNOWN if nothing, or too long ago;
 * HANDSHAKE_SERVER_PLAIN also if it was tried directly in vain.
 */
enum handshake_server_mptcp servers_mptcp(const union sockaddr_ip *server);

/* Notes what a converter's response has said of @server. */
void servers_note_mptcp(const union sockaddr_ip *server, enum handshake_server_mptcp mptcp);

/* Notes that Multipath TCP to @server failed without a converter, so that it isn't tried again for an hour. */
void servers_note_no_bypass(const union sockaddr_ip *server);

#endif
