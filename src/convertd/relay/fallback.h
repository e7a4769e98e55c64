/* SPDX-License-Identifier: BSD-3-Clause */
/* fallback.h - bytes that are missing on an MPTCP socket which fell back to TCP */
#ifndef CONVERTD_FALLBACK_H
#define CONVERTD_FALLBACK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * fallback_lost_bytes() - have bytes of a stream vanished in the kernel?
 * @fd: an MPTCP socket
 * @received: bytes that were read from it so far, SYN data included
 * False wherever that can't be told, as while more is there to be read.
 */
bool fallback_lost_bytes(int fd, uint64_t received);

#endif
