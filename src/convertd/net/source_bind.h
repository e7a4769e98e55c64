/* SPDX-License-Identifier: BSD-3-Clause */
/* source_bind.h - sockets that come from a certain address */
#ifndef CONVERTD_SOURCE_BIND_H
#define CONVERTD_SOURCE_BIND_H

#include "convertd/net/sources.h"

struct route;

/*
 * source_bind() - before connect()
 * @source, @choice: of sources_choose(). With a port, that one if it can be had, or else any;
 * without, connect() chooses one that is free towards its server.
 * @route: asked whether an address of SOURCES_ROUTED is still ours; NULL: not asked
 * Returns 0 or -errno: -EADDRNOTAVAIL where the address isn't ours.
 */
int source_bind(int fd, const union sockaddr_ip *source, enum sources_choice choice,
		struct route *route);

/* Are they this host's, and may they be used? Tells @problems which not, and what to do. */
bool source_check(const struct sources *sources, struct problems *problems);

#endif
