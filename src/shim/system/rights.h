/* SPDX-License-Identifier: BSD-3-Clause */
/* rights.h - may this thread connect to an address, by the kernel's security modules? */
#ifndef SHIM_RIGHTS_H
#define SHIM_RIGHTS_H

#include "common/sockaddr.h"

/*
 * rights_ask() - ask for the right to connect(2) a TCP socket to @to, without sending anything
 * Returns 0, or -EACCES or -EPERM. Costs a system call, or five if Landlock may restrict this thread. errno stays as it was.
 */
int rights_ask(const union sockaddr_ip *to);

/* Notes that a thread of this process is about to restrict itself by Landlock. */
void rights_note_restriction(void);

#endif
