/* SPDX-License-Identifier: BSD-3-Clause */
/* plain_servers.h - servers that didn't take Multipath TCP, so that they aren't asked each time */
#ifndef CONVERTD_PLAIN_SERVERS_H
#define CONVERTD_PLAIN_SERVERS_H

#include "common/sockaddr.h"

#include <stdbool.h>

/* All threads may call both at once. What is known may be forgotten at any time, and is after ten minutes. */
bool plain_servers_has(const union sockaddr_ip *server);
void plain_servers_note(const union sockaddr_ip *server);

#endif
