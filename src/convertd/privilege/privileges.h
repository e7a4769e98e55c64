/* SPDX-License-Identifier: BSD-3-Clause */
/* privileges.h - becomes the user of --user and gives up all capabilities that convertd doesn't need */
#ifndef CONVERTD_PRIVILEGES_H
#define CONVERTD_PRIVILEGES_H

#include "common/problems.h"

#include <stdbool.h>

struct settings;

/*
 * privileges_drop() - become --user, keeping the capabilities that @settings need
 * To be called before any thread is started, as each thread has its own capabilities. It sets no_new_privs, so that
 * no program that the process executes regains rights, and warns of files that a reload couldn't read any more.
 * Returns false after adding the error to @problems.
 */
bool privileges_drop(const struct settings *settings, struct problems *problems);

#endif
