/* SPDX-License-Identifier: BSD-3-Clause */
/* ask.h - "convertd status": asks the running converter for its status and prints it */
#ifndef CONVERTD_ASK_H
#define CONVERTD_ASK_H

#include "convertd/base/metrics_address.h"

/*
 * ask_status() - print the status of the converter whose --metrics address is @where
 * Returns the exit status: EXIT_FAILURE after saying why on standard error.
 */
int ask_status(const struct metrics_address *where);

#endif
