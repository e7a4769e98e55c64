/* SPDX-License-Identifier: BSD-3-Clause */
/* library.c - where libconvert.so is */
#include "config.h"

#include "convertize/library.h"

#include "common/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "libconvert.so"
#define INSTALLED LIBCONVERT_DIR "/" FILE_NAME /* LIBCONVERT_DIR: see local.mk */

/* Finds the library of the build tree: libtool puts it into .libs, beside this program. */
static bool find_in_build_tree(char path[static PATH_MAX])
{
	static const char file[] = "/.libs/" FILE_NAME;
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	if (len <= 0)
		return false;
	path[len] = '\0';
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash - path) + sizeof(file) > PATH_MAX)
		return false;
	strcpy(slash, file);
	return access(path, F_OK) == 0;
}

bool library_find(struct library *out, const char *named, char problem[static LIBRARY_PROBLEM_MAX])
{
	char built[PATH_MAX];
	const char *path = named ? named : find_in_build_tree(built) ? built : INSTALLED;
	int ret;

	/* a program may change its directory before it starts another */
	if (!realpath(path, out->path)) {
		snprintf(problem, LIBRARY_PROBLEM_MAX,
			 "%.4000s: %s; install libconvert, or name the library with --library",
			 path, strerror(errno));
		return false;
	}
	if (strpbrk(out->path, " \t\n:")) {
		snprintf(problem, LIBRARY_PROBLEM_MAX,
			 "%.4000s: blanks and colons separate the names in LD_PRELOAD; move the "
			 "library to a path without them",
			 out->path);
		return false;
	}
	ret = program_read_elf(&out->elf, out->path);
	if (ret < 0)
		snprintf(problem, LIBRARY_PROBLEM_MAX, "%.4000s: %s", out->path,
			 ret == -ENOEXEC || ret == -EBADMSG ? "not a whole ELF library" :
							      strerror(-ret));
	return ret == 0;
}
