/* SPDX-License-Identifier: BSD-3-Clause */
/* warden_message.h - the messages between the main process, which has the rights, and the serving one, which asks for calls */
#ifndef DAEMON_WARDEN_MESSAGE_H
#define DAEMON_WARDEN_MESSAGE_H

#include "daemon/listen_address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One netfilter queue for each worker: SETTINGS_WORKERS_MAX is no more. */
#define WARDEN_QUEUES_MAX 256

/* Room for the name of a congestion control: TCP_CA_NAME_MAX of the kernel. */
#define CONGESTION_NAME_MAX 16

/* Bytes of a message to the service manager, with the NUL; systemd ignores longer ones (PIPE_BUF). */
#define NOTIFY_MAX 4096

/* The calls to the main process, which answers each before the next is made. */
enum warden_call_kind {
	WARDEN_CALL_RULES,  /* put SYNs to these addresses into the queues; without @queues only remove their requests' timestamps */
	WARDEN_CALL_QUEUES, /* own @count netfilter queues; the answer has the number of the first */
	WARDEN_CALL_QUEUE,  /* for each queue two calls, @index's packets and its verdicts; the answer has a descriptor */
	WARDEN_CALL_VERDICTS,
	WARDEN_CALL_BIND,        /* bind the descriptor to the first of these addresses */
	WARDEN_CALL_TRANSPARENT, /* let the descriptor, of an IPv4 socket or not (@v4), have any address */
	WARDEN_CALL_CONGESTION,  /* give the descriptor this congestion control */
	WARDEN_CALL_IN_FORCE,    /* the settings read last are in force */
	WARDEN_CALL_NOTICE,      /* tell the service manager this text, and give it the descriptor if there is one */
	WARDEN_CALL_LEAVE,       /* end: the serving process goes on without rights */
	WARDEN_CALL_KIND_COUNT
};

/* All calls have this size; members that a kind doesn't use are zero. */
struct warden_call {
	uint32_t kind;  /* enum warden_call_kind */
	uint32_t count; /* of addresses, or of queues */
	uint32_t index; /* of a queue, from 0 on */
	uint32_t queues, v4; /* 0 or 1 */
	char congestion[CONGESTION_NAME_MAX];
	union {
		struct listen_address listen[LISTEN_ADDRESSES_MAX];
		char text[NOTIFY_MAX];
	};
};

struct warden_answer {
	int32_t error;   /* 0 or -errno */
	uint32_t number; /* of a queue; for rules: 1 if they refuse SYNs that are marked for refusal */
};

/*
 * warden_call_is_right() - tell whether @len bytes have the form of a call
 * warden_policy.c decides whether the call is permitted. @passed: a descriptor came with it
 */
bool warden_call_is_right(const struct warden_call *call, size_t len, bool passed);

/*
 * A verdict on a packet in a queue. A message has several, each followed by the @len bytes of its packet if the
 * packet goes on changed.
 */
struct warden_verdict {
	uint32_t id; /* the kernel's number of the packet */
	uint16_t len;
	uint8_t accept; /* 1: the packet goes on; 0: it is dropped */
	uint8_t zero;
};

/* The most bytes of a message with verdicts: several SYNs, or the longest possible packet. */
#define WARDEN_VERDICTS_MAX (0xffff + 1024)

/*
 * warden_verdict_next() - read the verdict at @at of a message, and its packet (NULL: unchanged), and move @at behind both
 * Returns false, with @at untouched, if the verdict is invalid or missing.
 */
bool warden_verdict_next(const uint8_t *message, size_t len, size_t *at,
			 struct warden_verdict *verdict, const uint8_t **packet);

/* ----- messages between processes that take a descriptor along: SCM_RIGHTS of unix(7) ----- */

