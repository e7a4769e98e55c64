/* SPDX-License-Identifier: BSD-3-Clause */
/* launch.h - run a program with libconvert.so preloaded, or under supervision */
#ifndef CONVERTIZE_LAUNCH_H
#define CONVERTIZE_LAUNCH_H

#include "client/settings.h"
#include "common/preload.h"
#include "convertize/options/command_line.h"
#include "convertize/run/library.h"
#include "convertize/run/wrapper.h"

/* The user and group that a program would be executed by now. */
struct preload_caller launch_caller(void);

/*
 * launch_read_settings() - read the settings of the environment, for all commands
 * @settings: all zero before. Returns false after saying what is wrong, and where it was set; and, if @needs_converter, that none is named.
 */
bool launch_read_settings(struct settings *settings, const struct options *options, bool needs_converter);

/* How a program's connections are reached: LAUNCH_UNREACHED ones aren't, and only --force runs the program. */
enum launch_way { LAUNCH_PRELOADED, LAUNCH_SUPERVISED, LAUNCH_UNREACHED };

/* A program, and how it is to be run. */
struct launch {
	const struct options *options;
	struct program program;
	const struct library_build *library;
	enum preload_verdict verdict; /* of preloading */
	size_t index;                 /* of the file that the verdict is about */
	const struct wrapper *wrapper; /* NULL: none */
	enum launch_way way;
};

/*
 * launch_plan() - decide how a program would be run; launch() does so, and "check" and "enable" report it
 * @options: program, executable, method and force count
 * @library: NULL: none, as the method is to supervise
 * Returns 0, or -errno if the program can't be executed.
 */
int launch_plan(struct launch *out, const struct options *options, const struct library *library, const struct preload_caller *caller);

/*
 * launch() - become the program
 * Returns only if that fails: the exit status, with the reason said on standard error.
 */
int launch(const struct options *options);

#endif
