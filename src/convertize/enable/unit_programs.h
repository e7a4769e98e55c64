/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_programs.h - would the programs that a unit starts be converted? */
#ifndef CONVERTIZE_UNIT_PROGRAMS_H
#define CONVERTIZE_UNIT_PROGRAMS_H

#include "convertize/run/library.h"
#include "convertize/enable/unit_judge.h"

/*
 * unit_judge_programs() - the commands of ExecStart, run as the unit's user, in its directory
 * One that can be converted is enough: what is wrong with others is a warning then.
 */
void unit_judge_programs(struct unit_findings *findings, const struct unit_properties *unit, const struct library *library);

/* Does a file with variables, which counts more than a drop-in, set LD_PRELOAD to something else? */
void unit_judge_files(struct unit_findings *findings, const struct unit_properties *unit, const char *preload);

/* The properties that are looked at besides UNIT_JUDGE_PROPERTIES. */
#define UNIT_PROGRAMS_PROPERTIES "ExecStart,User,Group,DynamicUser,NoNewPrivileges,RootDirectory,EnvironmentFiles"

#endif
