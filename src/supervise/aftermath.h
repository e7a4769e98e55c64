/* SPDX-License-Identifier: BSD-3-Clause */
/* aftermath.h - how blind requests have fared */
#ifndef SUPERVISE_AFTERMATH_H
#define SUPERVISE_AFTERMATH_H

#include "common/sockaddr.h"

/* A blind request has just been sent on the socket @fd, to the converter with this index and address. */
void aftermath_expect(int fd, int converter, const union sockaddr_ip *addr);

/*
 * Looks at those whose time has come. Returns when the next one's comes, in nanoseconds of CLOCK_MONOTONIC; 0 if there is none.
 */
int64_t aftermath_look(int64_t now);

#endif
