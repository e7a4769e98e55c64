/* SPDX-License-Identifier: BSD-3-Clause */
/* proxies.h - preload libraries that take a program's connections to proxies, by the names of their files */
#ifndef COMMON_PROXIES_H
#define COMMON_PROXIES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define PROXIES_PROXYCHAINS "libproxychains"
#define PROXIES_TORSOCKS "libtorsocks"
#define PROXIES_TSOCKS "libtsocks"
#define PROXIES_DANTE "libdsocks"

/* @name: of the file, without its directories; a version may follow */
static inline bool proxies_is_library(const char *name)
{
	static const char *const libraries[] = { PROXIES_PROXYCHAINS, PROXIES_TORSOCKS, PROXIES_TSOCKS,
						 PROXIES_DANTE };

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (strncmp(name, libraries[i], strlen(libraries[i])) == 0)
			return true;
	return false;
}

#endif
