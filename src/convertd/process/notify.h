/* SPDX-License-Identifier: BSD-3-Clause */
/* notify.h - tells the service manager how far convertd is, and gives it descriptors for the next one: sd_notify(3) */
#ifndef CONVERTD_NOTIFY_H
#define CONVERTD_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a message; systemd ignores longer ones (PIPE_BUF). */
#define NOTIFY_MAX 4096

/* The names by which the service manager keeps descriptors for the next process (FDNAME=): */
#define NOTIFY_KEPT_NAME "convertd-listen" /* listening sockets that convertd has made itself */
#define NOTIFY_RULES_NAME "convertd-rules" /* the owner of the rules for SYNs: withholding_rules_fd() */

/* Reads NOTIFY_SOCKET, FDSTORE and WATCHDOG_USEC, and removes them from the environment; before any thread is started. */
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

/* From now on nothing is sent: the manager doesn't listen to this process. */
void notify_stop(void);

/* Has the manager keep a descriptor for the next process, where FileDescriptorStoreMax= lets it. */
void notify_keep(int fd, const char *name);

/*
 * notify_keeps_descriptors() - tells whether the manager keeps what notify_keep() sends, so that the next process gets it
 * The environment variable FDSTORE says so (systemd 254); the unit sets it for earlier ones.
 */
bool notify_keeps_descriptors(void);

/* Tells whether there is a service manager that wants to be told. */
bool notify_is_wanted(void);

/* Sends RELOADING=1, with the time that Type=notify-reload needs. READY=1 must follow. */
void notify_reloading(void);

/* Returns the microseconds within which the manager wants WATCHDOG=1 again and again (WatchdogSec=), or 0. */
uint64_t notify_watchdog_us(void);

/*
 * notify_message_is_right() - tells whether the @len bytes are a message that convertd sends
 * An attacker in the serving process may not name another main process, or have descriptors kept under other names
 * (sd_notify(3)). No I/O.
 */
bool notify_message_is_right(const char *text, size_t len);

#endif
