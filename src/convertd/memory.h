/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.h - what malloc() keeps of memory that was freed, where the C library lets us say */
#ifndef CONVERTD_MEMORY_H
#define CONVERTD_MEMORY_H

/* For the process, before there are threads. */
void memory_init(void);

/* Gives all free pages back to the system. Takes some milliseconds, more after a larger crowd. */
void memory_give_back(void);

#endif
