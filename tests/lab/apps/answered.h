/* SPDX-License-Identifier: BSD-3-Clause */
/* answered.h - is a connection's handshake over? */
#ifndef APPS_ANSWERED_H
#define APPS_ANSWERED_H

#include "common/rawcall.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Asks the kernel, past all libraries, whether the SYN was answered, by the server or the converter. */
static inline bool is_answered(int fd)
{
	uint8_t info[8] = { 0 };
	socklen_t len = sizeof(info);

	RAWCALL(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, info, &len);
	return info[0] != TCP_SYN_SENT;
}

#endif
