/* SPDX-License-Identifier: BSD-3-Clause */
/* windows.h - has the windows of SYNs corrected (syn_window.c), and warns where that is impossible */
#ifndef CONVERTD_WINDOWS_H
#define CONVERTD_WINDOWS_H

#include "convertd/config/settings.h"

#include <stdbool.h>

/*
 * windows_correct() - install the rules of syn_window.c for the addresses of @settings, or remove them
 * @wanted: true to install them, false to remove them
 * Returns whether windows are corrected. If they can't be, a warning names the consequences and the remedy.
 */
bool windows_correct(const struct settings *settings, bool wanted);

#endif
