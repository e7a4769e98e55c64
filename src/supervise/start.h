/* SPDX-License-Identifier: BSD-3-Clause */
/* start.h - start a program whose calls the supervisor answers */
#ifndef SUPERVISE_START_H
#define SUPERVISE_START_H

#include "supervise/command.h"

#include <signal.h>
#include <sys/types.h>

/* A child that has the filter, and waits. */
struct start {
	pid_t pid;
	int listener;
	int child; /* speaks with it until it is the program */
};

/*
 * start_prepare() - fork a child that installs the filter, and try on it whether all that the supervisor needs is permitted here
 * @mask: the signals that the program has blocked. Returns 0, or the status for convertize to end
 * with, after saying what is wrong.
 */
int start_prepare(const struct supervise_command *command, const sigset_t *mask, struct start *out);

/* start_go() - have the child execute the program. Returns as above. */
int start_go(const struct supervise_command *command, struct start *start);

#endif
