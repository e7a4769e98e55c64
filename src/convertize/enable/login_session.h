/* SPDX-License-Identifier: BSD-3-Clause */
/* login_session.h - converts login sessions by default: "convertize enable --session" and "convertize environment" */
#ifndef CONVERTIZE_LOGIN_SESSION_H
#define CONVERTIZE_LOGIN_SESSION_H

#include "convertize/options/command_line.h"

/* Each returns the exit status. */
int login_session_enable(struct options *options);
int login_session_disable(struct options *options);
int login_session_environment(struct options *options);

/*
 * Prints a line for "convertize list". Returns false if a file wants sessions converted and a mistake prevents that, with the reason on
 * standard error.
 */
bool login_session_list(void);

#endif
