/* SPDX-License-Identifier: BSD-3-Clause */
/* start.h - starts a program whose calls the supervisor answers */
#ifndef SUPERVISE_START_H
#define SUPERVISE_START_H

#include "supervise/command.h"

#include <signal.h>
#include <sys/types.h>

/* A child that has installed the filter, and waits. */
struct start {
	pid_t pid;
	int listener;
	int child; /* a socket to the child, until it executes the program */
};

/*
 * start_prepare() - fork a child that installs the filter, and test on it that the supervisor may do all that it needs
 * @mask: the signals that the program has blocked. Returns 0, or the exit status for convertize after it has reported the problem.
 */
int start_prepare(const struct supervise_command *command, const sigset_t *mask, struct start *out);

/* start_go() - let the child execute the program. Returns as above. */
int start_go(const struct supervise_command *command, struct start *start);

#endif
