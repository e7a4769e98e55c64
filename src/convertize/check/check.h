/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h - "convertize check": can this machine, this network and this program do it? */
#ifndef CONVERTIZE_CHECK_H
#define CONVERTIZE_CHECK_H

#include "client/user_cache.h"
#include "client/settings.h"
#include "convertize/check/network.h"
#include "convertize/options/command_line.h"
#include "convertize/check/probe.h"
#include "convertize/check/report.h"

/* check() - look at this host, the program and the converters, and report facts on standard output; returns the exit status */
int check(const struct options *options);

/* The parts of check(). Each adds facts to @report. */
void check_kernel(struct report *report);
void check_network(struct report *report, const struct network *network);

/* Reports the networks that CONVERT_PATHS names and that aren't there. */
void check_wishes(struct report *report, const struct path_preferences *wanted);
void check_converters(struct report *report, const struct settings *settings,
		      const struct network *network);

void check_cache(struct report *report, const struct settings *settings);

/* Finds the cache as programs do (cache_find()), but makes neither directory nor file. */
int check_cache_open(struct cache *cache, const struct settings *settings, struct cache_place *place);

/*
 * check_supported() - report what the answer of the converter @about says that it supports
 * A part of check_converters(). @mptcp: Multipath TCP gets through to it.
 */
void check_supported(struct report *report, const char *about, const struct probe_result *probe,
		     bool mptcp);

/* Prints the commands that mend what is wrong, as lines for a shell; nothing if the report is JSON. */
void check_fix_print(const struct report *report);

/* Shows and runs the commands that are for this machine, and notes them in @later. Returns how many there were. */
size_t check_fix_run(const struct report *report, struct report *later);

#endif
