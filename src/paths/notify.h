/* SPDX-License-Identifier: BSD-3-Clause */
/* notify.h - tells the service manager how far the path manager is: sd_notify(3) */
#ifndef PATHS_NOTIFY_H
#define PATHS_NOTIFY_H

#include <stdbool.h>

/* Sends assignments as sd_notify(3) lists them, one a line. Returns whether there is a manager that has taken them. */
bool paths_notify(const char *text);

/* How often WATCHDOG=1 is to be said, in milliseconds: twice in the time that the manager gives. -1: it isn't wanted. */
int paths_notify_watchdog_ms(void);

#endif
