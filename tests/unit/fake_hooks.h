/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_hooks.h - the shim's hooks as functions of other names: hook_connect(), hook_close() …
 *
 * Included by the compiler before each source of libshimworld.la (-include), so that a program which has the hooks linked
 * with it still has the C library's functions for itself.
 */
#include "config.h"

#include "shim/hooks/hook.h"

#undef HOOK
#define HOOK(type, name, params)                                                                   \
	type hook_##name params;                                                                   \
	type hook_##name params
