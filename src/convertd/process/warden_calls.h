/* SPDX-License-Identifier: BSD-3-Clause */
/* warden_calls.h - the main process carries out calls that need a right, if the settings need them */
#ifndef CONVERTD_WARDEN_CALLS_H
#define CONVERTD_WARDEN_CALLS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct inherited;
struct settings;
struct warden_calls;

/*
 * warden_calls_create() - allow calls that @settings need
 * @argc, @argv: main()'s arguments, from which a reload reads the settings again
 * @inherited: its addresses may be listened at, too; its rules are taken over
 * Returns NULL without memory. Only warden_calls_destroy() accepts NULL.
 */
struct warden_calls *warden_calls_create(int argc, char **argv, const struct settings *settings,
					 const struct inherited *inherited);

/* Removes the rules and gives up the queues. NULL is fine. */
void warden_calls_destroy(struct warden_calls *calls);

/* Reads the settings again, and allows what these need, too. Errors are ignored, as the serving process reports them. */
void warden_calls_reload(struct warden_calls *calls);

/*
 * warden_calls_answer() - read one call from the socket @fd, carry it out, and answer it
 * A call that no settings need is refused. Returns false, after logging it, for a message that isn't a call: the serving
 * process isn't convertd any more then. At the end of the connection, @fd is closed and set to -1.
 */
bool warden_calls_answer(struct warden_calls *calls, int *fd);

/* Call warden_syns_poll() and warden_syns_serve(), which see to the queues of SYNs. */
size_t warden_calls_poll(const struct warden_calls *calls, struct pollfd *fds);
bool warden_calls_serve(struct warden_calls *calls, const struct pollfd *fds);

#endif
