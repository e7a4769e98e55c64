/* SPDX-License-Identifier: BSD-3-Clause */
/* supervise.h - runs a program whose connections a supervisor converts */
#ifndef SUPERVISE_SUPERVISE_H
#define SUPERVISE_SUPERVISE_H

#include "client/settings.h"
#include "supervise/supervisor.h"

#include <stdbool.h>

/*
 * supervise() - run a command, and wait for it
 * @settings and @command must stay. Ends this process as the program ends: with its exit status, or by its signal. Returns only if the
 * program can't be run: the exit status for convertize, after it has said why.
 */
int supervise(const struct settings *settings, const struct supervise_command *command);

/*
 * Returns whether a supervisor of another convertize answers this process's calls already.
 */
bool supervise_is_done(void);

#endif
