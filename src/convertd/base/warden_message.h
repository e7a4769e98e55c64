/* SPDX-License-Identifier: BSD-3-Clause */
/* warden_message.h - what the main process and the serving one tell each other */
#ifndef CONVERTD_WARDEN_MESSAGE_H
#define CONVERTD_WARDEN_MESSAGE_H

#include "convertd/base/listen_address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One netfilter queue for each worker, and no more of these than SETTINGS_WORKERS_MAX. */
#define WARDEN_QUEUES_MAX 256

/* Room for the name of a congestion control: TCP_CA_NAME_MAX of the kernel. */
#define WARDEN_CONGESTION_MAX 16

/* To the serving process: a signal has come. From it: it goes on by itself. */
struct warden_order {
	uint32_t signum; /* or WARDEN_LEAVE */
};
#define WARDEN_LEAVE UINT32_MAX

/* What is asked of the main process, and answered before anything else is asked. */
enum warden_call_kind {
	WARDEN_CALL_RULES,  /* SYNs to these addresses go to the queues, or with no @queues lose their marks */
	WARDEN_CALL_WINDOW, /* the windows of SYNs to these addresses are corrected; none: of no SYNs */
	WARDEN_CALL_QUEUES, /* own @count netfilter queues; the answer has the number of the first */
	WARDEN_CALL_QUEUE,  /* two calls for each: @index's packets, its verdicts; the answer has a descriptor */
	WARDEN_CALL_VERDICTS,
	WARDEN_CALL_BIND,        /* the descriptor to the first of these addresses */
	WARDEN_CALL_TRANSPARENT, /* the descriptor, of an IPv4 socket or not (@v4), may have any address */
	WARDEN_CALL_CONGESTION,  /* the descriptor gets this congestion control */
	WARDEN_CALL_IN_FORCE,    /* the settings that were read last are in force */
	WARDEN_CALL_KIND_COUNT
};

/* Fixed in size; members that a kind doesn't use are zero. */
struct warden_call {
	uint32_t kind;  /* enum warden_call_kind */
	uint32_t count; /* of listen; of queues */
	uint32_t index; /* of a queue, from 0 on */
	uint32_t queues, v4; /* 0 or 1 */
	char congestion[WARDEN_CONGESTION_MAX];
	struct listen_address listen[LISTEN_ADDRESSES_MAX];
};

struct warden_answer {
	int32_t error;   /* 0 or -errno */
	uint32_t number; /* of a queue; of rules: 1 if they refuse SYNs that are marked so */
};

/*
 * warden_call_is_right() - has it the form of a call?
 * Whether it is permitted is another matter (warden_policy.h). @len: bytes of it; @passed: has it a descriptor?
 */
bool warden_call_is_right(const struct warden_call *call, size_t len, bool passed);

/*
 * What becomes of packets in a queue: a message has several of these, each followed by the @len
 * bytes of its packet if that goes on changed.
 */
struct warden_verdict {
	uint32_t id; /* the kernel's number of the packet */
	uint16_t len;
	uint8_t accept; /* 1: it goes on; 0: it was never there */
	uint8_t zero;
};

/* Bytes of a message with verdicts, at most: several SYNs, or the longest packet that there is. */
#define WARDEN_VERDICTS_MAX (0xffff + 1024)

/*
 * warden_verdict_next() - the verdict at @at of a message, and its packet; NULL where that goes on as it is
 * Moves @at behind it. Returns false, with @at untouched, if there is none that is right.
 */
bool warden_verdict_next(const uint8_t *message, size_t len, size_t *at,
			 struct warden_verdict *verdict, const uint8_t **packet);

/* ----- messages between processes that take a descriptor along: SCM_RIGHTS of unix(7) ----- */

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
