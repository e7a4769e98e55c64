/* SPDX-License-Identifier: BSD-3-Clause */
/* launch.h - run a program with libconvert.so preloaded, or under supervision */
#ifndef CONVERTIZE_LAUNCH_H
#define CONVERTIZE_LAUNCH_H

#include "client/settings.h"
#include "common/program.h"
#include "convertize/options/command_line.h"
#include "convertize/run/library.h"
#include "convertize/run/wrapper.h"

/* Returns the user and group that would execute a program now. */
struct preload_caller launch_caller(void);

/*
 * launch_read_settings() - read the settings of the environment, for all commands
 * @settings: all zero before
 * Returns false after printing the mistakes and where they are; with @needs_converter also if no converter is set.
 */
bool launch_read_settings(struct settings *settings, const struct options *options, bool needs_converter);

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
