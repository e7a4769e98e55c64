/* SPDX-License-Identifier: BSD-3-Clause */
/* systemd.h - tells the service manager about convertd's progress, and gives it descriptors for the next process: sd_notify(3) */
#ifndef CONVERTD_SYSTEMD_H
#define CONVERTD_SYSTEMD_H

#include "common/problems.h"
#include "daemon/listen_address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The names under which the service manager keeps descriptors for the next process (FDNAME=): */
#define NOTIFY_KEPT_NAME "convertd-listen" /* listening sockets that convertd has made itself */
#define NOTIFY_RULES_NAME "convertd-rules" /* the owner of the rules for SYNs: withholding_rules_fd() */

/* Reads NOTIFY_SOCKET, FDSTORE, WATCHDOG_USEC and WATCHDOG_PID, and removes them from the environment, before there are threads. */
void notify_init(void);

/*
 * notify_send() - send the service manager assignments as sd_notify(3) lists them, one per line
 * Does nothing if no manager listens, and ignores failures, which nobody could repair. Preserves errno.
 */
void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes this process send messages by the main process from now on, to which the manager listens: rights_notify(). */
void notify_relay(void);

/* Sends the manager a message, with the descriptor @passed unless that is -1. */
void notify_forward(const char *text, int passed);

/* Stops all messages: the manager doesn't listen to this process any more. */
void notify_stop(void);

/* Asks the manager to keep a descriptor for the next process; it does so up to FileDescriptorStoreMax=. */
void notify_keep(int fd, const char *name);

/*
 * notify_keeps_descriptors() - tell whether the manager keeps descriptors, so that the next process gets them
 * The environment variable FDSTORE says so (systemd 254); the unit sets it for earlier versions.
 */
bool notify_keeps_descriptors(void);

/* Tells whether there is a service manager that wants messages. */
bool notify_is_wanted(void);

/* Sends RELOADING=1, with the time that Type=notify-reload needs. READY=1 must follow. */
void notify_reloading(void);

/* Returns the interval in microseconds within which the manager wants each next WATCHDOG=1 (WatchdogSec=), or 0. */
uint64_t notify_watchdog_us(void);

/*
 * notify_message_is_right() - tell whether this is a message that convertd sends
 * So an attacker in the serving process can neither name another main process nor have the manager keep descriptors
 * under other names (sd_notify(3)). No I/O.
 */
bool notify_message_is_right(const char *text);

/* ----- sockets that this process is started with: sd_listen_fds(3) ----- */

struct convertd_settings;

struct inherited_socket {
	struct listen_address where;
	int fd;
	bool kept; /* an earlier convertd has made it, for a --listen of its own */
};

struct inherited {
	struct inherited_socket *sockets;
	size_t count;
	int rules; /* the withholding_rules_fd() of the process before this one, or -1 */
};

/*
 * inherit_sockets() - find the sockets that LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES pass to this process
 * Returns false after adding an error to @problems for one that can't be used.
 */
bool inherit_sockets(struct inherited *inherited, struct problems *problems);

/*
 * inherit_join() - listen at the addresses of socket units, too
 * They replace the default, and add to any other --listen. Kept sockets change nothing. Returns false after adding an
 * error to @problems if there are too many addresses.
 */
bool inherit_join(const struct inherited *inherited, struct convertd_settings *settings,
		  struct problems *problems);

/*
 * inherit_find() - find the inherited sockets that listen at an address, @max at most
 * They stay the table's: duplicate them. Returns their number at @fds; a socket unit has one.
 */
size_t inherit_find(const struct inherited *inherited, const struct listen_address *where,
		    int *fds, size_t max);

/* Returns the first descriptor behind all of them, and behind standard error. */
int inherit_end(const struct inherited *inherited);

/* Tells whether a socket unit accepts the clients at this address. */
bool inherit_is_unit(const struct inherited *inherited, const struct listen_address *where);

/* Closes all kept sockets, and the rules. Those in use have duplicates; clients in the queue of another would never be accepted. */
void inherit_close_kept(struct inherited *inherited);

/* Closes all descriptors of the table, and frees it. */
void inherit_fini(struct inherited *inherited);

#endif
