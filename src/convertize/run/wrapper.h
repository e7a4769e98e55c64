/* SPDX-License-Identifier: BSD-3-Clause */
/* wrapper.h - programs that run others with a preload library or an environment of their own */
#ifndef CONVERTIZE_WRAPPER_H
#define CONVERTIZE_WRAPPER_H

#include <stdbool.h>
#include <stddef.h>

struct wrapper {
	const char *command; /* its name, without a version number */
	const char *library; /* how the name of the library that it preloads begins; NULL: it preloads none */
	bool refused;        /* nothing would be converted, if the library were preloaded */
	const char *problem, *remedy;
	enum { WRAPPER_UNSUPERVISED, WRAPPER_SUPERVISED, WRAPPER_SUPERVISED_BY_ROOT } supervised; /* a supervisor reaches its programs */
};

/*
 * wrapper_of_command() - the wrapper that a command runs its program by, also behind nice, env and their like
 * @words: the command and its arguments, ending with NULL. Returns NULL if there is none.
 */
const struct wrapper *wrapper_of_command(char *const words[]);

/*
 * wrapper_of_preloads() - the one whose library is preloaded already
 * @list: LD_PRELOAD, or NULL. Returns NULL if there is none.
 */
const struct wrapper *wrapper_of_preloads(const char *list);

/*
 * wrapper_preloads_with() - LD_PRELOAD with a library added, behind all others
 * So it is the nearest to the C library: other preload libraries see the program's calls as the program makes them, and
 * AddressSanitizer's can be the first, as it must. Entries for the same library in other directories are left out.
 * Returns a string to be freed, or NULL without memory.
 */
char *wrapper_preloads_with(const char *list, const char *library);

/* wrapper_preloads_without() - LD_PRELOAD without the library whose file has the name @base. Returns as above. */
char *wrapper_preloads_without(const char *list, const char *base);

#endif
