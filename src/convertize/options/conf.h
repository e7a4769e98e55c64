/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conf.h - convertize.conf: the defaults of an administrator and of a user, and for whom sessions are converted
 *
 * The files are read by convertize and never by libconvert.so, which lives in other people's processes. A setting counts
 * where neither the command line nor the environment has it, the user's before the administrator's.
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
	bool is_system;                   /* the administrator's, who may say for which users sessions are converted */
	char *values[OPTION_COUNT];       /* of the variables; NULL: not in the file */
	unsigned int lines[OPTION_COUNT]; /* the first line that has it; 0: none */
	enum conf_session session;
	unsigned int session_line;
	char *users, *groups;             /* names with a blank behind each; NULL: none are named */
};

/*
 * conf_parse() - read the text of a file; without I/O
 * @conf: path and is_system are set, the rest is zero. conf_fini() frees the values.
 * @text: has @len bytes and room for one more; it is overwritten
 * Each mistake is added to @problems, with the line; values are judged by settings_read(), later.
 */
void conf_parse(struct conf *conf, char *text, size_t len, struct problems *problems);

void conf_fini(struct conf *conf);

/* The files that were read, the one that counts first. */
struct conf_files {
	struct conf files[2];
	size_t count;
};

/*
 * conf_load() - read the files and set those variables that aren't in the environment, noting it in @options->origin
 * @system_only: leave the user's own file out
 * What is wrong is said on standard error, and the result is false. A file that isn't there is no mistake, unless
 * CONVERT_CONFIG names it.
 */
bool conf_load(struct conf_files *out, struct options *options, bool system_only);

/* Writes the path of the user's own file; false if there is no home directory. */
bool conf_user_path(char path[static PATH_MAX]);

/* Whom a session is for. */
struct session_user {
	uid_t uid;
	const char *name;          /* NULL: unknown */
	const char *const *groups; /* names, ending with NULL */
};

/*
 * conf_session() - are the user's sessions converted? Without I/O.
 * @file: set to the file that decides; NULL: none does
 * The user's own file counts before the administrator's, which is about all users but root, or about those that it names.
 */
bool conf_session(const struct conf_files *files, const struct session_user *user, const char **file);

#endif
