/* SPDX-License-Identifier: BSD-3-Clause */
/* scm_rights.h - descriptors that leave for another process over a Unix socket */
#ifndef SHIM_SCM_RIGHTS_H
#define SHIM_SCM_RIGHTS_H

#include <sys/socket.h>

void scm_rights_leave_slow(const struct msghdr *msg);

/*
 * scm_rights_leave() - sees to the sockets in the SCM_RIGHTS of @msg, which is about to be sent (unix(7))
 * The receiving process may not have our library, and with it knows nothing of their connections. The caller knows that @msg and all
 * of its control data can be read.
 */
static inline void scm_rights_leave(const struct msghdr *msg)
{
	if (msg && msg->msg_control && msg->msg_controllen)
		scm_rights_leave_slow(msg);
}

#endif
