/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library.h - where libconvert.so is, and for which machines
 *
 * A system may have programs for several machines, for example amd64 and i386, and one may start another. So LD_PRELOAD contains the
 * library's path with "$LIB", which each program's loader replaces with its own directory of libraries (ld.so(8)): for amd64 programs
 * /usr/$LIB/libconvert/libconvert.so is in /usr/lib/x86_64-linux-gnu, for i386 programs in /usr/lib/i386-linux-gnu.
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
	struct library_build builds[LIBRARY_BUILDS_MAX]; /* each is for another machine */
	size_t count;                                    /* 1 or more */
};

/*
 * library_find() - find the library to preload
 * @named: the user's file, or path with $LIB; NULL: the library in the build tree of this convertize, or else the installed one
 * Returns false with a sentence in @problem if there is none, or if LD_PRELOAD can't name it.
 */
bool library_find(struct library *out, const char *named,
		  char problem[static LIBRARY_PROBLEM_MAX]);

/* library_for() - return the build for a program's machine; if there is none, or the machine is unknown, our own machine's */
const struct library_build *library_for(const struct library *library, const struct program *program);

/*
 * library_preload() - return the entry in LD_PRELOAD for this build
 * It is the path with $LIB, if there is one, so that it suits child programs, too. Only glibc's loader knows $LIB: for others it is
 * the path of the file.
 */
const char *library_preload(const struct library *library, const struct library_build *build);

#endif
