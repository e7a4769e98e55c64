/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - "convertize check": can this machine, this network and this program do it? */
#include "config.h"

#include "convertize/check/check.h"

#include "convertize/run/launch.h"
#include "convertize/run/library.h"

#include <stdlib.h>
#include <string.h>

static const char *environment(const char *name)
{
	return getenv(name);
}

static void check_program(struct report *report, const char *command, const struct library *library)
{
	static const enum fact_status statuses[] = { [PRELOAD_LEVEL_WORKS] = FACT_OK,
						     [PRELOAD_LEVEL_DOUBTFUL] = FACT_WARN,
						     [PRELOAD_LEVEL_REFUSED] = FACT_FAIL };
	struct preload_caller caller = launch_caller();
	static struct program program;
	int error = -program_inspect(&program, command);
	const struct elf_facts *facts;
	char text[PRELOAD_TEXT_MAX];
	enum preload_verdict verdict;
	struct fact *fact;
	size_t index;

	if (error) {
		fact = report_fact(report, FACT_FAIL, "program", command, "can't be executed: %s",
				   strerror(error));
		fact_value_text(fact, "missing");
		return;
	}
	facts = &library_for(library, &program)->elf;
	verdict = preload_program_verdict(&program, facts, &caller, &index);
	preload_describe(verdict, &program, index, facts, text);
	fact = report_fact(report, statuses[preload_level(verdict)], "program", NULL, "%s", text);
	fact_value_text(fact, preload_name(verdict));
	if (preload_remedy(verdict))
		fact_remedy(fact, "%s", preload_remedy(verdict));
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
		check_program(report, options->program[0], &library);
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
