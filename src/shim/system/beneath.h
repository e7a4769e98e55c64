/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * beneath.h - other preloaded libraries that stand between our hooks and the C library
 *
 * The function of such a library may end in syscall(2), as the socket() of mptcpize's does. syscall() is one of our hooks,
 * which would call our socket(), which would call that library again, and so on without end. So a system call that is made by
 * a function behind a hook has to go to the kernel. To know one, each thread remembers when it is inside such a
 * function. That costs time in each call, and is done only for functions that aren't the C library's: as a rule none.
 */
#ifndef SHIM_BENEATH_H
#define SHIM_BENEATH_H

#include "shim/system/next.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * beneath_bind() - replaces each entry of @functions that isn't the C library's by one that notes the call and makes it
 * @functions: the table as next_bind() leaves it. Called once, by the constructor, right after next_bind().
 */
void beneath_bind(struct next_functions *functions);

/*
 * beneath_proxy() - the library behind our connect() that takes connections to proxies, as torsocks does
 * What we convert would go past that proxy. Returns the library's file name, which stays valid, or NULL if there is none.
 */
const char *beneath_proxy(void);

/* Is mptcpize's library preloaded, too? One that is in front of ours makes MPTCP sockets by syscall(). */
bool beneath_has_mptcpize(void);

/* Is @address in the C library? False before beneath_bind(). */
bool beneath_is_libc(uintptr_t address);

/* Is the calling thread inside a function that stands behind one of our hooks? */
bool beneath_is_inside(void);

#endif
