/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h - "convertize check": can this machine, this network and this program do it? */
#ifndef CONVERTIZE_CHECK_H
#define CONVERTIZE_CHECK_H

#include "client/settings.h"
#include "convertize/network.h"
#include "convertize/options.h"
#include "convertize/probe.h"
#include "convertize/report.h"

/* check() - find out, report on standard output; returns the exit status */
int check(const struct options *options);

/* The parts of it. Each adds facts. */
void check_kernel(struct report *report);
void check_network(struct report *report, const struct network *network);
void check_converters(struct report *report, const struct settings *settings,
		      const struct network *network);

/* What the answer of the converter @about says of it: part of check_converters(). */
void check_supported(struct report *report, const char *about, const struct probe_result *probe);

#endif
