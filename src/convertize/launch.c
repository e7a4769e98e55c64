/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.c - run a program with libconvert.so preloaded
 *
 * A program that preloading can't reach would run unconverted without a word. It is looked at
 * first, and not run unless the user insists.
 */
#include "config.h"

#include "convertize/launch.h"

#include "client/settings.h"
#include "convertize/library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PRELOAD_VARIABLE "LD_PRELOAD"
#define PRELOAD_SEPARATORS ": \t\n" /* ld.so(8) names the first two; glibc and musl take blanks */

struct preload_caller launch_caller(void)
{
	return (struct preload_caller){
		.uid = getuid(),
		.gid = getgid(),
		.no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
	};
}

static const char *environment(const char *name)
{
	return getenv(name);
}

static bool check_settings(const struct options *options)
{
	static struct settings settings;
	const char *rest;
	char option[32];

	settings_read(&settings, environment);
	if (settings.enabled)
		return true;
	if (!getenv("CONVERT_ADDR")) {
		fprintf(stderr, "convertize: no converter: name it with --converter, or set "
				"CONVERT_ADDR\n");
		return false;
	}
	rest = options_explain(options, settings.problem, option);
	fprintf(stderr, "convertize: %s%s\n", option, rest);
	return false;
}

static bool is_listed(const char *list, const char *path)
{
	size_t len;

	for (list += strspn(list, PRELOAD_SEPARATORS); *list;
	     list += len + strspn(list + len, PRELOAD_SEPARATORS)) {
		len = strcspn(list, PRELOAD_SEPARATORS);
		if (len == strlen(path) && memcmp(list, path, len) == 0)
			return true;
	}
	return false;
}

/* In front of what is preloaded already, once. */
static bool set_preload(const char *path)
{
	const char *before = getenv(PRELOAD_VARIABLE);
	char *joined;
	int ret;

	if (!before || !*before)
		return setenv(PRELOAD_VARIABLE, path, 1) == 0;
	if (is_listed(before, path))
		return true;
	if (asprintf(&joined, "%s:%s", path, before) < 0)
		return false;
	ret = setenv(PRELOAD_VARIABLE, joined, 1);
	free(joined);
	return ret == 0;
}

/* 0, or the status to end with; *@preload is cleared if the library would keep it from starting. */
static int judge(const struct options *options, const struct program *program,
		 const struct library *library, bool *preload)
{
	struct preload_caller caller = launch_caller();
	char text[PRELOAD_TEXT_MAX];
	size_t index;
	enum preload_verdict verdict =
		preload_program_verdict(program, &library->elf, &caller, &index);
	const char *remedy = preload_remedy(verdict);
	bool refused = preload_level(verdict) == PRELOAD_LEVEL_REFUSED;

	if (preload_level(verdict) == PRELOAD_LEVEL_WORKS)
		return 0;
	preload_describe(verdict, program, index, &library->elf, text);
	fprintf(stderr, "convertize: %s%s%s%s%s\n", refused && !options->force ? "" : "warning: ",
		text, remedy ? "; " : "", remedy ? remedy : "",
		refused && !options->force ? "; --force runs it unconverted" : "");
	*preload = verdict != PRELOAD_OTHER_LIBC && verdict != PRELOAD_FOREIGN;
	return refused && !options->force ? OPTIONS_STATUS_CANNOT_RUN : 0;
}

static int cannot_run(const char *command, int error)
{
	fprintf(stderr, "convertize: %s: %s\n", command,
		error == ENOENT && !strchr(command, '/') ? "command not found" : strerror(error));
	return error == ENOENT ? OPTIONS_STATUS_NOT_FOUND : OPTIONS_STATUS_CANNOT_RUN;
}

int launch(const struct options *options)
{
	static char problem[LIBRARY_PROBLEM_MAX];
	static struct program program;
	static struct library library;
	bool preload = true;
	int status;

	if (!check_settings(options))
		return OPTIONS_STATUS_FAILED;
	if (!library_find(&library, options->library, problem)) {
		fprintf(stderr, "convertize: %s\n", problem);
		return OPTIONS_STATUS_FAILED;
	}
	status = program_inspect(&program, options->program[0]);
	if (status < 0)
		return cannot_run(options->program[0], -status);
	status = judge(options, &program, &library, &preload);
	if (status)
		return status;
	if (preload && !set_preload(library.path)) {
		fprintf(stderr, "convertize: %s: %s\n", PRELOAD_VARIABLE, strerror(errno));
		return OPTIONS_STATUS_FAILED;
	}
	execvp(options->program[0], options->program);
	return cannot_run(options->program[0], errno);
}
