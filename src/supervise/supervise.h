/* SPDX-License-Identifier: BSD-3-Clause */
/* supervise.h - run a program whose connections a supervisor converts */
#ifndef SUPERVISE_SUPERVISE_H
#define SUPERVISE_SUPERVISE_H

#include "client/settings.h"
#include "supervise/command.h"

#include <stdbool.h>

/*
 * supervise() - run a command, and wait for it
 * @settings and @command must stay. Ends this process as the program ends: with its exit status, or by its signal. Returns only where it
 * can't be run: the status for convertize to end with, after saying why.
 */
int supervise(const struct settings *settings, const struct supervise_command *command);

/*
 * Are this process's calls answered by a supervisor already? By that of another convertize, if its settings are in the
 * environment.
 */
bool supervise_is_done(void);

#endif
