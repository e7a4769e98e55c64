/* SPDX-License-Identifier: BSD-3-Clause */
/* windows.h - have the windows of SYNs corrected, and say what it costs where that can't be */
#ifndef CONVERTD_WINDOWS_H
#define CONVERTD_WINDOWS_H

#include "convertd/config/settings.h"

#include <stdbool.h>

/*
 * windows_correct() - installs the rules of syn_window.c for the addresses of @settings, or removes them
 * @wanted: whether there are to be rules
 * Returns whether windows are corrected; where they should be and can't, the log says what it costs.
 */
bool windows_correct(const struct settings *settings, bool wanted);

#endif
