/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.h - what malloc() keeps of memory that was freed, where the C library lets us say */
#ifndef CONVERTD_MEMORY_H
#define CONVERTD_MEMORY_H

#include <stddef.h>

/*
 * memory_size() - bytes to ask malloc() for, where @len are needed and may be any number
 * Threads keep pieces that were freed: glibc some of every multiple of 16 bytes up to 1 kB, 230 kB a
 * thread in the end. With fewer sizes it is 14 kB. AddressSanitizer is to know the exact size.
 */
static inline size_t memory_size(size_t len)
{
#ifdef __SANITIZE_ADDRESS__
	return len;
#else
	size_t size = 64;

	while (size < len && size < 1024)
		size *= 2;
	return size < len ? len : size;
#endif
}

/* For the process, before there are threads. */
void memory_init(void);

/* Gives all free pages back to the system. Takes some milliseconds, more after a larger crowd. */
void memory_give_back(void);

#endif
