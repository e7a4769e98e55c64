/* SPDX-License-Identifier: BSD-3-Clause */
/* sandbox.h - what a process of convertd's can't reach any more, whoever runs in it */
#ifndef CONVERTD_SANDBOX_H
#define CONVERTD_SANDBOX_H

#include "convertd/privilege/syscall_filter.h"

#include <stdbool.h>

struct settings;

/*
 * sandbox_leave_surroundings() - descriptors, directory, modes: nothing of whoever started convertd
 * @first_fd: the first descriptor that is nobody's, and all behind it are closed
 */
void sandbox_leave_surroundings(int first_fd);

/*
 * sandbox_enter() - no other files (Landlock), no other system calls, no debugger, for good
 * no_new_privs must be set, and there must be one thread. What can't be had the log says, in one line.
 */
void sandbox_enter(const struct settings *settings, enum syscall_filter_role role);

/* Are there files, then, that this process can't reach though its user may? */
bool sandbox_denies_files(void);

#endif
