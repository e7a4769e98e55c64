/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library.h - where libconvert.so is, and for which machines
 *
 * A system may have programs for several machines, amd64 and i386, say, and a program starts others. LD_PRELOAD then names the
 * library with "$LIB" in its path, in whose place each program's own loader puts the directory of its libraries (ld.so(8)):
 * /usr/$LIB/libconvert/libconvert.so is a file in /usr/lib/x86_64-linux-gnu for some, and one in /usr/lib/i386-linux-gnu for others.
 */
#ifndef CONVERTIZE_LIBRARY_H
#define CONVERTIZE_LIBRARY_H

#include "common/program.h"

#include <limits.h>

#define LIBRARY_PROBLEM_MAX (2 * PATH_MAX + 256)
#define LIBRARY_BUILDS_MAX 8

/* One file of the library. */
struct library_build {
	char path[PATH_MAX]; /* absolute */
	struct elf_facts elf;
};

struct library {
	char pattern[PATH_MAX]; /* the path with $LIB; empty: there is one file, for one machine */
	struct library_build builds[LIBRARY_BUILDS_MAX]; /* no two of them for the same machine */
	size_t count;                                    /* 1 or more */
};

/*
 * library_find() - the library to preload
 * @named: the file that the user has named, or a path with $LIB; NULL: the library of the build tree that this program is run
 *         from, or else the installed one
 * Returns false with a sentence in @problem if there is none, or it can't be preloaded.
 */
bool library_find(struct library *out, const char *named,
		  char problem[static LIBRARY_PROBLEM_MAX]);

/* library_for() - the build for the machine of a program; one for another machine if there is none, or the machine isn't known */
const struct library_build *library_for(const struct library *library, const struct program *program);

/*
 * library_preload() - the entry in LD_PRELOAD for this build
 * That is the path with $LIB where there is one, for the sake of the programs that this one starts. Other loaders than glibc's
 * take $LIB for a directory of that name, and get the path of the file.
 */
const char *library_preload(const struct library *library, const struct library_build *build);

#endif
