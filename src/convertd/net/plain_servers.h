/* SPDX-License-Identifier: BSD-3-Clause */
/* plain_servers.h - remembers servers that didn't take Multipath TCP, so that they aren't asked each time */
#ifndef CONVERTD_PLAIN_SERVERS_H
#define CONVERTD_PLAIN_SERVERS_H

#include "common/sockaddr.h"

#include <stdbool.h>

/*
 * plain_servers_note() remembers that @server (address and port) didn't take Multipath TCP, and plain_servers_has() tells
 * whether it is remembered. Any thread may call both. A server may be forgotten at any time, and is after ten minutes.
 */
bool plain_servers_has(const union sockaddr_ip *server);
void plain_servers_note(const union sockaddr_ip *server);

#endif
