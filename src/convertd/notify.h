/* SPDX-License-Identifier: BSD-3-Clause */
/* notify.h - tell the service manager how far convertd is: sd_notify(3) */
#ifndef CONVERTD_NOTIFY_H
#define CONVERTD_NOTIFY_H

struct event;
struct event_base;

/* Finds out whether there is a service manager that wants to know; before any thread is started. */
void notify_init(void);

/*
 * notify_send() - assignments as sd_notify(3) lists them, one a line
 * Does nothing where nobody wants to know. Nobody can do anything about a failure: it is silent.
 * errno is left as it was.
 */
void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Has the manager keep a descriptor for the next process, where FileDescriptorStoreMax= lets it. */
void notify_keep(int fd, const char *name);

/* RELOADING=1, with the time that Type=notify-reload needs. READY=1 must follow. */
void notify_reloading(void);

/*
 * notify_watchdog() - say from now on that this loop turns, as often as WatchdogSec= wants it
 * Returns an event to be freed at the end; NULL where that isn't wanted.
 */
struct event *notify_watchdog(struct event_base *base);

#endif
