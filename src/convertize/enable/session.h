/* SPDX-License-Identifier: BSD-3-Clause */
/* session.h - converts login sessions by default: "convertize enable --session" and "convertize environment" */
#ifndef CONVERTIZE_SESSION_H
#define CONVERTIZE_SESSION_H

#include "convertize/options/command_line.h"

/* Each returns the exit status. */
int session_enable(struct options *options);
int session_disable(struct options *options);
int session_environment(struct options *options);

/*
 * Prints a line for "convertize list". Returns false if a file wants sessions converted and a mistake prevents that, with the reason on
 * standard error.
 */
bool session_list(void);

#endif
