/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * login_session.c - converts login sessions by default
 *
 * convertize.conf says whether a user's sessions are converted. profile.d and systemd's environment generators take the variables from
 * "convertize environment". A session must start in any case: after a mistake "environment" prints no variable, its scripts throw the
 * reason away, and "convertize list" shows it. The session's set-user-ID programs are not affected: the loader ignores a library in
 * LD_PRELOAD whose name has a slash (ld.so(8)).
 */
#include "config.h"

#include "convertize/enable/enable.h"
#include "convertize/options/command_line.h"
#include "convertize/run/launch.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS_MAX 1024
#define ADDRESS_VARIABLE "CONVERT_ADDR"
#define LIBRARY_NAME "libconvert.so"
#define PROFILE CONVERTIZE_SYSCONFDIR "/profile.d/convertize.sh" /* for login shells: see contrib/local.mk */
#define ELSEWHERE "/etc/environment or a file of /etc/profile.d" /* where administrators set variables of sessions */

enum login_session_state {
	LOGIN_SESSION_OFF,       /* no file wants it converted */
	LOGIN_SESSION_DECLINED,  /* the user has set an empty CONVERT_ADDR */
	LOGIN_SESSION_INHERITED, /* it is part of a converted session */
	LOGIN_SESSION_ON,
	LOGIN_SESSION_WRONG,     /* it starts unconverted, as a file has a mistake, or wants it converted and something prevents that */
};

struct login_session {
	struct conf_files files;
	const char *file; /* that decides; NULL: none */
	struct library library;
};

/* Finds the user of this process. The names stay allocated. */
static void find_user(struct login_user *user)
{
	static const char *names[GROUPS_MAX + 2];
	static gid_t groups[GROUPS_MAX + 1];
	const struct passwd *passwd = getpwuid(getuid());
	int count = getgroups(GROUPS_MAX, groups), known = 0;

	user->uid = getuid();
	user->name = passwd ? strdup(passwd->pw_name) : NULL;
	groups[count < 0 ? 0 : count] = getgid();
	for (int i = 0; i <= (count < 0 ? 0 : count); i++) {
		const struct group *group = getgrgid(groups[i]);

		names[known] = group ? strdup(group->gr_name) : NULL;
		known += names[known] != NULL;
	}
	names[known] = NULL;
	user->groups = names;
}

/* Unsets the library's variables, so that only the files count. @all: also those of convertize */
static void clear_variables(bool all)
{
	for (int i = 0; i < OPTION_COUNT; i++)
		if (option_is_library_variable((enum option_id)i) || (all && option_table[i].variable))
			unsetenv(option_table[i].variable);
}

/* Does each value that a file has set fit into a line? */
static bool values_are_plain(const struct options *options)
{
	for (int i = 0; i < OPTION_COUNT; i++) {
		const struct options_origin *origin = &options->origin[i];

		if (!origin->file || unit_value_is_plain(getenv(option_table[i].variable)))
			continue;
		fprintf(stderr, "convertize: %s:%u: %s: has a control character\n", origin->file, origin->line, option_table[i].name);
		return false;
	}
	return true;
}

/*
 * Determines the state of a session; all commands use it. Names each mistake on standard error.
 * @next: judge the next login session, which doesn't inherit the variables of a converted session around this process
 */
static enum login_session_state find_session(struct login_session *out, struct options *options, bool next)
{
	static struct settings settings;
	const char *preloads = getenv("LD_PRELOAD"), *set;
	struct login_user user;

	memset(out, 0, sizeof(*out));
	set = options_has(options, OPTION_CONVERTER) ? NULL : getenv(ADDRESS_VARIABLE);
	if (set && *set && preloads && strstr(preloads, LIBRARY_NAME)) {
		if (!next)
			return LOGIN_SESSION_INHERITED;
		clear_variables(false);
		set = NULL;
	}
	if (set && !*set)
		return LOGIN_SESSION_DECLINED;
	if (!conf_load(&out->files, options, false))
		return LOGIN_SESSION_WRONG;
	find_user(&user);
	if (!conf_session(&out->files, &user, &out->file))
		return LOGIN_SESSION_OFF;
	if (set) {
		fprintf(stderr, "convertize: %s converts sessions, and " ADDRESS_VARIABLE " is set to \"%.200s\" outside of it, so that they "
				"stay as they are; unset it there, such as in " ELSEWHERE "\n",
			out->file, set);
		return LOGIN_SESSION_WRONG;
	}
	if (!launch_read_settings(&settings, options, true) || !enable_check_log(options, settings.log) || !values_are_plain(options))
		return LOGIN_SESSION_WRONG;
	return launch_find_library(&out->library) ? LOGIN_SESSION_ON : LOGIN_SESSION_WRONG;
}

