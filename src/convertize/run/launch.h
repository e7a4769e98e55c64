/* SPDX-License-Identifier: BSD-3-Clause */
/* launch.h - run a program with libconvert.so preloaded, or under supervision */
#ifndef CONVERTIZE_LAUNCH_H
#define CONVERTIZE_LAUNCH_H

#include "client/settings.h"
#include "common/program.h"
#include "convertize/options/command_line.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* --- library.c: where libconvert.so is, and for which machines --- */

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

/* --- wrapper.c: programs that run others with a preload library or an environment of their own --- */

struct wrapper {
	const char *command; /* its name, without a version number */
	const char *library; /* its preload library: the start of the name; NULL: it has none */
	bool refused;        /* with preloading, nothing would be converted */
	const char *problem, *remedy;
	/* does a supervisor reach its programs? */
	enum { WRAPPER_UNSUPERVISED, WRAPPER_SUPERVISED, WRAPPER_SUPERVISED_BY_ROOT } supervised;
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

/* --- own_connects.c: does a program have code that connects by system calls of its own? --- */

/*
 * own_connects() - look for such code in the program's file, of this machine
 * Returns false as well if the file can't be read, and on machines other than x86-64 and AArch64.
 */
bool own_connects(const char *path);

/* --- launch.c --- */

/* Returns the user and group that would execute a program now. */
struct preload_caller launch_caller(void);

/*
 * launch_read_settings() - read the settings of the environment, for all commands
 * @settings: all zero before
 * Returns false after printing the mistakes and where they are; with @needs_converter also if no converter is set.
 */
bool launch_read_settings(struct settings *settings, const struct options *options, bool needs_converter);

/*
 * launch_forget_warn() - before conf_load(), unset CONVERT_WARN in a converted shell, unless the option is on the command line
 * launch() has set it there for that shell's programs: the user hasn't asked for it elsewhere.
 */
void launch_forget_warn(const struct options *options);

/* Finds the library to preload, after conf_load(). Returns false after printing the reason. */
bool launch_find_library(struct library *out);

/* The way to reach a program's connections. With LAUNCH_UNREACHED there is none, and only --force runs the program. */
enum launch_way { LAUNCH_PRELOADED, LAUNCH_SUPERVISED, LAUNCH_UNREACHED };

/* A program, and the way to run it. */
struct launch {
	const struct options *options;
	struct program program;
	const struct library_build *library;
	enum preload_verdict verdict; /* does preloading reach it? */
	size_t index;                 /* of the file that the verdict is about */
	const struct wrapper *wrapper; /* NULL: none */
	enum launch_way way;
};

/*
 * launch_plan() - plan how to run a program; launch() carries the plan out, "check" and "enable" report it
 * @options: the plan depends on program, executable, method and force
 * @library: NULL: none, since the user chose to supervise
 * Returns 0, or -errno if the program can't be executed.
 */
int launch_plan(struct launch *out, const struct options *options, const struct library *library, const struct preload_caller *caller);

/*
 * launch() - execute the program
 * Returns only if that fails: the exit status, after printing the reason on standard error.
 */
int launch(const struct options *options);

#endif
