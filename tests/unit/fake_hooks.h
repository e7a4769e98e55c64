/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_hooks.h - the shim's hooks as functions of other names: hook_connect(), hook_close() …
 *
 * The compiler includes it before each source of libshimworld.la (-include), so that a program that links the hooks can still
 * call the C library's functions.
 */
#include "config.h"

#include "shim/hooks/hook.h"

#undef HOOK
#define HOOK(type, name, params)                                                                   \
	type hook_##name params;                                                                   \
	type hook_##name params
