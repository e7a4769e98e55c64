/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - "convertize check": can this machine, this network and this program do it? */
#include "config.h"

#include "convertize/check/check.h"

#include "common/os.h"
#include "convertize/run/launch.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREFIX "convertize: "
#define CHILD_TIMEOUT_MS 5000

/* Runs a program under supervision to see whether kernel and container permit that. Returns NULL, or the problem, to free. */
static char *supervision_problem(void)
{
	static const char *const argv[] = { "/proc/self/exe", "--config", "none", "--converter", "127.0.0.1", "--method", "supervise",
					    "--", "true", NULL };
	struct child_output said;
	char *problem = NULL;
	int ret = child_run(argv, CHILD_TIMEOUT_MS, &said);

	if (ret < 0)
		return strdup(strerror(-ret));
	if (said.status) {
		said.messages[strcspn(said.messages, "\n;")] = '\0';
		problem = strdup(strncmp(said.messages, PREFIX, strlen(PREFIX)) == 0 ? said.messages + strlen(PREFIX) : said.messages);
	}
	free(said.text);
	free(said.messages);
	return problem;
}

/* Reports a program that the launcher supervises. */
static struct fact *report_supervised(struct report *report, const char *text)
{
	char *problem = supervision_problem();
	struct fact *fact;

	if (problem) {
		fact = report_plain(report, FACT_FAIL, "program", "%s, and it can't be supervised here: %s", text, problem);
		fact_remedy(fact, "run it where supervision is permitted: see SUPERVISED PROGRAMS in convertize(1)");
	} else {
		fact = report_plain(report, FACT_OK, "program", "%s; convertize supervises it", text);
	}
	free(problem);
	return fact;
}

/* Reports how the launcher would run the program. */
static void check_program(struct report *report, const struct options *options, const struct library *library)
{
	static const enum fact_status statuses[] = { [PRELOAD_LEVEL_WORKS] = FACT_OK,
						     [PRELOAD_LEVEL_DOUBTFUL] = FACT_WARN,
						     [PRELOAD_LEVEL_REFUSED] = FACT_FAIL };
	const char *command = options->program[0];
	struct preload_caller caller = launch_caller();
	static struct launch plan;
	int error = -launch_plan(&plan, options, library, &caller);
	char text[PRELOAD_TEXT_MAX];
	struct fact *fact;

	if (error) {
		fact = report_fact(report, FACT_FAIL, "program", command, "can't be executed: %s", strerror(error));
		fact_remedy(fact, "%s", error == ENOENT ? "see that its name is right, and that it is installed" :
			    "name a program's file, with the permission to execute it (chmod +x)");
		fact_value_text(fact, "missing");
		return;
	}
	preload_describe(plan.verdict, &plan.program, plan.index, &plan.library->elf, text);
	if (plan.way == LAUNCH_SUPERVISED) {
		fact = report_supervised(report, text);
	} else if (plan.wrapper && (plan.wrapper->refused || preload_level(plan.verdict) == PRELOAD_LEVEL_WORKS)) {
		fact = report_plain(report, plan.wrapper->refused ? FACT_FAIL : FACT_WARN, "program", "%s %s", plan.wrapper->command,
				    plan.wrapper->problem);
		if (plan.wrapper->remedy)
			fact_remedy(fact, "%s", plan.wrapper->remedy);
	} else {
		fact = report_plain(report, statuses[preload_level(plan.verdict)], "program", "%s", text);
		if (preload_remedy(plan.verdict))
			fact_remedy(fact, "%s", preload_remedy(plan.verdict));
	}
	fact_value_text(fact, preload_name(plan.verdict));
}

/* Reports the library's path and, if there are several builds, their machines. */
static void report_library(struct report *report, const struct library *library)
{
	const struct library_build *own = &library->builds[0];
	char machines[LIBRARY_BUILDS_MAX * (ELF_MACHINE_STRLEN + 2)] = "", machine[ELF_MACHINE_STRLEN];
	struct fact *fact;
	size_t len = 0;

	for (size_t i = 0; library->count > 1 && i < library->count; i++)
		len += (size_t)snprintf(machines + len, sizeof(machines) - len, "%s%s", i ? "; " : ", for ",
					elf_machine_format(&library->builds[i].elf, machine));
	fact = report_plain(report, FACT_OK, "library", "the library is %s%s", library->count > 1 ? library_preload(library, own) :
			    own->path, machines);
	fact_value_text(fact, own->path);
}

/* Does the loader load the library? We try, and write the loader's reason. True if we can't try, as with another machine's library. */
static bool loads_library(const struct library_build *library, char problem[static LIBRARY_PROBLEM_MAX])
{
	char variable[sizeof("LD_PRELOAD=") + PATH_MAX], start[PATH_MAX + 64];
	const char *const argv[] = { "env", variable, "true", NULL }, *found;
	struct child_output said;
	struct elf_facts own;

	snprintf(variable, sizeof(variable), "LD_PRELOAD=%s", library->path);
	/* env(1) itself may complain of another library, which is preloaded here */
	snprintf(start, sizeof(start), "object '%s' from LD_PRELOAD cannot be preloaded (", library->path);
	if (program_read_elf(&own, "/proc/self/exe") < 0 || !elf_same_machine(&own, &library->elf) ||
	    child_run(argv, CHILD_TIMEOUT_MS, &said) < 0)
		return true;
	found = strstr(said.messages, start);
	problem[0] = '\0';
	if (found)
		snprintf(problem, LIBRARY_PROBLEM_MAX, "%.*s", (int)strcspn(found + strlen(start), "\n)"), found + strlen(start));
	else if (WIFSIGNALED(said.status))
		snprintf(problem, LIBRARY_PROBLEM_MAX, "programs crash with it");
	free(said.text);
	free(said.messages);
	return !problem[0];
}