/*
 * fdpass_receive() - receive the next message of a SOCK_SEQPACKET socket, with at most one descriptor
 * @wait: wait for a message; if false and there is none, it returns -EAGAIN
 * @passed: set to the descriptor, which the caller closes; -1: none came with the message
 * Returns the bytes of the message, 0 at the end of the connection, or -errno. For a message longer than @size, or
 * with several descriptors, it returns -EMSGSIZE and closes the descriptors.
 */
ssize_t fdpass_receive(int fd, void *buf, size_t size, bool wait, int *passed);

/*
 * fdpass_send() - send a message, with the descriptor @passed unless that is -1
 * @passed stays the caller's. Returns the bytes sent, or -errno.
 */
ssize_t fdpass_send(int fd, const void *buf, size_t len, int passed);

/*
 * ----- calls that need a right -----
 *
 * warden_ask.c asks the main process to carry them out. A gateway has the rights itself: gateway_rights.c defines the calls that it needs.
 */

/*
 * rights_init() - ask by this socket (warden.h); -1, as before this call: there is no main process
 * The socket stays the caller's. Without a main process only calls that need no right work; the others return -EPERM, or -EAGAIN after it
 * has ended.
 * Call it before any thread is started; any thread may call all other functions.
 */
void rights_init(int calls);

/*
 * rights_set_rules() - install the rules of hold_rules_install() for these addresses
 * @to_queues: SYNs go to the queues that rights_own_queues() has made; if false, the first chain has no rules
 * @refuses: set to whether they refuse SYNs that are marked so
 * @fd: on success, the caller's descriptor; the rules last as long as any process has it open
 */
int rights_set_rules(const struct listen_address *listen, size_t count, bool to_queues, bool *refuses, int *fd);

/* Owns this many netfilter queues, in place of earlier ones; sets the number of the first. */
int rights_own_queues(size_t count, uint16_t *first);

/* Gets the caller's sockets for the packets and the verdicts of one of them (hold_queue.c). */
int rights_get_queue(size_t index, int *packets, int *verdicts);

/* Carries out verdicts, as warden_verdict_next() reads them; @fd is @verdicts of rights_get_queue(). Returns false if nobody does. */
bool rights_give_verdicts(size_t index, int fd, const uint8_t *verdicts, size_t len);

/* Gives the queue up, and waits until its owner has closed it; closes @fd, but not @packets, which the caller has closed before. */
void rights_give_queue_up(size_t index, int fd);

/* Binds a socket, to a port below 1024 as well if the settings name it. Returns 0 or -errno. */
int rights_bind(int fd, const union sockaddr_ip *address);

/*
 * Sets IP_TRANSPARENT on a socket of IPv4 (@v4) or IPv6; the settings permit it by --preserve-client-address. Returns
 * 0 or -errno.
 */
int rights_set_transparent(int fd, bool v4);

/* Tells the main process that the settings read last are in force: it no longer permits calls that only older ones need. */
void rights_settings_in_force(void);

/* Makes the main process tell the service manager @text, with the descriptor @fd unless that is -1. */
void rights_notify(const char *text, int fd);

/* Makes the main process end. */
void rights_leave(void);

/* ----- sets the congestion control of TCP and MPTCP sockets, by the kernel's names ----- */

/*
 * congestion_set() - set the congestion control of a socket
 * On a listener, it sets that of the sockets that will be accepted.
 * @name: "" for the system's default, the sysctl net.ipv4.tcp_congestion_control
 * Returns 0 or -errno: -ENOENT if the kernel has none of that name, -EPERM if only CAP_NET_ADMIN may use it
 * (net.ipv4.tcp_allowed_congestion_control).
 */
int congestion_set(int fd, const char *name);

/* Returns the result that congestion_set() would have. */
int congestion_check(const char *name);

/* Room for the list of congestion_available(). */
#define CONGESTION_LIST_MAX 256

/* Lists the congestion controls that are loaded, with blanks between them: "reno cubic"; returns @buf. */
const char *congestion_available(char buf[static CONGESTION_LIST_MAX]);

#endif
