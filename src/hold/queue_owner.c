/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue_owner.c - owns the netfilter queues in the process that has the right, and passes verdicts on to the kernel
 *
 * The kernel checks the rights of the process that sends a netlink message, not of the one that receives it. So a
 * serving process without rights has the same sockets and reads the packets by itself (hold_queue.c), but sends its
 * verdicts to the main process, by a socket for each queue. That process makes the netlink messages, so that an
 * attacker in the serving process can't use netfilter's messages for anything else: another queue, a mark, other
 * packets than SYNs to our listeners.
 *
 * If anything fails, packets pass: the rule that fills the queue has "bypass" for a queue without an owner, and the
 * queue itself has NFQA_CFG_F_FAIL_OPEN for when it is full. The kernel completes the checksums of packets whose
 * segmentation or checksums are left to network cards, since NFQA_CFG_F_GSO isn't set.
 *
 * A queue is closed when the serving process closes its end of the socket, or with queue_owner_destroy(). The kernel
 * answers configuration messages within the call that sends them, so no function here waits.
 */
#include "config.h"

#include "hold/hold_queue.h"

#include "daemon/warden_message.h"
#include "hold/hold_table.h"
#include "daemon/log.h"
#include "hold/syn_packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* We try this many numbers of queues, since other converters or programs may have the first ones. */
#define NUMBERS_TRIED 64

/* The number of packets that may wait in the queue besides those that are withheld. */
#define QUEUE_SPARE 4096

/*
 * The receive buffer of a queue's socket in bytes; the kernel doubles it. It has room for 5,000 SYNs, as many as we
 * judge in a tenth of a second. In a flood of requests, each SYN waits behind that many; further ones pass unread.
 */
#define RECEIVE_BUFFER (2 * 1024 * 1024)

/* The most bytes of a verdict for the kernel besides the packet: headers and attributes. */
#define VERDICT_ROOM 128

/* Verdicts are collected for the kernel and sent as soon as they have at least this many bytes. */
#define SEND_AT 32768

struct queue {
	struct mnl_socket *netlink; /* NULL: closed */
	int verdicts; /* this process's end of the socket for verdicts; -1: closed */
	int other;    /* the serving process's end, until that takes it; then -1 */
	uint8_t out[SEND_AT + UINT16_MAX + VERDICT_ROOM] __attribute__((aligned(NLMSG_ALIGNTO)));
};

struct queue_owner {
	uint16_t first; /* the number of the first queue */
	size_t count;
	queue_owner_send *send; /* or NULL */
	uint8_t in[WARDEN_VERDICTS_MAX];
	struct queue queue[];
};

/* Sends a configuration message and waits for the kernel's answer to it. Returns 0 or -errno. */
static int configure(const struct mnl_socket *netlink, struct nlmsghdr *header)
{
	char reply[1024] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *answer = (const struct nlmsghdr *)reply;

	header->nlmsg_flags |= NLM_F_ACK;
	if (mnl_socket_sendto(netlink, header, header->nlmsg_len) < 0 ||
	    mnl_socket_recvfrom(netlink, reply, sizeof(reply)) < 0)
		return -errno;
	if (answer->nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(answer))->error;
}

/* Becomes the owner of a queue. Returns 0 or -errno: -EBUSY if it has an owner. */
static int bind_queue(const struct mnl_socket *netlink, uint16_t number)
{
	char buf[1024] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *header = nfq_nlmsg_put(buf, NFQNL_MSG_CONFIG, number);
	int error;

	nfq_nlmsg_cfg_put_cmd(header, AF_UNSPEC, NFQNL_CFG_CMD_BIND);
	error = configure(netlink, header);
	return error == -EEXIST ? -EBUSY : error;
}

