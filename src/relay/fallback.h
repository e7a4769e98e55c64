/* SPDX-License-Identifier: BSD-3-Clause */
/* fallback.h - detects bytes that the kernel has lost on an MPTCP socket which fell back to TCP */
#ifndef RELAY_FALLBACK_H
#define RELAY_FALLBACK_H

#include <stdbool.h>
#include <stdint.h>

/* The state of an MPTCP socket. */
struct fallback_look {
	bool fallen;      /* it has become plain TCP */
	uint8_t subflows; /* their number, unless the socket has fallen back */
};

/* Asks the kernel. @fd: an MPTCP socket */
void fallback_look(int fd, struct fallback_look *look);

/*
 * fallback_lost_bytes() - tell whether bytes of a stream have vanished in the kernel
 * @fd: an MPTCP socket
 * @received: the number of bytes that were read from it so far, SYN data included
 * @look: set, as fallback_look() does it
 * Returns false if that can't be known, as while there is more to read. Preserves errno.
 */
bool fallback_lost_bytes(int fd, uint64_t received, struct fallback_look *look);

#endif
