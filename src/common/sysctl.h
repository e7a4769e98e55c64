/* SPDX-License-Identifier: BSD-3-Clause */
/* sysctl.h - integers under /proc/sys */
#ifndef COMMON_SYSCTL_H
#define COMMON_SYSCTL_H

/*
 * sysctl_read() - read an integer sysctl
 * @name: as sysctl(8) spells it, such as "net.ipv4.tcp_fastopen"
 * Returns the value (0 or more), or -errno: -ENOENT if this kernel has none.
 */
int sysctl_read(const char *name);

#endif