static void print_variable(bool shell, const char *name, const char *value)
{
	fputs(shell ? "export " : "", stdout);
	unit_write_quoted(stdout, name, value);
}

int login_session_environment(struct options *options)
{
	static struct login_session session;
	enum login_session_state state = find_session(&session, options, false);
	char *preload;

	if (state != LOGIN_SESSION_ON)
		return state == LOGIN_SESSION_WRONG ? STATUS_USAGE : EXIT_SUCCESS;
	preload = wrapper_preloads_with(getenv("LD_PRELOAD"), library_preload(&session.library, &session.library.builds[0]));
	if (!preload || !unit_value_is_plain(preload)) {
		fputs("convertize: LD_PRELOAD has a control character; correct it\n", stderr);
		free(preload);
		return STATUS_FAILED;
	}
	for (int i = 0; i < OPTION_COUNT; i++)
		if (option_is_library_variable((enum option_id)i) &&
		    (options->origin[i].file || options_has(options, (enum option_id)i)))
			print_variable(options_has(options, OPTION_SHELL), option_table[i].variable, getenv(option_table[i].variable));
	/* comes last: a shell that stops reading early then doesn't preload the library without a converter */
	print_variable(options_has(options, OPTION_SHELL), "LD_PRELOAD", preload);
	free(preload);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : STATUS_FAILED;
}

/* Tells a user the remedy if the login shell reads profile.d on some distributions only (zsh), or never (the others). */
static void tell_shell(void)
{
	static const char *const others[] = { "fish", "csh", "tcsh" };
	const struct passwd *passwd = getpwuid(getuid());
	const char *path = passwd && passwd->pw_shell ? passwd->pw_shell : "", *slash = strrchr(path, '/');
	const char *shell = slash ? slash + 1 : path;

	if (strcmp(shell, "zsh") == 0)
		puts("The login shell zsh may not read " PROFILE ": add the line \"emulate sh -c '. " PROFILE "'\" to ~/.zprofile.");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(shell, others[i]) == 0)
			printf("The login shell %s may not read " PROFILE ": for a converted one, run \"convertize %s\".\n", shell, shell);
}

bool login_session_list(void)
{
	static struct options options = { .command = COMMAND_ENVIRONMENT };
	static struct login_session session;
	enum login_session_state state = find_session(&session, &options, true);

	switch (state) {
	case LOGIN_SESSION_ON:
		printf("Login sessions of this user are converted, by %s: %s.\n", session.file, getenv(ADDRESS_VARIABLE));
		tell_shell();
		break;
	case LOGIN_SESSION_WRONG:
		printf("Login sessions of this user are not converted: see the reason on standard error.\n");
		break;
	case LOGIN_SESSION_DECLINED:
		printf("Login sessions with an empty " ADDRESS_VARIABLE ", as here, are not converted.\n");
		break;
	default:
		printf("Login sessions of this user are not converted%s%s.\n", session.file ? ", by " : "",
		       session.file ? session.file : "");
	}
	return state != LOGIN_SESSION_WRONG;
}

/* Can a line of the file contain the value as it is? A # after a blank would begin a comment. */
static bool is_line(const char *value)
{
	size_t len = strlen(value);

	return unit_value_is_plain(value) && len && !strchr(" #", value[0]) && value[len - 1] != ' ' && !strstr(value, " #");
}

/*
 * Composes the user's file from the settings of the command line and the environment. Returns a text, which the caller frees, or NULL
 * if the file can't contain a value.
 */
static char *compose(const struct options *options, bool on)
{
	char *text = NULL;
	bool right = true;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out,
		UNIT_MARKER ": \"convertize enable --session\" writes this file anew, and \"convertize disable --session\"\n"
			    "# takes it back. Without this line it is yours alone. See convertize.conf(5).\n"
			    "session %s\n",
		on ? "yes" : "no");
	for (int i = 0; on && i < OPTION_COUNT; i++) {
		const struct option_row *row = &option_table[i];
		const char *value = option_is_setting((enum option_id)i) ? getenv(row->variable) : NULL;

		/* leave the administrator's settings out, which sessions read themselves; keep those of --config, which they don't read */
		if (!value || !*value || !(row->scope & SCOPE(COMMAND_ENABLE)) ||
		    (options->origin[i].file && strcmp(options->origin[i].file, CONF_SYSTEM) == 0))
			continue;
		if (!row->argument)
			value = strcmp(value, row->value) == 0 ? "yes" : "no";
		if (!is_line(value)) {
			fprintf(stderr, "convertize: %s: \"%.100s\" can't stand in a file of lines\n", row->variable, value);
			right = false;
		}
		fprintf(out, "%s = %s\n", row->name, value);
	}
	return unit_text_finish(out, &text, right);
}

