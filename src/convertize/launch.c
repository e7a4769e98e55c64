/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.c - run a program with libconvert.so preloaded
 *
 * A program that preloading can't reach would run unconverted without a word. It is looked at
 * first, and not run unless the user insists.
 */
#include "config.h"

#include "convertize/launch.h"

#include "convertize/library.h"
#include "convertize/wrapper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PRELOAD_VARIABLE "LD_PRELOAD"

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

/*
 * AddressSanitizer ends a program that has any library in front of its own. It needs to see the program's
 * memory before others do, not its sockets.
 */
static bool suit_sanitizer(const struct program *program)
{
	static const char variable[] = "ASAN_OPTIONS", option[] = "verify_asan_link_order=0";
	const char *before = getenv(variable);
	char *joined;
	int ret;

	if (!program->files[program->count - 1].elf.needs_asan)
		return true;
	if (asprintf(&joined, "%s%s%s", option, before ? ":" : "", before ? before : "") < 0)
		return false;
	ret = setenv(variable, joined, 1);
	free(joined);
	return ret == 0;
}

/* Can the log be written? The library itself says nothing if it can't. A FIFO without a reader (ENXIO) may get one later. */
static bool check_log(const struct options *options, const char *path)
{
	char variable[] = "CONVERT_LOG", option[OPTIONS_EXPLAIN_MAX];
	int fd;

	if (!*path || strcmp(path, "-") == 0)
		return true;
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 || errno == ENXIO)
		return true;
	options_explain(options, variable, option);
	fprintf(stderr, "convertize: %s: %s: %s; name a file that can be written, in a directory that is there\n",
		option, path, strerror(errno));
	return false;
}

bool launch_read_settings(struct settings *settings, const struct options *options)
{
	const char *rest;
	char option[OPTIONS_EXPLAIN_MAX];

	settings_read(settings, environment);
	if (settings->enabled)
		return true;
	if (!getenv("CONVERT_ADDR")) {
		fprintf(stderr, "convertize: no converter: name it with --converter, in " CONF_SYSTEM ", or set "
				"CONVERT_ADDR\n");
		return false;
	}
	rest = options_explain(options, settings->problem, option);
	fprintf(stderr, "convertize: %s%s\n", option, rest);
	return false;
}

/* Adds the library to LD_PRELOAD, behind what is preloaded already. */
static bool set_preload(const char *path)
{
	char *joined = wrapper_preloads_with(getenv(PRELOAD_VARIABLE), path);
	int ret = joined ? setenv(PRELOAD_VARIABLE, joined, 1) : -1;

	free(joined);
	return ret == 0;
}

/*
 * Looks for wrappers of the program, which have a say in what is preloaded, and for other preload libraries.
 * Returns 0, or the status to end with.
 */
static int judge_wrapper(const struct options *options)
{
	const struct wrapper *wrapper = wrapper_of_command(options->program);
	bool refused;

	if (!wrapper)
		wrapper = wrapper_of_preloads(getenv(PRELOAD_VARIABLE));
	if (!wrapper)
		return 0;
	refused = wrapper->refused && !options->force;
	fprintf(stderr, "convertize: %s%s %s%s%s%s\n", refused ? "" : "warning: ", wrapper->command,
		wrapper->problem, wrapper->remedy ? "; " : "", wrapper->remedy ? wrapper->remedy : "",
		refused ? "; --force runs it unconverted" : "");
	return refused ? OPTIONS_STATUS_CANNOT_RUN : 0;
}

/* Returns 0, or the status to end with; *@preload is cleared if the program wouldn't start with the library. */
static int judge(const struct options *options, const struct program *program,
		 const struct library_build *library, bool *preload)
{
	struct preload_caller caller = launch_caller();
	char text[PRELOAD_TEXT_MAX];
	size_t index;
	enum preload_verdict verdict =
		preload_program_verdict(program, &library->elf, &caller, &index);
	const char *remedy = preload_remedy(verdict);
	bool refused = preload_level(verdict) == PRELOAD_LEVEL_REFUSED;

	if (preload_level(verdict) == PRELOAD_LEVEL_WORKS)
		return judge_wrapper(options);
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
	static struct settings settings;
	const struct library_build *build;
	bool preload = true;
	int status;

	if (!launch_read_settings(&settings, options) || !check_log(options, settings.log))
		return OPTIONS_STATUS_FAILED;
	if (!library_find(&library, options->library, problem)) {
		fprintf(stderr, "convertize: %s\n", problem);
		return OPTIONS_STATUS_FAILED;
	}
	status = program_inspect(&program, options->program[0]);
	if (status < 0)
		return cannot_run(options->program[0], -status);
	build = library_for(&library, &program);
	status = judge(options, &program, build, &preload);
	if (status)
		return status;
	if (preload && (!set_preload(library_preload(&library, build)) || !suit_sanitizer(&program))) {
		fprintf(stderr, "convertize: %s: %s\n", PRELOAD_VARIABLE, strerror(errno));
		return OPTIONS_STATUS_FAILED;
	}
	execvp(options->program[0], options->program);
	return cannot_run(options->program[0], errno);
}
