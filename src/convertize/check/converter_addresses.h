/* SPDX-License-Identifier: BSD-3-Clause */
/* converter_addresses.h - the addresses of all converters that are configured */
#ifndef CONVERTIZE_CONVERTER_ADDRESSES_H
#define CONVERTIZE_CONVERTER_ADDRESSES_H

#include "client/settings.h"

/* Called for each address; @name: what it was resolved from, "" for one that was given as an address. */
typedef void converter_on_address(const union sockaddr_ip *address, const char *name, void *arg);

/* Called for each name that has no address now. */
typedef void converter_on_unresolved(const char *name, const char *reason, void *arg);

/* converter_addresses() - find them all, in the order in which they are tried; names are asked for, which may take a while */
void converter_addresses(const struct settings *settings, converter_on_address *each, converter_on_unresolved *unresolved,
			 void *arg);

#endif
