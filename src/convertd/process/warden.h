/* SPDX-License-Identifier: BSD-3-Clause */
/* warden.h - the main process (the warden): keeps the rights, starts the process that serves, and ends as that does */
#ifndef CONVERTD_WARDEN_H
#define CONVERTD_WARDEN_H

#include <stdbool.h>

struct ward;
struct warden;
struct warden_calls;

/* Tells whether this process has a capability that only the main process is to have. */
bool warden_is_needed(void);

/*
 * warden_split() - make two processes of this one, which must have one thread
 * In the new process, which is to serve, @warden is set to NULL and @ward (ward.h) is connected. In the old process
 * @warden is set to what warden_run() takes.
 * @rights: carries out calls in the main process; freed in the new process, and in failure; NULL: no memory
 * Returns true in both processes, or false after logging why there can be no second one.
 */
bool warden_split(struct warden **warden, struct ward *ward, struct warden_calls *rights);

/*
 * warden_run() - do what needs rights, until the serving process has ended or left (ward_leave())
 * It frees @warden. The caller closes its copies of the sockets that the serving process has, before: a listening socket
 * stays open as long as any process has it. Returns the exit status; if a signal has ended the serving process,
 * the same signal ends this process.
 */
int warden_run(struct warden *warden);

#endif
