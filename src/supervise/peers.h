/* SPDX-License-Identifier: BSD-3-Clause */
/* peers.h - the servers behind converted connections, for getpeername() */
#ifndef SUPERVISE_PEERS_H
#define SUPERVISE_PEERS_H

#include "common/sockaddr.h"

/* The connection of the socket @fd to @converter, which may be under way still, leads to @server, as the program has named it. */
void peers_note(int fd, const union sockaddr_ip *converter, const union sockaddr_ip *server);

/* Likewise, of the socket that has that SO_COOKIE, whose address here is @local. */
void peers_note_at(const union sockaddr_ip *local, uint64_t cookie, const union sockaddr_ip *converter, const union sockaddr_ip *server);

/* The server of the socket @fd, or NULL if its connection isn't a converted one. */
const union sockaddr_ip *peers_find(int fd);

#endif
