/* SPDX-License-Identifier: BSD-3-Clause */
/* session.h - login sessions that are converted by default: "convertize enable --session" and "convertize environment" */
#ifndef CONVERTIZE_SESSION_H
#define CONVERTIZE_SESSION_H

#include "convertize/options/command_line.h"

/* Each returns the status to end with. */
int session_enable(struct options *options);
int session_disable(struct options *options);
int session_environment(struct options *options);

/* Prints a line for "convertize list". Returns false if a session is to be converted and won't be, with the reason on standard error. */
bool session_list(void);

#endif
