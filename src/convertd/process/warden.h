/* SPDX-License-Identifier: BSD-3-Clause */
/* warden.h - the main process: has the rights, starts the process that serves, and ends as it does */
#ifndef CONVERTD_WARDEN_H
#define CONVERTD_WARDEN_H

#include <stdbool.h>

struct ward;
struct warden;
struct warden_calls;

/* Has this process a capability that only the main process is to have? */
bool warden_is_needed(void);

/*
 * warden_split() - make two processes of this one, which must have one thread
 * In the new one, which is to serve, @warden is NULL and @ward (ward.h) is connected. In the old one @warden is
 * for warden_run().
 * @rights: what the main process may be asked for; freed in the new process, and in failure
 * Returns false after saying why on the log, if there can be no second process.
 */
bool warden_split(struct warden **warden, struct ward *ward, struct warden_calls *rights);

/*
 * warden_run() - do what the serving process can't, until that has ended or left (ward_leave())
 * Frees @warden. What the serving process has open should be closed here: a listening socket stays
 * as long as anybody has it. Returns the status to exit with; where a signal has ended the serving process,
 * the same one ends this process.
 */
int warden_run(struct warden *warden);

#endif
