/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - what malloc() keeps of memory that was freed, where the C library lets us say
 *
 * glibc gives each thread an arena. malloc_trim() gives back the free pages of all of them, but the
 * last ones, some 100 kB each, only of the first (2.36). One is enough here: sessions have memory of
 * their own (blocks.h), threads a cache of small pieces, and what is left is rare. In musl there is
 * nothing to be said: it gives back what is free.
 */
#include "config.h"

#include "convertd/base/memory.h"

#ifdef HAVE_MALLOC_TRIM
#include <malloc.h>

void memory_init(void)
{
	mallopt(M_ARENA_MAX, 1);
}

void memory_give_back(void)
{
	malloc_trim(0);
}
#else
void memory_init(void)
{
}

void memory_give_back(void)
{
}
#endif
