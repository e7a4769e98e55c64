/* SPDX-License-Identifier: BSD-3-Clause */
/* systemd.h - tells the service manager how far convertd is, and gives it descriptors for the next one: sd_notify(3) */
#ifndef CONVERTD_SYSTEMD_H
#define CONVERTD_SYSTEMD_H

#include "common/problems.h"
#include "convertd/base/listen_address.h"

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

/* ----- sockets that this process is started with: sd_listen_fds(3) ----- */

struct settings;

struct inherited_socket {
	struct listen_address where;
	int fd;
	bool kept; /* a convertd before this one has made it, for a --listen of its own */
};

struct inherited {
	struct inherited_socket *sockets;
	size_t count;
	int rules; /* withholding_rules_fd() of the process before this one, or -1 */
};

/*
 * inherit_sockets() - find those that LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES tell of
 * Returns false after telling @problems of one that can't be used.
 */
bool inherit_sockets(struct inherited *inherited, struct problems *problems);

/*
 * inherit_join() - listen on those of socket units, too
 * They take the place of the default; other --listen are as ever. Kept ones make no difference.
 * Returns false after telling @problems that they are too many together.
 */
bool inherit_join(const struct inherited *inherited, struct settings *settings,
		  struct problems *problems);

/*
 * inherit_find() - the sockets that listen there, @max at most
 * They stay the table's: duplicate them. Returns how many are at @fds; of a socket unit's there is
 * one.
 */
size_t inherit_find(const struct inherited *inherited, const struct listen_address *where,
		    int *fds, size_t max);

/* The first descriptor behind all of them, and behind standard error. */
int inherit_end(const struct inherited *inherited);

/* Are clients at this place the business of a socket unit? */
bool inherit_is_unit(const struct inherited *inherited, const struct listen_address *where);

/* Closes what was kept and has found no use: clients in the queues of such sockets would never be accepted. */
void inherit_close_kept(struct inherited *inherited);

/* Closes all descriptors of the table, and frees it. */
void inherit_fini(struct inherited *inherited);

#endif
