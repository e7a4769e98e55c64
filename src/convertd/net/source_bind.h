/* SPDX-License-Identifier: BSD-3-Clause */
/* source_bind.h - binds sockets to the source address that was chosen for a connection */
#ifndef CONVERTD_SOURCE_BIND_H
#define CONVERTD_SOURCE_BIND_H

#include "convertd/net/sources.h"

struct route;

/*
 * source_bind() - give a socket its source address, before connect()
 * @source, @choice: as sources_choose() has set them. If @source has a port, the socket gets it if it is free, and
 * another one otherwise; without, connect() chooses one that is free towards its server.
 * @route: is asked whether an address of SOURCES_ROUTED is still ours; may be NULL
 * Returns 0 or -errno: -EADDRNOTAVAIL where the address isn't ours.
 */
int source_bind(int fd, const union sockaddr_ip *source, enum sources_choice choice,
		struct route *route);

/* Checks that the addresses are this host's and may be used. Returns false after adding the errors to @problems. */
bool source_check(const struct sources *sources, struct problems *problems);

#endif