/* Sets which bytes the queue copies to us, and its length, and lets packets pass if it is full. Returns 0 or -errno. */
static int set_up(const struct mnl_socket *netlink, uint16_t number)
{
	const uint32_t flags = NFQA_CFG_F_FAIL_OPEN;
	char buf[1024] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *header = nfq_nlmsg_put(buf, NFQNL_MSG_CONFIG, number);

	nfq_nlmsg_cfg_put_params(header, NFQNL_COPY_PACKET, 0xffff);
	nfq_nlmsg_cfg_put_qmaxlen(header, HOLD_SYNS_MAX + QUEUE_SPARE);
	mnl_attr_put_u32(header, NFQA_CFG_FLAGS, htonl(flags));
	mnl_attr_put_u32(header, NFQA_CFG_MASK, htonl(flags));
	return configure(netlink, header);
}

/* Enlarges the socket's buffer for bursts of packets. If it overflows, packets pass, and reading doesn't fail with ENOBUFS. */
static void size_buffers(const struct mnl_socket *netlink)
{
	static const int size = RECEIVE_BUFFER, on = 1;
	int fd = mnl_socket_get_fd(netlink);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	mnl_socket_setsockopt(netlink, NETLINK_NO_ENOBUFS, (void *)&on, sizeof(on));
}

static void queue_close(struct queue *queue)
{
	if (queue->netlink)
		mnl_socket_close(queue->netlink);
	/* Close this after the queue: hold_queue_close() waits at the other end until the queue has gone. */
	if (queue->verdicts >= 0)
		close(queue->verdicts);
	if (queue->other >= 0)
		close(queue->other);
	queue->netlink = NULL;
	queue->verdicts = queue->other = -1;
}

/* Opens a queue, and the socket for its verdicts. Returns 0, or -errno with nothing open. */
static int queue_open(struct queue *queue, uint16_t number)
{
	int sockets[2], error;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	queue->verdicts = sockets[0];
	queue->other = sockets[1];
	queue->netlink = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (!queue->netlink || mnl_socket_bind(queue->netlink, 0, MNL_SOCKET_AUTOPID) < 0)
		error = -errno;
	else
		error = bind_queue(queue->netlink, number);
	if (!error)
		error = set_up(queue->netlink, number);
	if (error)
		queue_close(queue);
	else
		size_buffers(queue->netlink);
	return error;
}

/* Opens all queues, numbered from @first on. Returns 0, or -errno with none open and @failed set to the number that failed. */
static int open_from(struct queue_owner *owner, unsigned first, unsigned *failed)
{
	size_t i = 0;
	int error = 0;

	for (; i < owner->count && !error; i++) {
		*failed = first + (unsigned)i;
		error = *failed > UINT16_MAX ? -ERANGE :
					       queue_open(&owner->queue[i], (uint16_t)*failed);
	}
	while (error && i--)
		queue_close(&owner->queue[i]);
	owner->first = (uint16_t)first;
	return error;
}

/*
 * If a queue has an owner, the kernel says EBUSY or, in some versions, EPERM. It also says EPERM without CAP_NET_ADMIN. So we try further
 * numbers after either error; without the right, all of them fail.
 */
int queue_owner_create(struct queue_owner **out, uint16_t from, size_t count)
{
	struct queue_owner *owner = calloc(1, sizeof(*owner) + count * sizeof(struct queue));
	unsigned last = UINT16_MAX + 1 - (unsigned)count, first = from < last ? from : last;
	int error = -EBUSY;

	if (!owner)
		return -ENOMEM;
	owner->count = count;
	for (size_t i = 0; i < count; i++)
		owner->queue[i].verdicts = owner->queue[i].other = -1;
	for (unsigned i = 0; i < NUMBERS_TRIED && (error == -EBUSY || error == -EPERM); i++) {
		unsigned failed = 0;

		error = open_from(owner, first, &failed);
		if (!error) {
			*out = owner;
			return 0;
		}
		first = failed + 1;
	}
	free(owner);
	/* -ERANGE: all numbers up to the last one are taken. */
	return error == -ERANGE ? -EBUSY : error;
}

