/* SPDX-License-Identifier: BSD-3-Clause */
/* counters.h - the kernel's network counters */
#ifndef CONVERTIZE_COUNTERS_H
#define CONVERTIZE_COUNTERS_H

#include <stdint.h>

/*
 * counters_read() - one counter of /proc/net/netstat, of this network namespace
 * @name: as nstat(8) spells it, such as "MPTcpExtBlackhole". 0 if this kernel doesn't count it.
 */
uint64_t counters_read(const char *name);

#endif
