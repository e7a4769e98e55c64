/* SPDX-License-Identifier: BSD-3-Clause */
/* warden_message.h - what the main process and the serving one tell each other */
#ifndef CONVERTD_WARDEN_MESSAGE_H
#define CONVERTD_WARDEN_MESSAGE_H

#include "convertd/config/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
	char congestion[CONGESTION_NAME_MAX];
	struct listen_address listen[SETTINGS_LISTEN_MAX];
};

#define WARDEN_TEXT_MAX 256
struct warden_answer {
	int32_t error;   /* 0 or -errno */
	uint32_t number; /* of a queue */
	char text[WARDEN_TEXT_MAX]; /* why, where the error isn't enough; "": it is */
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

/*
 * warden_notice_is_right() - is it what convertd has to say to a service manager?
 * Each line of it must be one that notify.c sends: whoever has taken over the serving process may not name
 * another main process, or have descriptors kept under names of others (sd_notify(3)).
 */
bool warden_notice_is_right(const char *text, size_t len);

/*
 * warden_receive(), warden_send() - a message of a SOCK_SEQPACKET socket, with one descriptor at most
 * @passed: the caller's to close; -1: none
 * @wait: for one to come, or else it is -EAGAIN. Both return bytes, 0 at the end of the connection, or -errno; a message that
 * is too long, or has several descriptors, is -EMSGSIZE and has none.
 */
ssize_t warden_receive(int fd, void *buf, size_t size, bool wait, int *passed);
ssize_t warden_send(int fd, const void *buf, size_t len, int passed);

#endif
