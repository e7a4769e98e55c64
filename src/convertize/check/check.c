/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - "convertize check": can this machine, this network and this program do it? */
#include "config.h"

#include "convertize/check/check.h"

#include "common/child.h"
#include "convertize/run/launch.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX "convertize: "
#define SUPERVISE_TIMEOUT_MS 5000

static const char *environment(const char *name)
{
	return getenv(name);
}

/* Starts a program under supervision, to learn whether the kernel and the container permit it. Returns NULL, or why not, to be freed. */
static char *supervision_problem(void)
{
	static const char *const argv[] = { "/proc/self/exe", "--config", "none", "--converter", "127.0.0.1", "--method", "supervise",
					    "--", "true", NULL };
	struct child_output said;
	char *problem = NULL;
	int ret = child_run(argv, SUPERVISE_TIMEOUT_MS, &said);

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
		fact = report_fact(report, FACT_FAIL, "program", NULL, "%s, and it can't be supervised here: %s", text, problem);
		fact_remedy(fact, "Run it where supervision is permitted: see SUPERVISED PROGRAMS in convertize(1)");
	} else {
		fact = report_fact(report, FACT_OK, "program", NULL, "%s; convertize supervises it", text);
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
		fact_value_text(fact, "missing");
		return;
	}
	preload_describe(plan.verdict, &plan.program, plan.index, &plan.library->elf, text);
	if (plan.way == LAUNCH_SUPERVISED) {
		fact = report_supervised(report, text);
	} else {
		fact = report_fact(report, statuses[preload_level(plan.verdict)], "program", NULL, "%s", text);
		if (preload_remedy(plan.verdict))
			fact_remedy(fact, "%s", preload_remedy(plan.verdict));
	}
	fact_value_text(fact, preload_name(plan.verdict));
}

/* Says where the library is, and if there are several, for which machines. */
static void report_library(struct report *report, const struct library *library)
{
	const struct library_build *own = &library->builds[0];
	char machines[LIBRARY_BUILDS_MAX * (ELF_MACHINE_STRLEN + 2)] = "", machine[ELF_MACHINE_STRLEN];
	struct fact *fact;
	size_t len = 0;

	for (size_t i = 0; library->count > 1 && i < library->count; i++)
		len += (size_t)snprintf(machines + len, sizeof(machines) - len, "%s%s", i ? "; " : ", for ",
					elf_machine_format(&library->builds[i].elf, machine));
	fact = report_fact(report, FACT_OK, "library", NULL, "the library is %s%s",
			   library->count > 1 ? library_preload(library, own) : own->path, machines);
	fact_value_text(fact, own->path);
}

static void check_library(struct report *report, const struct options *options)
{
	static char problem[LIBRARY_PROBLEM_MAX];
	static struct library library;

	if (!library_find(&library, options->library, problem)) {
		report_fact(report, FACT_FAIL, "library", NULL, "%s", problem);
		return;
	}
	report_library(report, &library);
	if (options->program)
		check_program(report, options, &library);
}

/* Returns false, with the reason on standard error, for a wrong setting. One that is missing is reported as a fact. */
static bool read_settings(struct settings *settings, const struct options *options)
{
	const char *rest;
	char option[OPTIONS_EXPLAIN_MAX];

	settings_read(settings, environment);
	if (settings->enabled || !getenv("CONVERT_ADDR"))
		return true;
	rest = options_explain(options, settings->problem, option);
	fprintf(stderr, "convertize: %s%s\n", option, rest);
	return false;
}

static void check_all(struct report *report, const struct options *options,
		      const struct settings *settings)
{
	static struct network network;

	network_read(&network);
	check_kernel(report);
	check_network(report, &network);
	check_wishes(report, &settings->paths);
	check_library(report, options);
	check_cache(report, settings);
	report_flush(report); /* connections may take their time */
	check_converters(report, settings, &network);
}

int check(const struct options *options)
{
	static const int statuses[] = { [FACT_OK] = EXIT_SUCCESS,
					[FACT_NOTE] = EXIT_SUCCESS,
					[FACT_WARN] = OPTIONS_CHECK_DEGRADED,
					[FACT_FAIL] = OPTIONS_CHECK_FAILED };
	static struct settings settings;
	struct report report, again;
	int status;

	if (!read_settings(&settings, options))
		return OPTIONS_CHECK_USAGE;
	report_init(&report, stdout, options->json);
	check_all(&report, options, &settings);
	if (options->fix_run) {
		report_flush(&report);
		report_init(&again, stdout, options->json);
		if (check_fix_run(&report, &again)) {
			check_all(&again, options, &settings);
			report_fini(&report);
			report = again;
		} else {
			report_fini(&again);
		}
	}
	report.commands = options->fix;
	status = report_finish(&report) ? statuses[report.worst] : OPTIONS_CHECK_FAILED;
	if (options->fix)
		check_fix_print(&report);
	if (fflush(stdout) != 0)
		status = OPTIONS_CHECK_FAILED;
	report_fini(&report);
	return status;
}
