/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conf.h - convertize.conf: the defaults of an administrator and of a user, and whose sessions are converted
 *
 * convertize reads the files; libconvert.so, which lives in other people's processes, never does. The command line and the
 * environment override the user's file, and that overrides the administrator's.
 */
#ifndef CONVERTIZE_CONF_H
#define CONVERTIZE_CONF_H

#include "common/problems.h"
#include "convertize/options/command_line.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CONF_BYTES_MAX (256 * 1024)

enum conf_session { CONF_SESSION_UNSET, CONF_SESSION_NO, CONF_SESSION_YES };

struct conf {
	char path[PATH_MAX];
	bool is_system;                   /* the administrator's file, which may choose the users whose sessions are converted */
	char *values[OPTION_COUNT];       /* of the variables; NULL: not in the file */
	unsigned int lines[OPTION_COUNT]; /* the first line that has it; 0: none */
	enum conf_session session;
	unsigned int session_line;
	char *users, *groups;             /* names with a blank behind each; NULL: the file names none */
};

/*
 * conf_parse() - parse the text of a file; without I/O
 * @conf: path and is_system are set, the rest is zero. conf_fini() frees the values.
 * @text: has @len bytes and room for one more; the parser overwrites it
 * Adds each mistake to @problems, with its line. settings_read() checks the values later.
 */
void conf_parse(struct conf *conf, char *text, size_t len, struct problems *problems);

void conf_fini(struct conf *conf);

/* The files, in the order of precedence: the user's before the administrator's. */
struct conf_files {
	struct conf files[2];
	size_t count;
};

/*
 * conf_load() - read the files and set the variables that the environment doesn't have
 * @options: origin gets the file and line of each variable
 * @system_only: leave the user's own file out
 * Returns false after naming the mistakes on standard error. A missing file is no mistake, unless CONVERT_CONFIG names it.
 */
bool conf_load(struct conf_files *out, struct options *options, bool system_only);

/* Writes the path of the user's own file. Returns false if the user has no home directory. */
bool conf_user_path(char path[static PATH_MAX]);

/* The user of a session. */
struct login_user {
	uid_t uid;
	const char *name;          /* NULL: unknown */
	const char *const *groups; /* names, ending with NULL */
};

/*
 * conf_session() - do the files want the user's sessions converted? Without I/O.
 * @file: set to the file that decides; NULL: none does
 * The user's own file overrides the administrator's. That applies to the users and groups that it names, or to all users but root.
 */
bool conf_session(const struct conf_files *files, const struct login_user *user, const char **file);

#endif
