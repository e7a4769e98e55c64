/* SPDX-License-Identifier: BSD-3-Clause */
/* launch.h - run a program with libconvert.so preloaded */
#ifndef CONVERTIZE_LAUNCH_H
#define CONVERTIZE_LAUNCH_H

#include "client/settings.h"
#include "common/preload.h"
#include "convertize/options/command_line.h"

/* The user and group that a program would be executed by now. */
struct preload_caller launch_caller(void);

/* Reads the settings, all zero before. Returns false after saying what is missing or wrong, with where it was set. */
bool launch_read_settings(struct settings *settings, const struct options *options);

/*
 * launch() - become the program
 * Returns only if that fails: the exit status, with the reason said on standard error.
 */
int launch(const struct options *options);

#endif
