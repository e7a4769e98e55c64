/* SPDX-License-Identifier: BSD-3-Clause */
/* named.h - is there the network that the user names (CONVERT_PATHS)? */
#ifndef NETWORKS_NAMED_H
#define NETWORKS_NAMED_H

#include "client/path_preferences.h"

/*
 * network_is_there() - has this machine the device, or the address, now?
 * Two or three system calls, with a descriptor for a moment. Where the kernel can't be asked the answer is yes.
 */
bool network_is_there(const struct path_wish *wish);

#endif
