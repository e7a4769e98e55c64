/* SPDX-License-Identifier: BSD-3-Clause */
/* fdpass.h - messages between processes that take a descriptor along: SCM_RIGHTS of unix(7) */
#ifndef CONVERTD_FDPASS_H
#define CONVERTD_FDPASS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * fdpass_receive() - the next message of a SOCK_SEQPACKET socket, with one descriptor at most
 * @wait: whether to wait for one; where there is none otherwise, -EAGAIN is returned
 * @passed: set to the descriptor, which is the caller's to close; -1: none came with the message
 * Returns the bytes of the message, 0 at the end of the connection, or -errno. A message that is longer than
 * @size, or has several descriptors, is -EMSGSIZE; its descriptors are closed.
 */
ssize_t fdpass_receive(int fd, void *buf, size_t size, bool wait, int *passed);

/*
 * fdpass_send() - send a message, with the descriptor @passed unless that is -1
 * @passed stays the caller's. Returns the bytes sent, or -errno.
 */
ssize_t fdpass_send(int fd, const void *buf, size_t len, int passed);

#endif
