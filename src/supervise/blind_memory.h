/* SPDX-License-Identifier: BSD-3-Clause */
/* blind_memory.h - servers that have taken longer than a blind request can wait, or for which one has failed */
#ifndef SUPERVISE_BLIND_MEMORY_H
#define SUPERVISE_BLIND_MEMORY_H

#include "common/sockaddr.h"

#include <stdbool.h>

/* A blind request for this server was given up by the converter. */
void blind_memory_note_slow(const union sockaddr_ip *server);

/* Was it lately? Then the next request waits for its response, however long that takes. */
bool blind_memory_is_slow(const union sockaddr_ip *server);

/*
 * A blind request for a server that isn't known to be served (converters_admits()) has ended before its first look: the program may have
 * closed the socket, or the server, or else the converter has refused.
 */
void blind_memory_note_failed(const union sockaddr_ip *server);

/* Has one lately? Then the next request waits for its response, unless it has become known since that the converter serves it. */
bool blind_memory_has_failed(const union sockaddr_ip *server);

#endif
