/* SPDX-License-Identifier: BSD-3-Clause */
/* beneath.h - the C library and other preloaded libraries, in front of our hooks and behind them */
#ifndef SHIM_BENEATH_H
#define SHIM_BENEATH_H

#include <stdbool.h>
#include <stdint.h>

/* beneath_bind() - finds out which libraries there are. Called once, by the constructor, after next_bind(). */
void beneath_bind(void);

/* Is @address in the C library? False before beneath_bind(). */
bool beneath_is_libc(uintptr_t address);

/*
 * beneath_proxy() - the library behind our connect() that takes connections to proxies, as torsocks does
 * What we convert would go past that proxy. Returns the library's file name, which stays valid, or NULL if there is none.
 */
const char *beneath_proxy(void);

/* Is mptcpize's library preloaded in front of ours? It makes MPTCP sockets in place of the program's TCP sockets, by syscall(2). */
bool beneath_is_behind_mptcpize(void);

#endif
