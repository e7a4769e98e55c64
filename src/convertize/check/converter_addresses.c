/* SPDX-License-Identifier: BSD-3-Clause */
/* converter_addresses.c - the addresses of all converters that are configured */
#include "config.h"

#include "convertize/check/converter_addresses.h"

#include "client/resolve.h"

#define ADDRESSES_MAX 32 /* as many as libconvert.so knows */

void converter_addresses(const struct settings *settings, converter_on_address *each, converter_on_unresolved *unresolved,
			 void *arg)
{
	for (size_t i = 0; i < settings->converter_count; i++) {
		const struct settings_converter *setting = &settings->converters[i];
		union sockaddr_ip addresses[ADDRESSES_MAX] = { setting->addr };
		const char *reason = NULL;
		size_t count = 1;

		if (setting->name[0])
			count = resolve_converter(setting->name, setting->port, settings->timeout_ms, addresses, ADDRESSES_MAX,
						  &reason);
		for (size_t j = 0; j < count; j++)
			each(&addresses[j], setting->name, arg);
		if (!count)
			unresolved(setting->name, reason, arg);
	}
}
