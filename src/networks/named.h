/* SPDX-License-Identifier: BSD-3-Clause */
/* named.h - is there the network that the user names (CONVERT_PATHS)? */
#ifndef NETWORKS_NAMED_H
#define NETWORKS_NAMED_H

#include "client/settings.h"
#include "client/user_cache.h"

/*
 * network_is_there() - has this machine the device, or the address, now?
 * Two or three system calls, with a descriptor for a moment. Where the kernel can't be asked the answer is yes.
 */
bool network_is_there(const struct path_wish *wish);

/* Says which of the networks that the user names aren't there. They may come later; but a misspelt name never does. */
void networks_tell_missing(const struct path_preferences *wanted, client_log *say);

#endif
