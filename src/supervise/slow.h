/* SPDX-License-Identifier: BSD-3-Clause */
/* slow.h - servers that have taken longer than a blind request can wait */
#ifndef SUPERVISE_SLOW_H
#define SUPERVISE_SLOW_H

#include "common/sockaddr.h"

#include <stdbool.h>

/* A blind request for this server was given up by the converter. */
void slow_note(const union sockaddr_ip *server);

/* Was it lately? Then the next request waits for its response, however long that takes. */
bool slow_is(const union sockaddr_ip *server);

#endif
