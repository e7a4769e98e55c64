/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nss_nested.c - a module of nsswitch.conf that looks for a converter inside of a lookup
 *
 * That is what happens to a module that connects to its server (LDAP, say) under the shim. It
 * resolves the name in NESTED_NAME, says what it found, and whether _res has changed, and
 * leaves the host to the next source.
 */
#include "config.h"

#include "client/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <nss.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gaih_addrtuple;

enum nss_status _nss_nested_gethostbyname4_r(const char *name, struct gaih_addrtuple **out,
					     char *buf, size_t len, int *error, int *h_error,
					     int32_t *ttl);

enum nss_status _nss_nested_gethostbyname4_r(const char *name, struct gaih_addrtuple **out,
					     char *buf, size_t len, int *error, int *h_error,
					     int32_t *ttl)
{
	const char *wanted = getenv("NESTED_NAME"), *reason = "";
	struct __res_state before;
	union sockaddr_ip list[8];
	char text[SOCKADDR_STRLEN];
	size_t count;

	memcpy(&before, &_res, sizeof(before));
	(void)name, (void)out, (void)buf, (void)len, (void)ttl;
	count = resolve_converter(wanted ? wanted : "", 1234, 5000, list, 8, &reason);
	for (size_t i = 0; i < count; i++)
		printf("nested %s\n", sockaddr_ip_format(&list[i], text));
	if (memcmp(&before, &_res, sizeof(before)) != 0)
		puts("nested changed: _res");
	if (!count)
		printf("nested none: %s\n", reason);
	*error = ENOENT;
	*h_error = HOST_NOT_FOUND;
	return NSS_STATUS_NOTFOUND;
}
