/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * beneath.h - other preloaded libraries that stand between our hooks and the C library
 *
 * Such a library's function may end in syscall(2), as mptcpize's socket() does. That is our hook again,
 * which would call the library again, and so on for ever: what is called from beneath a hook belongs to
 * the kernel. So where a function behind a hook is not the C library's, the thread remembers that it
 * is in there. Where all are the C library's, as a rule, nothing stands in between.
 */
#ifndef SHIM_BENEATH_H
#define SHIM_BENEATH_H

#include "shim/system/next.h"

#include <stdbool.h>
#include <stdint.h>

/* Puts the remembering between @functions, as they were looked up, and our hooks, where it is needed. */
void beneath_bind(struct next_functions *functions);

/*
 * The file of a library behind our connect() that takes connections to proxies, as torsocks does: what we
 * convert would go past them. NULL if there is none.
 */
const char *beneath_proxy(void);

/* Is mptcpize's library preloaded, too? In front of ours it makes MPTCP sockets by syscall(). */
bool beneath_has_mptcpize(void);

/* Is this an address in the C library? */
bool beneath_is_libc(uintptr_t address);

/* Was this called, in the end, by a function that stands behind one of our hooks? */
bool beneath_is_inside(void);

#endif
