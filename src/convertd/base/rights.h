/* SPDX-License-Identifier: BSD-3-Clause */
/* rights.h - what takes a right that the serving process hasn't got: it asks the main process */
#ifndef CONVERTD_RIGHTS_H
#define CONVERTD_RIGHTS_H

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct listen_address;

/*
 * rights_init() - ask by this socket (warden.h); -1, as before: there is nobody to ask
 * It stays the caller's. Then nothing here is possible but what takes no right, and -EPERM is
 * returned. Before any thread is started; all others may be called by any thread.
 */
void rights_init(int calls);

/*
 * rights_set_rules() - hold_rules_install() for these addresses
 * @to_queues: SYNs go to the queues that rights_own_queues() has got; or else there is only the second chain
 * @refuses: set to whether they refuse SYNs that are marked so
 * @fd: in success, what has the rules last as long as somebody has it; the caller's
 */
int rights_set_rules(const struct listen_address *listen, size_t count, bool to_queues, bool *refuses, int *fd);

/* rights_correct_windows() - syn_window_install() for these addresses, none of them: remove it */
int rights_correct_windows(const struct listen_address *listen, size_t count);

/* rights_own_queues() - own so many netfilter queues, in place of those before; sets the number of the first */
int rights_own_queues(size_t count, uint16_t *first);

/* rights_get_queue() - the sockets for the packets and the verdicts of one of them (hold_queue.c); the caller's */
int rights_get_queue(size_t index, int *packets, int *verdicts);

/* As bind(2), to a port below 1024 as well if the settings name it. Returns 0 or -errno. */
int rights_bind(int fd, const union sockaddr_ip *address);

/* Sets IP_TRANSPARENT on a socket, IPv4's or IPv6's by @v4; permitted with --preserve-client-address. Returns 0 or -errno. */
int rights_set_transparent(int fd, bool v4);

/* Sets TCP_CONGESTION to a name that net.ipv4.tcp_allowed_congestion_control forbids and the settings have. Returns 0 or -errno. */
int rights_set_congestion(int fd, const char *name);

/* Tells the main process that the settings that it read last are in force: it permits no longer what only older ones need. */
void rights_settings_in_force(void);

/* ----- sets the congestion control of TCP and MPTCP sockets, by the kernel's names ----- */

/* Room for a name: TCP_CA_NAME_MAX of the kernel. */
#define CONGESTION_NAME_MAX 16

/*
 * congestion_set() - set the congestion control of a socket
 * On a listener, it sets that of the sockets that will be accepted.
 * @name: "" for the system's default, the sysctl net.ipv4.tcp_congestion_control
 * Returns 0 or -errno: -ENOENT where the kernel has none of that name, -EPERM where only
 * CAP_NET_ADMIN may use it (net.ipv4.tcp_allowed_congestion_control).
 */
int congestion_set(int fd, const char *name);

/* congestion_check() - tell whether congestion_set() would work; returns what that would */
int congestion_check(const char *name);

/* Room for what congestion_available() writes. */
#define CONGESTION_LIST_MAX 256

/* Lists the congestion controls that are loaded, with blanks between them: "reno cubic"; returns @buf. */
const char *congestion_available(char buf[static CONGESTION_LIST_MAX]);

#endif
