/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.h - login sessions that are converted by default
 *
 * convertize.conf says whether a user's sessions are. "convertize environment" prints the variables for that, and profile.d and
 * systemd's user-environment-generators take them from there; a user switches it on and off by "convertize enable --session".
 */
#ifndef CONVERTIZE_SESSION_H
#define CONVERTIZE_SESSION_H

#include "convertize/options/conf.h"
#include "convertize/options/command_line.h"

#include <sys/types.h>

/* Whom a session is for. */
struct session_user {
	uid_t uid;
	const char *name;          /* NULL: unknown */
	const char *const *groups; /* names, ending with NULL */
};

/*
 * session_decide() - are the user's sessions converted? Without I/O.
 * @file: set to the file that says so, or that says no; NULL: no file does
 * A user's own word counts. The administrator's is for all users but root, or for those who are named.
 */
bool session_decide(const struct conf_files *files, const struct session_user *user, const char **file);

/* Each returns the status to end with. */
int session_enable(struct options *options);
int session_disable(struct options *options);
int session_environment(struct options *options);

/* Prints a line for "convertize list". */
void session_list(void);

#endif
