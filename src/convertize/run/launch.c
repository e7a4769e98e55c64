/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.c - run a program with libconvert.so preloaded, or under supervision
 *
 * A program that preloading can't reach would run unconverted without any notice. So we inspect it first, and supervise it
 * (src/supervise) if that reaches it. A program that neither reaches runs only with --force.
 */
#include "config.h"

#include "convertize/run/launch.h"

#include "client/settings.h"
#include "host/survey.h"
#include "supervise/supervise.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ADDRESS_VARIABLE "CONVERT_ADDR"
#define WARN_VARIABLE "CONVERT_WARN"
#define PRELOAD_VARIABLE "LD_PRELOAD"
#define PRELOAD_NAME "libconvert.so"

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
 * AddressSanitizer ends a program with any library in front of its own, since it must see memory before other libraries do. For sockets
 * that doesn't matter, so we switch its check off.
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

/*
 * Makes the log's name absolute, here and in the environment: the library opens the file anew for each line, and its program may have
 * changed the directory. Returns false with errno set.
 */
static bool log_make_absolute(char log[static SETTINGS_PATH_MAX])
{
	char path[SETTINGS_PATH_MAX];
	size_t len;

	if (*log == '/')
		return true;
	if (!getcwd(path, sizeof(path)))
		return false;
	len = strlen(path);
	if (len + 1 + strlen(log) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	path[len] = '/';
	strcpy(path + len + 1, log);
	strcpy(log, path);
	return setenv(option_table[OPTION_LOG].variable, log, 1) == 0;
}

/*
 * Checks that the log is writable, as the library doesn't report that, and makes its name absolute. A FIFO without a reader (ENXIO) may
 * get one later.
 */
static bool prepare_log(const struct options *options, char log[static SETTINGS_PATH_MAX])
{
	char place[OPTIONS_PLACE_MAX];
	int fd;

	if (!*log || strcmp(log, "-") == 0)
		return true;
	fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	if (fd >= 0)
		close(fd);
	if ((fd >= 0 || errno == ENXIO) && log_make_absolute(log))
		return true;
	fprintf(stderr, "convertize: %s: %s: %s; name a file that can be written, in a directory that is there\n",
		options_place(options, OPTION_LOG, place), log, strerror(errno));
	return false;
}

/*
 * Refuses an IPv6 address without brackets whose end may be meant as a port: all of 2001:db8::1:1234 is an address. The end may be a
 * port if it has four digits and the address is complete without it. @list: converters, separated by commas
 */
static bool check_ports(const struct options *options, const char *list)
{
	char place[OPTIONS_PLACE_MAX], word[INET6_ADDRSTRLEN + 1];
	struct in6_addr address;

	for (const char *end; *list; list = end + (*end != '\0')) {
		const char *start = list + strspn(list, " \t"), *port;

		end = start + strcspn(start, ",");
		snprintf(word, sizeof(word), "%.*s", (int)(end - start), start);
		port = strrchr(word, ':');
		if (!port || strspn(port + 1, "0123456789") != 4 || strlen(port + 1) != 4 || port[1] == '0' ||
		    inet_pton(AF_INET6, word, &address) != 1)
			continue;
		word[port - word] = '\0';
		if (inet_pton(AF_INET6, word, &address) != 1)
			continue;
		fprintf(stderr, "convertize: %s: \"%s:%s\" may be an address or an address with a port; write [%s]:%s for port %s, or "
				"[%s:%s] for the address\n",
			options_place(options, OPTION_CONVERTER, place), word, port + 1, word, port + 1, port + 1, word, port + 1);
		return false;
	}
	return true;
}

/* Refuses a log with a name like "yes" or "off": the user meant a switch. */
static bool check_log_name(const struct options *options, const char *log)
{
	static const char *const switches[] = { "yes", "no", "on", "off", "true", "false", "none" };
	char place[OPTIONS_PLACE_MAX];

	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
		if (strcmp(log, switches[i]) == 0) {
			fprintf(stderr, "convertize: %s: \"%s\" would be a file; name a file, or - for standard error, or leave it out for no "
					"log; ./%s is the file\n",
				options_place(options, OPTION_LOG, place), log, log);
			return false;
		}
	return true;
}

bool launch_read_settings(struct settings *settings, const struct options *options, bool needs_converter)
{
	const char *list = getenv(ADDRESS_VARIABLE);

	settings_read(settings, environment);
	if (settings->enabled)
		return check_ports(options, list) && check_log_name(options, settings->log);
	if (!list && !needs_converter)
		return true;
	if (list)
		options_explain(options, settings->problem);
	else
		fprintf(stderr, "convertize: no converter: name it with --converter, in " CONF_SYSTEM ", or set " ADDRESS_VARIABLE "\n");
	return false;
}

/* Adds the library to LD_PRELOAD, behind the entries that are there. */
static bool set_preload(const char *path)
{
	char *joined = wrapper_preloads_with(getenv(PRELOAD_VARIABLE), path);
	int ret = joined ? setenv(PRELOAD_VARIABLE, joined, 1) : -1;

	free(joined);
	return ret == 0;
}

/*
 * Reports a wrapper in the command, or one whose library LD_PRELOAD contains.
 * Returns 0, or the exit status.
 */
static int judge_wrapper(const struct options *options, const struct wrapper *wrapper)
{
	bool refused;

	if (!wrapper)
		wrapper = wrapper_of_preloads(getenv(PRELOAD_VARIABLE));
	if (!wrapper)
		return 0;
	refused = wrapper->refused && !options_has(options, OPTION_FORCE);
	if (refused || !options_has(options, OPTION_QUIET))
		fprintf(stderr, "convertize: %s%s %s%s%s%s\n", refused ? "" : "warning: ", wrapper->command,
		wrapper->problem, wrapper->remedy ? "; " : "", wrapper->remedy ? wrapper->remedy : "",
		refused ? "; --force runs it unconverted" : "");
	return refused ? STATUS_CANNOT_RUN : 0;
}

/* Does the program gain privileges on execution? Supervision sets no_new_privs, which prevents that. */
static bool needs_privileges(enum preload_verdict verdict)
{
	return verdict == PRELOAD_SETUID || verdict == PRELOAD_SETGID || verdict == PRELOAD_CAPABILITIES;
}

/* Prints why preloading doesn't reach the program. */
static void explain(const struct launch *launch, const char *level, const char *remedy, const char *consequence)
{
	char text[PRELOAD_TEXT_MAX];

	preload_describe(launch->verdict, &launch->program, launch->index, &launch->library->elf, text);
	fprintf(stderr, "convertize: %s%s%s%s%s\n", level, text, remedy ? "; " : "", remedy ? remedy : "", consequence);
}

/* Reports the verdict. Returns 0, or the exit status. Clears *@preload if the program wouldn't start with the library. */
static int judge(const struct launch *launch, bool *preload)
{
	enum preload_verdict verdict = launch->verdict;
	const bool refused = preload_level(verdict) == PRELOAD_LEVEL_REFUSED && !options_has(launch->options, OPTION_FORCE);

	if (preload_level(verdict) == PRELOAD_LEVEL_WORKS || (launch->wrapper && launch->wrapper->refused))
		return judge_wrapper(launch->options, launch->wrapper);
	if (refused || !options_has(launch->options, OPTION_QUIET))
		explain(launch, refused ? "" : "warning: ", preload_remedy(verdict), refused ? "; --force runs it unconverted" : "");
	*preload = verdict != PRELOAD_OTHER_LIBC && verdict != PRELOAD_FOREIGN;
	return refused ? STATUS_CANNOT_RUN : 0;
}

/* Takes our library out of LD_PRELOAD: the supervisor reaches the program and all that it starts, and the library would disturb it. */
static bool unset_preload(void)
{
	char *joined = wrapper_preloads_without(getenv(PRELOAD_VARIABLE), PRELOAD_NAME);
	int ret = !joined ? -1 : *joined ? setenv(PRELOAD_VARIABLE, joined, 1) : unsetenv(PRELOAD_VARIABLE);

	free(joined);
	return ret == 0;
}

static bool has_preload(void)
{
	const char *list = getenv(PRELOAD_VARIABLE);

	return list && strstr(list, PRELOAD_NAME);
}

void launch_forget_warn(const struct options *options)
{
	if (has_preload() && !options_has(options, OPTION_WARN))
		unsetenv(WARN_VARIABLE);
}

static const char *file_of(const struct options *options)
{
	return options->executable ? options->executable : options->program[0];
}

static int run(const struct options *options)
{
	execvp(file_of(options), options->program);
	return supervise_exec_failed(file_of(options), errno);
}

static int variable_failed(const char *variable)
{
	fprintf(stderr, "convertize: %s: %s\n", variable, strerror(errno));
	return STATUS_NOT_RUN;
}

/* May preloading help where supervision fails? It may for a program that chroot(8) starts in a root with the library. */
static bool may_preload(const struct launch *launch)
{
	return launch->options->method == METHOD_AUTO && launch->wrapper && !launch->wrapper->refused &&
	       preload_level(launch->verdict) == PRELOAD_LEVEL_WORKS;
}

/* Returns the sentence about the consequence if the supervisor can't supervise the program. */
static const char *otherwise(const struct launch *launch)
{
	if (may_preload(launch))
		return "the library is preloaded in its place";
	if (options_has(launch->options, OPTION_FORCE))
		return "it runs unconverted";
	return launch->options->method == METHOD_AUTO ? "--force runs it unconverted" : "or use --method preload";
}

/*
 * Runs the program under supervision. Returns only if that fails. A convertize that has the library preloaded first executes itself
 * without it: the library would convert the supervisor's own connections.
 */
static int launch_supervised(const struct launch *launch, const struct settings *settings)
{
	const bool foreign = launch->verdict == PRELOAD_FOREIGN;
	const struct supervise_command command = {
		.file = foreign ? launch->program.files[0].path : file_of(launch->options),
		.binary = foreign,
		.argv = launch->options->program,
		.otherwise = otherwise(launch),
	};
	const struct wrapper *wrapper = launch->wrapper;
	const bool preloaded = has_preload();
	int status;

	if (needs_privileges(launch->verdict)) {
		explain(launch, "", preload_remedy(launch->verdict),
			"; supervised, it wouldn't have its privileges either (no_new_privs)");
		return STATUS_CANNOT_RUN;
	}
	if (!unset_preload())
		return variable_failed(PRELOAD_VARIABLE);
	if (preloaded) {
		syscall(SYS_execve, "/proc/self/exe", launch->options->arguments, environ); /* past the library's hook, which would warn */
		return variable_failed("/proc/self/exe");
	}
	if (launch->options->method == METHOD_AUTO && options_has(launch->options, OPTION_QUIET))
		;
	else if (launch->options->method == METHOD_AUTO && wrapper && preload_level(launch->verdict) == PRELOAD_LEVEL_WORKS)
		fprintf(stderr, "convertize: %s %s; it is supervised\n", wrapper->command, wrapper->problem);
	else if (launch->options->method == METHOD_AUTO)
		explain(launch, "", NULL, "; it is supervised");
	status = supervise(settings, &command);
	return status == STATUS_NOT_RUN && options_has(launch->options, OPTION_FORCE) ? run(launch->options) : status;
}

/* Runs the program under the supervisor that this process already has. Returns only if that fails. */
static int launch_as_is(const struct options *options)
{
	if (!options_has(options, OPTION_QUIET) && options->given & ~(UINT64_C(1) << OPTION_METHOD | UINT64_C(1) << OPTION_EXECUTABLE))
		fprintf(stderr, "convertize: another convertize supervises this program already, and its settings hold\n");
	return unset_preload() ? run(options) : variable_failed(PRELOAD_VARIABLE);
}

/* Tells the library to have this convertize start child programs that the library doesn't reach. */
static bool set_supervisor(const struct options *options)
{
	char path[PATH_MAX];
	ssize_t len;

	if (options->method != METHOD_AUTO)
		return unsetenv(SETTINGS_SUPERVISOR_VARIABLE) == 0;
	len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (len < 0)
		return false;
	path[len] = '\0';
	return setenv(SETTINGS_SUPERVISOR_VARIABLE, path, 1) == 0;
}

/* Becomes the program, with the library preloaded. Returns only if that fails. */
static int launch_preloaded(const struct launch *launch, const struct library *library, const struct settings *settings)
{
	bool preload = true;
	int status = judge(launch, &preload);

	if (status)
		return status;
	if (preload && (!set_preload(library_preload(library, launch->library)) || !suit_sanitizer(&launch->program)))
		return variable_failed(PRELOAD_VARIABLE);
	if (!set_supervisor(launch->options))
		return variable_failed(SETTINGS_SUPERVISOR_VARIABLE);
	/* the library warns of each child program that it doesn't reach */
	if (setenv(WARN_VARIABLE, options_has(launch->options, OPTION_QUIET) ? "0" : "1", 0) < 0)
		return variable_failed(WARN_VARIABLE);
	trials_start(settings);
	return run(launch->options);
}

/*
 * Does the wrapper prevent preloading, but not supervision? A set-user-ID wrapper that root starts has all privileges that it
 * needs, even under supervision.
 */
static bool wrapper_leaves_to_supervisor(const struct launch *launch, const struct preload_caller *caller)
{
	const struct wrapper *wrapper = launch->wrapper;

	return wrapper && preload_level(launch->verdict) == PRELOAD_LEVEL_WORKS && !options_has(launch->options, OPTION_FORCE) &&
	       (wrapper->supervised == WRAPPER_SUPERVISED || (wrapper->supervised == WRAPPER_SUPERVISED_BY_ROOT && caller->uid == 0));
}

/*
 * Chooses the user's --method, or else one that suits the program. A program for another machine runs only by an emulator
 * (binfmt_misc), which makes this machine's system calls: the supervisor reaches these.
 */
static enum launch_way way_of(const struct launch *launch, const struct preload_caller *caller)
{
	const enum options_method method = launch->options->method;

	if (method == METHOD_SUPERVISE)
		return needs_privileges(launch->verdict) ? LAUNCH_UNREACHED : LAUNCH_SUPERVISED;
	if (method == METHOD_AUTO && launch->wrapper && launch->wrapper->refused && launch->wrapper->supervised == WRAPPER_UNSUPERVISED)
		return LAUNCH_UNREACHED;
	if (method == METHOD_AUTO && (launch->verdict == PRELOAD_FOREIGN || wrapper_leaves_to_supervisor(launch, caller) ||
				      preload_leaves_to_supervisor(launch->verdict, &launch->program.files[launch->index].elf)))
		return LAUNCH_SUPERVISED;
	return preload_level(launch->verdict) == PRELOAD_LEVEL_REFUSED || (launch->wrapper && launch->wrapper->refused) ?
		       LAUNCH_UNREACHED :
		       LAUNCH_PRELOADED;
}

/* Is it the file of this program? convertize has such calls, but makes none on behalf of the program that it starts. */
static bool is_ourselves(const char *path)
{
	struct stat file, self;

	return stat(path, &file) == 0 && stat("/proc/self/exe", &self) == 0 && file.st_dev == self.st_dev && file.st_ino == self.st_ino;
}

int launch_plan(struct launch *out, const struct options *options, const struct library *library, const struct preload_caller *caller)
{
	static const struct library_build none;
	int ret;

	out->options = options;
	out->wrapper = wrapper_of_command(options->program);
	ret = program_inspect(&out->program, file_of(options));
	if (ret < 0)
		return ret;
	if (!out->wrapper)
		out->wrapper = wrapper_of_file(out->program.files[0].path);
	out->library = library ? library_for(library, &out->program) : &none;
	out->verdict = preload_program_verdict(&out->program, &out->library->elf, caller, &out->index);
	if (out->verdict == PRELOAD_WORKS && !is_ourselves(out->program.files[out->index].path) &&
	    own_connects(out->program.files[out->index].path))
		out->verdict = PRELOAD_OWN_CONNECTS;
	out->way = way_of(out, caller);
	return 0;
}

bool launch_find_library(struct library *out)
{
	static char problem[LIBRARY_PROBLEM_MAX];

	if (library_find(out, option_value(OPTION_LIBRARY), problem))
		return true;
	fprintf(stderr, "convertize: %s\n", problem);
	return false;
}

/*
 * If no program has that name, suggests a similar command of convertize, or to leave out quotes around a program with its arguments.
 * Returns whether it has.
 */
static bool is_mistyped(const struct options *options)
{
	const char *word = options->program[0], *similar = options->executable ? NULL : options_similar(word, false);
	static struct program program;

	if ((!similar && !strchr(word, ' ')) || program_inspect(&program, word) != -ENOENT)
		return false;
	if (strchr(word, ' ')) {
		fprintf(stderr, "convertize: \"%s\": there is no such program; leave the quotes out: its arguments are separate words\n",
			word);
		return true;
	}
	fprintf(stderr, "convertize: %s: there is no such command or program; did you mean \"convertize %s\"?\n", word, similar);
	return true;
}

/* Tells the user of an interactive shell that it is converted, since nothing else shows that. */
static void announce_shell(const struct options *options)
{
	static const char *const shells[] = { "sh", "bash", "dash", "zsh", "fish", "ksh", "mksh" };
	const char *name = strrchr(options->program[0], '/') ? strrchr(options->program[0], '/') + 1 : options->program[0];

	if (options_has(options, OPTION_QUIET) || options->program[1] || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return;
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (strcmp(name, shells[i]) == 0)
			fprintf(stderr, "convertize: the connections of this %s and of its programs are converted until it exits\n", name);
}

int launch(const struct options *options)
{
	static struct library library;
	static struct settings settings;
	static struct launch launch;
	const bool preloads = options->method != METHOD_SUPERVISE;
	struct preload_caller caller = launch_caller();
	int status;

	if (is_mistyped(options))
		return STATUS_NOT_FOUND;
	if (!launch_read_settings(&settings, options, true) || !prepare_log(options, settings.log))
		return STATUS_NOT_RUN;
	if (supervise_is_nested())
		return launch_as_is(options);
	if (preloads && !launch_find_library(&library))
		return STATUS_NOT_RUN;
	status = launch_plan(&launch, options, preloads ? &library : NULL, &caller);
	if (status < 0)
		return supervise_exec_failed(file_of(options), -status);
	if (launch.way != LAUNCH_UNREACHED)
		announce_shell(options);
	status = launch.way == LAUNCH_SUPERVISED || !preloads ? launch_supervised(&launch, &settings) : 0;
	if (status && !(status == STATUS_NOT_RUN && may_preload(&launch)))
		return status;
	return launch_preloaded(&launch, &library, &settings);
}
