/* SPDX-License-Identifier: BSD-3-Clause */
/* syn_build.h - packets with TCP SYNs, for tests; shares no code with what reads them */
#ifndef TESTS_UNIT_SYN_BUILD_H
#define TESTS_UNIT_SYN_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * syn_build_checksums() - write right checksums into a packet
 * That of the IPv4 header, and that of TCP if the packet is long enough.
 */
void syn_build_checksums(uint8_t *packet, size_t len);

#endif
