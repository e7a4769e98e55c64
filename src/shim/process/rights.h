/* SPDX-License-Identifier: BSD-3-Clause */
/* rights.h - descriptors that leave for another process over a Unix socket */
#ifndef SHIM_RIGHTS_H
#define SHIM_RIGHTS_H

#include <sys/socket.h>

void rights_leave_slow(const struct msghdr *msg);

/*
 * rights_leave() - @msg is about to be sent: see to the sockets in its SCM_RIGHTS
 * The receiver may be without our help, and even with it knows nothing of their connections. @msg is there, with
 * all of its control data.
 */
static inline void rights_leave(const struct msghdr *msg)
{
	if (msg && msg->msg_control && msg->msg_controllen)
		rights_leave_slow(msg);
}

#endif
