/* SPDX-License-Identifier: BSD-3-Clause */
/* beneath.c - the C library and other preloaded libraries, in front of our hooks and behind them */
#include "config.h"

#include "shim/system/beneath.h"

#include "common/preload.h"
#include "shim/system/next.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#define MPTCPIZE "libmptcpwrap" /* the name of its library begins so */

/* The C library: an address in it, by which object_find() knows it, and where its segments start and end. */
static struct object {
	uintptr_t address, start, end;
} libc;

static int object_find(struct dl_phdr_info *info, size_t size, void *data)
{
	struct object *object = data;
	uintptr_t start = UINTPTR_MAX, end = 0;

	(void)size;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		start = at < start ? at : start;
		end = at + info->dlpi_phdr[i].p_memsz > end ? at + info->dlpi_phdr[i].p_memsz : end;
	}
	if (object->address < start || object->address >= end)
		return 0;
	object->start = start;
	object->end = end;
	return 1;
}

bool beneath_is_libc(uintptr_t address)
{
	return address >= libc.start && address < libc.end;
}

/*
 * The file name of the library that has the function at @address, without its directory; @path: with it. NULL for the C library, which
 * is not looked for by dladdr(): that goes through all of its symbols, and would make the start of each program twice as much work.
 */
static const char *object_name(uintptr_t address, const char **path)
{
	const char *slash;
	Dl_info info;

	if (beneath_is_libc(address) || !dladdr((const void *)address, &info) || !info.dli_fname)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	*path = info.dli_fname;
	return slash ? slash + 1 : info.dli_fname;
}

static bool is_behind_mptcpize;

void beneath_bind(void)
{
	const char *preloads = getenv("LD_PRELOAD"), *path, *name;

	/* errno's function, which no library replaces */
	libc.address = (uintptr_t)dlsym(RTLD_NEXT, "__errno_location");
	dl_iterate_phdr(object_find, &libc);
	name = object_name((uintptr_t)next.socket, &path);
	is_behind_mptcpize = preloads && strstr(preloads, MPTCPIZE) && !(name && strstr(name, MPTCPIZE));
}

const char *beneath_proxy(void)
{
	const char *path, *name = object_name((uintptr_t)next.connect, &path);

	return name && proxies_is_library(name) ? path : NULL;
}

bool beneath_is_behind_mptcpize(void)
{
	return is_behind_mptcpize;
}
