/* SPDX-License-Identifier: BSD-3-Clause */
/* library.h - where libconvert.so is */
#ifndef CONVERTIZE_LIBRARY_H
#define CONVERTIZE_LIBRARY_H

#include "common/elf.h"

#include <limits.h>

#define LIBRARY_PROBLEM_MAX (2 * PATH_MAX + 256)

struct library {
	char path[PATH_MAX]; /* absolute */
	struct elf_facts elf;
};

/*
 * library_find() - the library to preload
 * @named: the file that the user has named; NULL: the library of the build tree that this program is run from, or else
 *         the installed one
 * Returns false with a sentence in @problem if there is none, or it can't be preloaded.
 */
bool library_find(struct library *out, const char *named,
		  char problem[static LIBRARY_PROBLEM_MAX]);

#endif
