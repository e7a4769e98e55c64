/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loopback_address.c - Connect TLVs with loopback addresses, which Section 6.2.5 forbids
 *
 * Linked (by --wrap) with the objects of libconvert.so and of convertd: converter, client and server are one host here.
 */
#include "config.h"

#include "convert/convert.h"

bool __real_convert_address_is_valid(const struct in6_addr *address);
bool __wrap_convert_address_is_valid(const struct in6_addr *address);

bool __wrap_convert_address_is_valid(const struct in6_addr *address)
{
	return IN6_IS_ADDR_LOOPBACK(address) ||
	       (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127) ||
	       __real_convert_address_is_valid(address);
}
