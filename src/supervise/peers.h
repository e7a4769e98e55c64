/* SPDX-License-Identifier: BSD-3-Clause */
/* peers.h - remembers the servers behind converted connections, for getpeername() */
#ifndef SUPERVISE_PEERS_H
#define SUPERVISE_PEERS_H

#include "common/sockaddr.h"

/* Notes that the socket @fd, connected or connecting to @converter, leads to @server, the address that the program gave. */
void peers_note(int fd, const union sockaddr_ip *converter, const union sockaddr_ip *server);

/* Likewise, for the socket with that SO_COOKIE and the local address @local. */
void peers_note_at(const union sockaddr_ip *local, uint64_t cookie, const union sockaddr_ip *converter, const union sockaddr_ip *server);

/* Returns the server of the socket @fd, or NULL if its connection isn't converted. */
const union sockaddr_ip *peers_find(int fd);

#endif
