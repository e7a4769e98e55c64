/* SPDX-License-Identifier: BSD-3-Clause */
/* rights.h - carries out calls that need a right by asking the main process, which has the rights */
#ifndef DAEMON_RIGHTS_H
#define DAEMON_RIGHTS_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct listen_address;

/*
 * rights_init() - ask by this socket (warden.h); -1, as before this call: there is no main process
 * The socket stays the caller's. Without a main process only calls that need no right work; the others return -EPERM.
 * Call it before any thread is started; any thread may call all other functions.
 */
void rights_init(int calls);

/*
 * rights_set_rules() - install the rules of hold_rules_install() for these addresses
 * @to_queues: SYNs go to the queues that rights_own_queues() has made; if false, only the second chain is installed
 * @refuses: set to whether they refuse SYNs that are marked so
 * @fd: on success, the caller's descriptor; the rules last as long as any process has it open
 */
int rights_set_rules(const struct listen_address *listen, size_t count, bool to_queues, bool *refuses, int *fd);

/* Corrects the windows of SYNs to these addresses by syn_window_install(); without addresses, no longer corrects any. */
int rights_correct_windows(const struct listen_address *listen, size_t count);

/* Owns this many netfilter queues, in place of earlier ones; sets the number of the first. */
int rights_own_queues(size_t count, uint16_t *first);

/* Gets the caller's sockets for the packets and the verdicts of one of them (hold_queue.c). */
int rights_get_queue(size_t index, int *packets, int *verdicts);

/* Does what bind(2) does, for a port below 1024 as well if the settings name it. Returns 0 or -errno. */
int rights_bind(int fd, const union sockaddr_ip *address);

/*
 * Sets IP_TRANSPARENT on a socket of IPv4 (@v4) or IPv6; the settings permit it by --preserve-client-address. Returns
 * 0 or -errno.
 */
int rights_set_transparent(int fd, bool v4);

/* Sets TCP_CONGESTION to a name in the settings that net.ipv4.tcp_allowed_congestion_control forbids. Returns 0 or -errno. */
int rights_set_congestion(int fd, const char *name);

/* Tells the main process that the settings read last are in force: it no longer permits calls that only older ones need. */
void rights_settings_in_force(void);

/* ----- sets the congestion control of TCP and MPTCP sockets, by the kernel's names ----- */

/* Room for a name: TCP_CA_NAME_MAX of the kernel. */
#define CONGESTION_NAME_MAX 16

/*
 * congestion_set() - set the congestion control of a socket
 * On a listener, it sets that of the sockets that will be accepted.
 * @name: "" for the system's default, the sysctl net.ipv4.tcp_congestion_control
 * Returns 0 or -errno: -ENOENT if the kernel has none of that name, -EPERM if only CAP_NET_ADMIN may use it
 * (net.ipv4.tcp_allowed_congestion_control).
 */
int congestion_set(int fd, const char *name);

/* Returns what congestion_set() would return. */
int congestion_check(const char *name);

/* Room for the list of congestion_available(). */
#define CONGESTION_LIST_MAX 256

/* Lists the congestion controls that are loaded, with blanks between them: "reno cubic"; returns @buf. */
const char *congestion_available(char buf[static CONGESTION_LIST_MAX]);

#endif
