/* SPDX-License-Identifier: BSD-3-Clause */
/* syscall_filter.h - forbids system calls that convertd doesn't need */
#ifndef CONVERTD_SYSCALL_FILTER_H
#define CONVERTD_SYSCALL_FILTER_H

/* The processes of convertd, each of which needs other calls. */
enum syscall_filter_role {
	SYSCALL_FILTER_ALONE,  /* the only process, where there are no rights to keep apart */
	SYSCALL_FILTER_WARD,   /* the process that serves, which has no rights */
	SYSCALL_FILTER_WARDEN, /* the main process, which keeps the rights */
	SYSCALL_FILTER_SURVIVOR, /* the process that resets connections once the serving one was killed */
};

/*
 * syscall_filter_install() - put the filter in force for this thread and all that it starts, until the process ends
 * @role: which process this is
 * no_new_privs must be set, unless the user is root. Returns 0 or -errno: -ENOSYS where convertd was built
 * without libseccomp, or with sanitizers, which need more calls.
 */
int syscall_filter_install(enum syscall_filter_role role);

#endif
