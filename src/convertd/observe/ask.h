/* SPDX-License-Identifier: BSD-3-Clause */
/* ask.h - convertd status: what the converter that runs says of itself */
#ifndef CONVERTD_ASK_H
#define CONVERTD_ASK_H

#include "convertd/base/metrics_address.h"

/*
 * ask_status() - print the status of the converter whose --metrics is @where
 * Returns the status of the process: EXIT_FAILURE after saying why on standard error.
 */
int ask_status(const struct metrics_address *where);

#endif