/* Finds the user's file. Returns false, with the reason printed, if there is no home directory or if the user wrote the file by hand. */
static bool find_file(char path[static PATH_MAX], const char *line)
{
	char *text;
	bool exists, ours;

	if (!conf_user_path(path, CONF_NAME)) {
		fputs("convertize: --session: HOME is not set to a directory; set it\n", stderr);
		return false;
	}
	exists = access(path, F_OK) == 0;
	text = exists ? own_read(path) : NULL;
	ours = text;
	free(text);
	if (exists && !ours)
		fprintf(stderr, "convertize: %s: you have written it yourself: write the line \"%s\" into it\n", path, line);
	return !exists || ours;
}

/* Checks that the next session will be in the state that the user asked for, and prints it. Returns the exit status. */
static int verify(bool on, bool quiet, const char *path)
{
	static struct options options = { .command = COMMAND_ENVIRONMENT };
	static struct login_session session;
	enum login_session_state state;

	clear_variables(true);
	state = find_session(&session, &options, true);
	if ((state == LOGIN_SESSION_ON) != on || state == LOGIN_SESSION_WRONG) {
		fprintf(stderr, "convertize: %s is written, and sessions are %s all the same\n", path,
			state == LOGIN_SESSION_ON ? "converted" : "not converted");
		return STATUS_FAILED;
	}
	if (!quiet)
		printf("Login sessions of this user are %sconverted, from the next one on (%s).\n", on ? "" : "not ", path);
	if (!quiet && on)
		tell_shell();
	return fflush(stdout) == 0 ? EXIT_SUCCESS : STATUS_FAILED;
}

static int write_file(const struct options *options, const char *path, bool on)
{
	char *text = compose(options, on);
	enum own_result result = OWN_FAILED;

	if (text && options_has(options, OPTION_DRY_RUN)) {
		printf("# %s\n%s", path, text);
		result = OWN_NOTHING;
	} else if (text) {
		result = own_write(path, text, 0600); /* it may contain a cookie */
	}
	free(text);
	if (result == OWN_FAILED)
		return STATUS_FAILED;
	if (options_has(options, OPTION_DRY_RUN))
		return fflush(stdout) == 0 ? EXIT_SUCCESS : STATUS_FAILED;
	return verify(on, options_has(options, OPTION_QUIET), path);
}

int login_session_enable(struct options *options)
{
	static struct settings settings;
	static struct conf_files files;
	static struct library library;
	const char *set = options_has(options, OPTION_CONVERTER) ? NULL : getenv(ADDRESS_VARIABLE), *preloads = getenv("LD_PRELOAD");
	bool elsewhere = set && *set && !(preloads && strstr(preloads, LIBRARY_NAME));
	char path[PATH_MAX];
	int status;

	launch_forget_warn(options);
	/* the settings of the user's own file don't count: we replace it */
	if (!find_file(path, "session yes") || !conf_load(&files, options, true) || !launch_read_settings(&settings, options, true) ||
	    !enable_check_log(options, settings.log))
		return STATUS_USAGE;
	if (!launch_find_library(&library))
		return STATUS_FAILED;
	status = write_file(options, path, true);
	if (status == EXIT_SUCCESS && elsewhere && !options_has(options, OPTION_QUIET) && !options_has(options, OPTION_DRY_RUN))
		puts("Sessions that have " ADDRESS_VARIABLE " already, as this one, stay as they are; unset it there, such as in " ELSEWHERE ".");
	return status;
}

int login_session_disable(struct options *options)
{
	static struct conf_files files;
	struct login_user user;
	char path[PATH_MAX];
	const char *file;

	if (!find_file(path, "session no"))
		return STATUS_USAGE;
	find_user(&user);
	/* if the administrator's file wants the session converted, or has a mistake, the user's file must say no */
	if (!conf_load(&files, options, true) || conf_session(&files, &user, &file))
		return write_file(options, path, false);
	if (options_has(options, OPTION_DRY_RUN))
		printf("remove %s\n", path);
	else if (own_remove(path, false) == OWN_FAILED)
		return STATUS_FAILED;
	else if (!options_has(options, OPTION_QUIET))
		puts("Login sessions of this user are not converted, from the next one on.");
	return fflush(stdout) == 0 ? EXIT_SUCCESS : STATUS_FAILED;
}
