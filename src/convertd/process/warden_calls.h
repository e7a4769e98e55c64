/* SPDX-License-Identifier: BSD-3-Clause */
/* warden_calls.h - the main process does what takes a right, if the settings need it */
#ifndef CONVERTD_WARDEN_CALLS_H
#define CONVERTD_WARDEN_CALLS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct inherited;
struct settings;
struct warden_calls;

/*
 * warden_calls_create() - what @settings need may be asked for from now on
 * @argc, @argv: to read them again, as main() has them
 * @inherited: its places may be listened at; its rules are taken over
 * Returns NULL without memory. The others take no NULL but for _destroy().
 */
struct warden_calls *warden_calls_create(int argc, char **argv, const struct settings *settings,
					 const struct inherited *inherited);

void warden_calls_destroy(struct warden_calls *calls);

/* Reads the settings again: what these need may be asked for, too. Wrong ones are for the other process to tell of. */
void warden_calls_reload(struct warden_calls *calls);

/*
 * warden_calls_answer() - one call that has come by this socket
 * What no settings need is refused. Returns false for what is no call, after saying so on the log: whoever sends
 * that is no convertd any more. At the end of the connection @fd is -1.
 */
bool warden_calls_answer(struct warden_calls *calls, int *fd);

/* warden_syns_poll(), warden_syns_serve() */
size_t warden_calls_poll(const struct warden_calls *calls, struct pollfd *fds);
bool warden_calls_serve(struct warden_calls *calls, const struct pollfd *fds);

#endif
