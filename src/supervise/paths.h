/* SPDX-License-Identifier: BSD-3-Clause */
/* paths.h - may an MPTCP connection get a second path? */
#ifndef SUPERVISE_PATHS_H
#define SUPERVISE_PATHS_H

#include "common/sockaddr.h"

/* May one to @to? True as well where the kernel doesn't say. Its endpoints are asked for once in a few seconds. */
bool paths_may_be_several(const union sockaddr_ip *to);

#endif
