/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library.c - where libconvert.so is, and for which machines
 *
 * A system may have programs for several machines, for example amd64 and i386, and one may start another. So LD_PRELOAD contains the
 * library's path with "$LIB", which each program's loader replaces with its own directory of libraries (ld.so(8)): for amd64 programs
 * /usr/$LIB/libconvert/libconvert.so is in /usr/lib/x86_64-linux-gnu, for i386 programs in /usr/lib/i386-linux-gnu.
 *
 * Only the loader knows the value of $LIB. configure asks the loader of our own machine (LIBCONVERT_LOADER_LIB). The loaders for
 * other machines may not run here: their value is "lib" with more letters ("lib32"), or a directory below "lib" that has the
 * machine's name ("lib/i386-linux-gnu"). We search all of these. The ELF header of each file tells its machine.
 */
#include "config.h"

#include "convertize/run/launch.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "libconvert.so"
#define INSTALLED LIBCONVERT_DIR "/" FILE_NAME /* LIBCONVERT_DIR: see local.mk */
#define LOADER_LIB "/" LIBCONVERT_LOADER_LIB "/" /* "//": our loader doesn't support $LIB */
#define TOKEN "/$LIB/"

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

static bool __attribute__((format(printf, 2, 3))) problem_is(char problem[static LIBRARY_PROBLEM_MAX], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(problem, LIBRARY_PROBLEM_MAX, format, args);
	va_end(args);
	return false;
}

static bool check_path(const char *path, char problem[static LIBRARY_PROBLEM_MAX])
{
	if (!strpbrk(path, " \t\n:"))
		return true;
	return problem_is(problem, "%.4000s: blanks and colons separate the names in LD_PRELOAD; move the "
			  "library to a path without them", path);
}

static bool read_build(struct library *out, char problem[static LIBRARY_PROBLEM_MAX])
{
	struct library_build *build = &out->builds[out->count];
	int ret = program_read_elf(&build->elf, build->path);

	if (ret < 0)
		return problem_is(problem, "%.4000s: %s", build->path,
				  ret == -ENOEXEC || ret == -EBADMSG ? "not a whole ELF library" : strerror(-ret));
	out->count++;
	return true;
}

static bool find_file(struct library *out, const char *path, char problem[static LIBRARY_PROBLEM_MAX])
{
	struct library_build *build = &out->builds[0];

	/* the path must be absolute: a program may change its directory before it starts another */
	if (!realpath(path, build->path))
		return problem_is(problem, "%.4000s: %s; install libconvert, or name the library with --library",
				  path, strerror(errno));
	return check_path(build->path, problem) && read_build(out, problem);
}

/* Adds the library in a directory that $LIB may stand for, if there is one and none before is for the same machine. */
static void add_build(struct library *out, const char *directory, const char *name, const char *rest)
{
	struct library_build *build = &out->builds[out->count];
	char problem[LIBRARY_PROBLEM_MAX];

	if (out->count == LIBRARY_BUILDS_MAX ||
	    snprintf(build->path, sizeof(build->path), "%s/%s/%s", directory, name, rest) >= (int)sizeof(build->path) ||
	    access(build->path, F_OK) < 0 || !read_build(out, problem))
		return;
	for (size_t i = 0; i + 1 < out->count; i++)
		if (elf_same_machine(&out->builds[i].elf, &build->elf)) {
			out->count--;
			return;
		}
}

/* Adds the libraries in those subdirectories of @directory whose names contain @part or, with @first, begin with it. */
static void add_builds(struct library *out, const char *directory, const char *part, bool first, const char *rest)
{
	DIR *stream = opendir(*directory ? directory : "/");
	const struct dirent *entry;

	while (stream && (entry = readdir(stream))) {
		const char *found = strstr(entry->d_name, part);

		if (found && (!first || found == entry->d_name))
			add_build(out, directory, entry->d_name, rest);
	}
	if (stream)
		closedir(stream);
}

/* Finds the files of a path with $LIB, first the one for our own machine. */
static bool find_pattern(struct library *out, const char *pattern, char problem[static LIBRARY_PROBLEM_MAX])
{
	const char *token = strstr(pattern, TOKEN), *rest = token + strlen(TOKEN);
	struct library_build *own = &out->builds[0];
	char directory[PATH_MAX];

	if (strlen(LOADER_LIB) == 2)
		return problem_is(problem, "%.4000s: the loader here knows no $LIB; name the library's own path", pattern);
	if (*pattern != '/')
		return problem_is(problem, "%.4000s: with $LIB it has to be an absolute path", pattern);
	if (!check_path(pattern, problem))
		return false;
	if (snprintf(own->path, sizeof(own->path), "%.*s" LOADER_LIB "%s", (int)(token - pattern), pattern, rest) >=
	    (int)sizeof(own->path))
		return problem_is(problem, "%.4000s: %s", pattern, strerror(ENAMETOOLONG));
	if (access(own->path, F_OK) < 0)
		return problem_is(problem, "%.4000s (%.4000s): %s; install libconvert, or name the library with --library",
				  pattern, own->path, strerror(errno));
	if (!read_build(out, problem))
		return false;
	strcpy(out->pattern, pattern);
	/* PREFIX/lib64, and PREFIX/lib/i386-linux-gnu */
	snprintf(directory, sizeof(directory), "%.*s", (int)(token - pattern), pattern);
	add_builds(out, directory, "lib", true, rest);
	snprintf(directory, sizeof(directory), "%.*s/lib", (int)(token - pattern), pattern);
	add_builds(out, directory, "-linux-", false, rest);
	return true;
}

/* Returns the path of the installed library, with $LIB if the path contains our loader's value of it. */
static const char *installed(char path[static PATH_MAX])
{
	const char *lib = strlen(LOADER_LIB) > 2 ? strstr(INSTALLED, LOADER_LIB) : NULL;

	if (!lib)
		return INSTALLED;
	snprintf(path, PATH_MAX, "%.*s" TOKEN "%s", (int)(lib - INSTALLED), INSTALLED, lib + strlen(LOADER_LIB));
	return path;
}

bool library_find(struct library *out, const char *named, char problem[static LIBRARY_PROBLEM_MAX])
{
	char found[PATH_MAX];
	const char *path = named ? named : find_in_build_tree(found) ? found : installed(found);

	out->pattern[0] = '\0';
	out->count = 0;
	return strstr(path, TOKEN) ? find_pattern(out, path, problem) : find_file(out, path, problem);
}

const struct library_build *library_for(const struct library *library, const struct program *program)
{
	const struct program_file *last = &program->files[program->count - 1];

	for (size_t i = 0; last->kind == PROGRAM_ELF && i < library->count; i++)
		if (elf_same_machine(&library->builds[i].elf, &last->elf))
			return &library->builds[i];
	return &library->builds[0];
}

const char *library_preload(const struct library *library, const struct library_build *build)
{
	return library->pattern[0] && build->elf.libc == ELF_LIBC_GLIBC ? library->pattern : build->path;
}
