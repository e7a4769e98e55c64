/* SPDX-License-Identifier: BSD-3-Clause */
/* units.h - services that are converted by default: "convertize enable", "disable" and "list" */
#ifndef CONVERTIZE_UNITS_H
#define CONVERTIZE_UNITS_H

#include "convertize/options/command_line.h"

/* Each returns the status to end with: 0, OPTIONS_UNITS_FAILED or OPTIONS_UNITS_USAGE. */
int units_enable(struct options *options);
int units_disable(const struct options *options);
int units_list(const struct options *options);

#endif
