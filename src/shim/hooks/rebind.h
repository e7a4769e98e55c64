/* SPDX-License-Identifier: BSD-3-Clause */
/* rebind.h - libraries that are loaded with RTLD_DEEPBIND find our hooks nevertheless */
#ifndef SHIM_REBIND_H
#define SHIM_REBIND_H

#include <stdbool.h>

/*
 * rebind_suits() - may dlopen(@file) be called by us in the caller's place?
 * @caller: an address in the caller's code. Not if its own object has a say in where @file is found.
 */
bool rebind_suits(const char *file, const void *caller);

/*
 * rebind_handle() - bind what was loaded for @handle to our hooks
 * What it has from the C library of the names that we hook it gets from where other libraries have them. All
 * other symbols stay as they were bound.
 */
void rebind_handle(void *handle);

#endif
