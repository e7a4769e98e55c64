/* SPDX-License-Identifier: BSD-3-Clause */
/* privileges.h - give up all rights that convertd goes on without */
#ifndef CONVERTD_PRIVILEGES_H
#define CONVERTD_PRIVILEGES_H

#include "convertd/base/problems.h"

#include <stdbool.h>

struct settings;

/*
 * privileges_drop() - become --user, keeping what convertd needs of root's rights
 * Before any thread is started: capabilities are each thread's own. Afterwards nothing that the
 * process executes could regain rights. Files that a reload couldn't read any more are
 * warned of. Returns false after telling @problems.
 */
bool privileges_drop(const struct settings *settings, struct problems *problems);

#endif
