/* SPDX-License-Identifier: BSD-3-Clause */
/* server.h - answers requests (payload.h) */
#ifndef LOAD_SERVER_H
#define LOAD_SERVER_H

#include <stdbool.h>
#include <stdint.h>

/* Listens on @port of all addresses and never returns. @no_delay: sets TCP_NODELAY; @verify: ends with 1 at the first wrong
 * byte. */
void server_run(uint16_t port, bool mptcp, bool no_delay, bool verify) __attribute__((noreturn));

#endif
