/* SPDX-License-Identifier: BSD-3-Clause */
/* errno_map.h - translates an Error TLV into the errno of a direct connection */
#ifndef CLIENT_ERRNO_MAP_H
#define CLIENT_ERRNO_MAP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * errno_map_error() - return the errno of connect(2) for an Error TLV (Section 6.2.8)
 * @code: the Error Code; the class of an unknown code decides
 * @value: the first byte of the Value field: the ICMP code of Destination Unreachable
 * @ipv4: the destination is IPv4, so the code is ICMP's (RFC 792); else ICMPv6's (RFC 4443)
 * The same table is in libconvert.so(7).
 */
int errno_map_error(uint8_t code, uint8_t value, bool ipv4);

/* Did the server cause it (96-127), rather than the client or the converter? */
bool errno_map_is_server(uint8_t code);

#endif
