/* SPDX-License-Identifier: BSD-3-Clause */
/* wrapper.h - programs that run others with a preload library or an environment of their own */
#ifndef CONVERTIZE_WRAPPER_H
#define CONVERTIZE_WRAPPER_H

#include <stdbool.h>
#include <stddef.h>

struct wrapper {
	const char *command; /* its name, without a version number */
	const char *library; /* its preload library: the start of the name; NULL: it has none */
	bool refused;        /* with preloading, nothing would be converted */
	const char *problem, *remedy;
	enum { WRAPPER_UNSUPERVISED, WRAPPER_SUPERVISED, WRAPPER_SUPERVISED_BY_ROOT } supervised; /* does a supervisor reach its programs? */
};

/*
 * wrapper_of_command() - find the wrapper in a command, also after nice, env and similar commands
 * @words: the command and its arguments, ending with NULL. Returns NULL if there is none.
 */
const struct wrapper *wrapper_of_command(char *const words[]);

/* wrapper_of_file() - find the wrapper that a program's file is, or that a script starts. Returns NULL if there is none. */
const struct wrapper *wrapper_of_file(const char *path);

/*
 * wrapper_of_preloads() - find a wrapper whose library LD_PRELOAD contains
 * @list: LD_PRELOAD, or NULL. Returns NULL if there is none.
 */
const struct wrapper *wrapper_of_preloads(const char *list);

/*
 * wrapper_preloads_with() - add a library to LD_PRELOAD, behind all others
 * The last is the nearest to the C library: other preload libraries see the program's calls unchanged, and AddressSanitizer's
 * library stays the first, as it must. Leaves entries for the same library in other directories out.
 * Returns a string, which the caller frees, or NULL if memory runs out.
 */
char *wrapper_preloads_with(const char *list, const char *library);

/* wrapper_preloads_without() - remove the library whose file is named @base from LD_PRELOAD. Returns as above. */
char *wrapper_preloads_without(const char *list, const char *base);

#endif
