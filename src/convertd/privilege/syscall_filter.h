/* SPDX-License-Identifier: BSD-3-Clause */
/* syscall_filter.h - no system calls but those that convertd needs */
#ifndef CONVERTD_SYSCALL_FILTER_H
#define CONVERTD_SYSCALL_FILTER_H

/* Whose calls these are. */
enum syscall_filter_role {
	SYSCALL_FILTER_ALONE,  /* of the only process, which has no rights */
	SYSCALL_FILTER_WARD,   /* of the one that serves */
	SYSCALL_FILTER_WARDEN, /* of the main process, which has */
	SYSCALL_FILTER_SURVIVOR, /* of the one that resets connections when the process that serves was killed */
};

/*
 * syscall_filter_install() - for this thread and all that it starts, until the end of the process
 * no_new_privs must be set, unless by root. Returns 0, or -errno: -ENOSYS where convertd was built
 * without libseccomp, or with sanitizers, which need more.
 */
int syscall_filter_install(enum syscall_filter_role role);

#endif