void queue_owner_close(struct queue_owner *owner, size_t index)
{
	queue_close(&owner->queue[index]);
}

void queue_owner_destroy(struct queue_owner *owner)
{
	for (size_t i = 0; owner && i < owner->count; i++)
		queue_close(&owner->queue[i]);
	free(owner);
}

void queue_owner_set_send(struct queue_owner *owner, queue_owner_send *send)
{
	owner->send = send;
}

size_t queue_owner_count(const struct queue_owner *owner)
{
	return owner->count;
}

uint16_t queue_owner_first(const struct queue_owner *owner)
{
	return owner->first;
}

int queue_owner_packets(const struct queue_owner *owner, size_t index)
{
	return owner->queue[index].netlink ? mnl_socket_get_fd(owner->queue[index].netlink) : -1;
}

int queue_owner_take_verdicts(struct queue_owner *owner, size_t index)
{
	int fd = owner->queue[index].other;

	owner->queue[index].other = -1;
	return fd;
}

int queue_owner_socket(const struct queue_owner *owner, size_t index)
{
	return owner->queue[index].verdicts;
}

/* Writes a verdict to @at as a netlink message. Returns its length. */
static size_t write_verdict(uint8_t *at, uint16_t number, const struct warden_verdict *verdict,
			    const uint8_t *packet)
{
	struct nlmsghdr *header = nfq_nlmsg_put((char *)at, NFQNL_MSG_VERDICT, number);

	nfq_nlmsg_verdict_put(header, (int)verdict->id, verdict->accept ? NF_ACCEPT : NF_DROP);
	if (packet)
		nfq_nlmsg_verdict_put_pkt(header, packet, verdict->len);
	return NLMSG_ALIGN(header->nlmsg_len);
}

/* Tells whether a changed packet is a SYN that the policy allows. Without a policy each packet is. */
static bool may_go_on_as(queue_owner_policy *allows, const void *policy, const uint8_t *packet, size_t len)
{
	struct syn_packet syn;

	return !allows || (syn_packet_parse(packet, len, &syn) == SYN_PACKET_OK &&
			   allows(policy, &syn.flow.destination, syn.flow.destination_port));
}

/* Errors of the kernel are ignored: they are about packets whose device is gone, and the connections with it. */
bool queue_owner_carry_out(struct queue_owner *owner, size_t index, const uint8_t *verdicts, size_t len, queue_owner_policy *allows,
			   const void *policy)
{
	struct queue *queue = &owner->queue[index];
	uint16_t number = (uint16_t)(owner->first + index);
	struct warden_verdict verdict;
	const uint8_t *packet;
	size_t at = 0, used = 0;

	while (warden_verdict_next(verdicts, len, &at, &verdict, &packet)) {
		if (packet && !may_go_on_as(allows, policy, packet, verdict.len))
			packet = NULL;
		if (packet && verdict.accept && owner->send && owner->send(packet, verdict.len)) {
			verdict.accept = false;
			packet = NULL;
		}
		used += write_verdict(queue->out + used, number, &verdict, packet);
		if (used >= SEND_AT) {
			mnl_socket_sendto(queue->netlink, queue->out, used);
			used = 0;
		}
	}
	if (used)
		mnl_socket_sendto(queue->netlink, queue->out, used);
	return at == len;
}

bool queue_owner_serve(struct queue_owner *owner, size_t index, queue_owner_policy *allows, const void *policy)
{
	struct queue *queue = &owner->queue[index];
	int passed;
	ssize_t len = fdpass_receive(queue->verdicts, owner->in, sizeof(owner->in), false, &passed);

	if (passed >= 0)
		close(passed);
	if (len > 0)
		return queue_owner_carry_out(owner, index, owner->in, (size_t)len, allows, policy);
	if (len == 0 || len == -ECONNRESET)
		queue_close(queue);
	return len == 0 || len == -EAGAIN || len == -ECONNRESET;
}
