/* SPDX-License-Identifier: BSD-3-Clause */
/* notify.h - tell the service manager how far convertd is: sd_notify(3) */
#ifndef CONVERTD_NOTIFY_H
#define CONVERTD_NOTIFY_H

#include "convertd/process/notify_message.h"

#include <stdbool.h>
#include <stddef.h>

struct event;
struct event_base;

/* Reads NOTIFY_SOCKET and WATCHDOG_USEC, and removes them from the environment; before any thread is started. */
void notify_init(void);

/*
 * notify_send() - sends the manager assignments as sd_notify(3) lists them, one a line
 * Does nothing without a manager that listens. Failures are silent, since nothing could be done about them.
 * errno is left as it was.
 */
void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * notify_relay() - from now on messages go into this socket, to the process that the manager listens to
 * -1: to the manager itself. The socket stays the caller's. Before any thread is started.
 */
void notify_relay(int fd);

/* notify_forward() - sends the manager one message of @len bytes, with the descriptor @passed unless it is -1 */
void notify_forward(const char *text, size_t len, int passed);

/* From now on nothing is sent: this process is none that the manager listens to. */
void notify_stop(void);

/* Has the manager keep a descriptor for the next process, where FileDescriptorStoreMax= lets it. */
void notify_keep(int fd, const char *name);

/* Has the manager keep one of a pair of sockets for the next process, and close it as soon as the other one is closed. */
void notify_keep_lifeline(int fd, const char *name);

/* Is there a service manager that wants to know? */
bool notify_is_wanted(void);

/* RELOADING=1, with the time that Type=notify-reload needs. READY=1 must follow. */
void notify_reloading(void);

/* How often notify_watchdog() asks within the time of WatchdogSec=. */
#define NOTIFY_WATCHDOG_LOOKS 4

/*
 * notify_watchdog() - say from now on that all is well, as often as WatchdogSec= wants it
 * @well: is it? It is asked NOTIFY_WATCHDOG_LOOKS times in that time, with @arg.
 * Returns an event to be freed at the end; NULL where that isn't wanted.
 */
struct event *notify_watchdog(struct event_base *base, bool (*well)(void *arg), void *arg);

#endif