static void check_library(struct report *report, const struct options *options)
{
	static char problem[LIBRARY_PROBLEM_MAX];
	static struct library library;
	bool loads;

	if (!library_find(&library, option_value(OPTION_LIBRARY), problem)) {
		report_plain(report, FACT_FAIL, "library", "%s", problem);
		return;
	}
	loads = loads_library(&library.builds[0], problem);
	if (loads)
		report_library(report, &library);
	else
		fact_remedy(report_plain(report, FACT_FAIL, "library", "%s: %s", library.builds[0].path, problem),
			    "install it again, where files may be executed, and for this system's C library");
	if (options->program)
		check_program(report, options, &library);
}

static void check_all(struct report *report, const struct options *options, const struct settings *settings)
{
	static struct check_addresses addresses;
	static struct check_networks networks;

	check_addresses_find(&addresses, settings);
	networks.error = -check_networks_read(&networks, settings, &addresses);
	check_kernel(report);
	check_networks_report(report, &networks);
	check_wishes(report, settings, &addresses);
	check_library(report, options);
	check_bypass(report, settings);
	check_cache(report, settings);
	check_gateway(report);
	report_flush(report); /* the connections may take seconds */
	check_converters(report, settings, &networks, &addresses, options->server);
	check_networks_fini(&networks);
}

/* --- --fix: the commands that repair this machine, printed or run ---------------------------------- */

static void print_command(char *const words[], const char *about, void *arg)
{
	(void)about;
	report_write_command(arg, words);
	fputc('\n', arg);
}

static void print_comment(char *const words[], const char *about, void *arg)
{
	fprintf(arg, "# on the converter %s, as root: ", about ? about : "");
	report_write_command(arg, words);
	fputc('\n', arg);
}

/* Prints the commands as lines for a shell, and those for the converter as comments. Prints nothing if the report is JSON. */
static void check_fix_print(const struct report *report)
{
	if (report->json)
		return;
	if (report_commands(report, COMMAND_HERE, NULL, NULL))
		fputs("# here, as root:\n", report->out);
	report_commands(report, COMMAND_HERE, print_command, report->out);
	report_commands(report, COMMAND_CONVERTER, print_comment, report->out);
}

/*
 * Runs a command with its standard output on our standard error. Returns its exit status or, as a shell does, 126 or 127 if it
 * can't run it, and 128 and the number of the signal that killed it.
 */
static int run(char *const words[])
{
	posix_spawn_file_actions_t actions;
	int error, status = 0;
	pid_t child;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
	error = posix_spawnp(&child, words[0], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error) {
		fprintf(stderr, "convertize: %s: %s\n", words[0], strerror(error));
		return error == ENOENT ? 127 : 126;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void run_command(char *const words[], const char *about, void *arg)
{
	struct report *later = arg;
	int status;

	(void)about;
	if (!later->json) {
		fputs("+ ", later->out);
		report_write_command(later->out, words);
		fputc('\n', later->out);
		fflush(later->out);
	}
	status = run(words);
	report_ran(later, words, status);
	/* with sudo, the check would lose this user's variables; check_fix_print() prints what is still to be done */
	if (status && !later->json)
		fprintf(later->out, "# status %d%s\n", status,
			geteuid() ? ": it needs root; the end of this output has the commands to enter as root" : "");
	fflush(later->out);
}

/* Prints and runs the commands for this machine, without a shell, and notes them in @later. Returns their number. */
static size_t check_fix_run(const struct report *report, struct report *later)
{
	const char *path = getenv("PATH");
	char *wider = NULL;

	/* an ordinary user's PATH may lack the directories of ip and sysctl */
	if (asprintf(&wider, "%s%s/usr/sbin:/sbin", path ? path : "", path && *path ? ":" : "") >= 0)
		setenv("PATH", wider, 1);
	free(wider);
	return report_commands(report, COMMAND_HERE, run_command, later);
}

/* --- all -------------------------------------------------------------------------------- */

int check(const struct options *options)
{
	static const int statuses[] = { [FACT_OK] = EXIT_SUCCESS,
					[FACT_NOTE] = EXIT_SUCCESS,
					[FACT_WARN] = STATUS_DEGRADED,
					[FACT_FAIL] = STATUS_FAILED };
	static struct settings settings;
	struct report report, again;
	int status;

	if (!launch_read_settings(&settings, options, false))
		return STATUS_USAGE;
	report_init(&report, stdout, options_has(options, OPTION_JSON), options_has(options, OPTION_QUIET));
	check_all(&report, options, &settings);
	if (options->fix_run) {
		report_flush(&report);
		report_init(&again, stdout, options_has(options, OPTION_JSON), options_has(options, OPTION_QUIET));
		if (check_fix_run(&report, &again)) {
			check_all(&again, options, &settings);
			report_fini(&report);
			report = again;
		} else {
			report_fini(&again);
		}
	}
	report.commands = options_has(options, OPTION_FIX);
	status = report_finish(&report) ? statuses[report.worst] : STATUS_FAILED;
	if (options_has(options, OPTION_FIX))
		check_fix_print(&report);
	if (fflush(stdout) != 0)
		status = STATUS_FAILED;
	report_fini(&report);
	return status;
}
