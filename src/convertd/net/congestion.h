/* SPDX-License-Identifier: BSD-3-Clause */
/* congestion.h - sets the congestion control of TCP and MPTCP sockets, by the kernel's names */
#ifndef CONVERTD_CONGESTION_H
#define CONVERTD_CONGESTION_H

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
