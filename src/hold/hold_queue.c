/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold_queue.c - a netfilter queue in the serving process: reads packets and gives verdicts on them
 *
 * A nftables rule puts SYNs into the queue, and each waits in the kernel until it gets a verdict. The serving process
 * reads packets from the kernel's socket itself. Verdicts need CAP_NET_ADMIN, so they are sent to the main process
 * (queue_owner.c) by a socket for each queue. They are collected until syn_queue_flush(), as each message wakes up both
 * processes. syn_queue_close() waits until the main process has given up the queue; the kernel drops packets without
 * a verdict then.
 */
#include "config.h"

#include "hold/hold_queue.h"

#include "convertd/base/warden_message.h"
#include "convertd/base/rights.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * At most this many packets are read before other events have their turn. Of a request in a SYN nobody knows before it is read, and
 * a Linux client sends its SYN again after a second, without the request, which costs it Multipath TCP; sessions can wait. So a
 * worker that is behind reads all that waits, for some 30 ms.
 */
#define PACKETS_PER_ROUND 1024

/* The size in bytes of the largest packet with the attributes in front of it. */
#define BUFFER_SIZE (0xffff + 4096)

struct syn_queue {
	struct mnl_socket *netlink;
	int verdicts_fd;
	syn_queue_handler *handler;
	void *arg;
	size_t verdicts_len;
	uint8_t verdicts[WARDEN_VERDICTS_MAX]; /* verdicts that aren't sent to the main process yet */
	uint8_t buffer[BUFFER_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));
};

int syn_queue_open(struct syn_queue **out, size_t index, syn_queue_handler *handler, void *arg)
{
	struct syn_queue *queue = calloc(1, sizeof(*queue));
	int packets, error;

	if (!queue)
		return -ENOMEM;
	queue->handler = handler;
	queue->arg = arg;
	error = rights_get_queue(index, &packets, &queue->verdicts_fd);
	if (error) {
		free(queue);
		return error;
	}
	queue->netlink = mnl_socket_fdopen(packets);
	if (queue->netlink) {
		*out = queue;
		return 0;
	}
	error = -errno;
	close(packets);
	close(queue->verdicts_fd);
	free(queue);
	return error;
}

bool syn_queue_flush(struct syn_queue *queue)
{
	ssize_t sent = queue->verdicts_len ?
			       fdpass_send(queue->verdicts_fd, queue->verdicts, queue->verdicts_len, -1) :
			       0;

	queue->verdicts_len = 0;
	return sent >= 0;
}

void syn_queue_close(struct syn_queue *queue)
{
	char end;

	if (!queue)
		return;
	syn_queue_flush(queue);
	mnl_socket_close(queue->netlink);
	shutdown(queue->verdicts_fd, SHUT_WR);
	while (recv(queue->verdicts_fd, &end, sizeof(end), 0) < 0 && errno == EINTR)
		;
	close(queue->verdicts_fd);
	free(queue);
}

int syn_queue_fd(const struct syn_queue *queue)
{
	return mnl_socket_get_fd(queue->netlink);
}

/* Hands over the packet in a netlink message; called by mnl_cb_run(). */
static int on_message(const struct nlmsghdr *header, void *data)
{
	struct syn_queue *queue = data;
	struct nlattr *attributes[NFQA_MAX + 1] = { 0 };
	const struct nfqnl_msg_packet_hdr *packet;
	struct nlattr *payload;

	if (nfq_nlmsg_parse(header, attributes) < 0 || !attributes[NFQA_PACKET_HDR])
		return MNL_CB_OK;
	packet = mnl_attr_get_payload(attributes[NFQA_PACKET_HDR]);
	payload = attributes[NFQA_PAYLOAD];
	if (payload)
		queue->handler(queue->arg, ntohl(packet->packet_id), mnl_attr_get_payload(payload),
			       mnl_attr_get_payload_len(payload));
	else
		syn_queue_pass(queue, ntohl(packet->packet_id));
	return MNL_CB_OK;
}

bool syn_queue_read(struct syn_queue *queue)
{
	for (int i = 0; i < PACKETS_PER_ROUND; i++) {
		ssize_t received = recv(syn_queue_fd(queue), queue->buffer, sizeof(queue->buffer),
					MSG_DONTWAIT);

		if (received <= 0)
			return false;
		mnl_cb_run(queue->buffer, (size_t)received, 0,
			   mnl_socket_get_portid(queue->netlink), on_message, queue);
	}
	return true;
}

/* Adds a verdict to those for the main process. @packet: the bytes to go on with; NULL: unchanged */
static void give_verdict(struct syn_queue *queue, uint32_t id, bool accept, const uint8_t *packet,
			 size_t len)
{
	struct warden_verdict verdict = { .id = id, .len = (uint16_t)len, .accept = accept };
	uint8_t *at;

	if (queue->verdicts_len + sizeof(verdict) + len > sizeof(queue->verdicts))
		syn_queue_flush(queue);
	at = queue->verdicts + queue->verdicts_len;
	memcpy(at, &verdict, sizeof(verdict));
	if (len)
		memcpy(at + sizeof(verdict), packet, len);
	queue->verdicts_len += sizeof(verdict) + len;
}

void syn_queue_pass(struct syn_queue *queue, uint32_t id)
{
	give_verdict(queue, id, true, NULL, 0);
}

void syn_queue_pass_changed(struct syn_queue *queue, uint32_t id, const uint8_t *packet, size_t len)
{
	give_verdict(queue, id, true, packet, len);
}

void syn_queue_drop(struct syn_queue *queue, uint32_t id)
{
	give_verdict(queue, id, false, NULL, 0);
}
