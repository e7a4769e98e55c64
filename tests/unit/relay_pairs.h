/* SPDX-License-Identifier: BSD-3-Clause */
/* relay_pairs.h - a relay between two socket pairs, for tests: their outer ends are the client and the server */
#ifndef TESTS_RELAY_PAIRS_H
#define TESTS_RELAY_PAIRS_H

#include "relay/relay.h"

#include <stdint.h>

extern struct relay relay;
extern int client, server;
extern uint8_t *scratch;

/* Makes the pairs, and a relay without pipes between their inner ends; teardown() closes and frees all. */
void setup(void);
void teardown(void);

/* Runs the relay as if both sockets were ready. */
enum relay_result run(void);

/* Writes @text to a socket; expects exactly that, or nothing, to be there. */
void put(int fd, const char *text);
void expect(int fd, const char *text);
void expect_nothing(int fd);

/* Closes a socket by a reset. */
void reset(int *fd);

#endif
