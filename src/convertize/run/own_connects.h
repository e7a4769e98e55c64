/* SPDX-License-Identifier: BSD-3-Clause */
/* own_connects.h - does a program have code that connects by system calls of its own? */
#ifndef CONVERTIZE_OWN_CONNECTS_H
#define CONVERTIZE_OWN_CONNECTS_H

#include <stdbool.h>

/*
 * own_connects() - look for such code in the program's file, of this machine
 * Returns false as well if the file can't be read, and on machines other than x86-64 and AArch64.
 */
bool own_connects(const char *path);

#endif
