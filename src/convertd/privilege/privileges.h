/* SPDX-License-Identifier: BSD-3-Clause */
/* privileges.h - becomes the user of --user and gives up all capabilities that convertd doesn't need */
#ifndef CONVERTD_PRIVILEGES_H
#define CONVERTD_PRIVILEGES_H

#include "common/problems.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

struct settings;

/*
 * privileges_drop() - become --user, keeping the capabilities that @settings need
 * Call it before any thread is started, as each thread has its own capabilities. It sets no_new_privs, so that no
 * program that the process executes regains rights, and warns of files that a reload couldn't read any more. Returns
 * false after adding the error to @problems.
 */
bool privileges_drop(const struct settings *settings, struct problems *problems);

/* ----- the capabilities of this process: capabilities(7) ----- */

/* A set of capabilities, by the bits of linux/capability.h. */
#define CAPABILITIES_BIT(capability) ((uint64_t)1 << (capability))

/*
 * The capabilities of the main process: CAP_NET_ADMIN for nftables, netfilter queues, IP_TRANSPARENT and restricted
 * congestion controls; CAP_NET_BIND_SERVICE for ports below 1024.
 */
#define CAPABILITIES_OF_WARDEN                                                                     \
	(CAPABILITIES_BIT(CAP_NET_ADMIN) | CAPABILITIES_BIT(CAP_NET_BIND_SERVICE))

/* Tells whether this thread has at least one capability of @set in effect. */
bool capabilities_has(uint64_t set);

/*
 * capabilities_keep() - give up all capabilities outside @set, for good
 * Call it before any thread is started, as each thread has its own capabilities. The bounding set is emptied as well,
 * where CAP_SETPCAP permits that. Returns 0 or -errno.
 */
int capabilities_keep(uint64_t set);

#endif
