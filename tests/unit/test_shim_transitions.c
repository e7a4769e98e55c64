/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shim_transitions.c - every transition between two phases of a connection (phase.h) by what leads to it
 *
 * Each run (shim_runs.h) takes a connection along some of them. All that phase_may_follow() allows must have been seen afterwards, and
 * none else. FAKE_COUNTS=1 in the environment prints how often each was.
 */
#include "config.h"

#include "shim_runs.h"

#include "run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * No run here leads to these: a program takes over another one's sockets at exec(), which tests/lab/test_shim_processes.py
 * tests; another process acts at the right moment, or another thread in the middle of a step.
 */
static const struct {
	enum conn_phase from, to;
} elsewhere[] = {
	{ CONN_IDLE, CONN_SYN_SENT },	   { CONN_IDLE, CONN_DONE },	   { CONN_IDLE, CONN_FAILED },
	{ CONN_IDLE, CONN_DISSOLVED },	   { CONN_STARTING, CONN_RESOLVING }, { CONN_RESOLVING, CONN_DISSOLVED },
	{ CONN_RESOLVING, CONN_ASKED },
};

static bool is_elsewhere(enum conn_phase from, enum conn_phase to)
{
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (elsewhere[i].from == from && elsewhere[i].to == to)
			return true;
	return false;
}

static void run_all(const struct shim_run *runs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ck_assert_msg(world_run(runs[i].body, runs[i].arg, runs[i].what), "%s", runs[i].what);
}

START_TEST(each_transition)
{
	int missing = 0;

	run_all(runs_asked, runs_asked_count);
	run_all(runs_otherwise, runs_otherwise_count);
	run_all(runs_silent, runs_silent_count);
	for (enum conn_phase from = 0; from < CONN_PHASE_COUNT; from++)
		for (enum conn_phase to = 0; to < CONN_PHASE_COUNT; to++) {
			unsigned int seen = world_transitions(from, to);

			ck_assert_msg(!seen || phase_may_follow(from, to), "%s -> %s isn't in the table", phase_name(from),
				      phase_name(to));
			if (!phase_may_follow(from, to))
				continue;
			if (getenv("FAKE_COUNTS"))
				printf("%-12s -> %-12s  %u\n", phase_name(from), phase_name(to), seen);
			if (!seen && from != to && !is_elsewhere(from, to)) {
				missing++;
				fprintf(stderr, "%s -> %s was never seen\n", phase_name(from), phase_name(to));
			}
		}
	ck_assert_int_eq(missing, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shim_transitions");
	TCase *tcase = tcase_create("shim_transitions");

	tcase_add_test(tcase, each_transition);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
