/* SPDX-License-Identifier: BSD-3-Clause */
/* syscall_filter.h - no system calls but those that convertd needs */
#ifndef CONVERTD_SYSCALL_FILTER_H
#define CONVERTD_SYSCALL_FILTER_H

/*
 * syscall_filter_install() - for this thread and all that it starts, until the end of the process
 * no_new_privs must be set, unless by root. Returns 0, or -errno: -ENOSYS where convertd was built
 * without libseccomp, or with sanitizers, which need more.
 */
int syscall_filter_install(void);

#endif
