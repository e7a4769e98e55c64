/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold_queue.c - a netfilter queue in the serving process: reads packets and gives verdicts on them
 *
 * A nftables rule puts SYNs into the queue, and each waits in the kernel until it gets a verdict. The serving process reads packets from
 * the kernel's socket itself. Verdicts need CAP_NET_ADMIN. A process that has it carries them out itself (gateway_rights.c); another one
 * sends them to the main process (queue_owner.c), by a socket for each queue. We collect verdicts until hold_queue_flush(), as each message
 * wakes up both processes. hold_queue_close() waits until the queue's owner has given it up; the kernel then drops all other packets.
 */
#include "config.h"

#include "hold/hold_queue.h"

#include "daemon/warden_message.h"

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
 * The most packets that we read before other events have their turn. Sessions can wait. A request in a SYN can't: we see it only when we
 * read the SYN, and after a second a Linux client sends the SYN again without it, which costs the client Multipath TCP. So a worker that is
 * behind reads this many at once, for some 30 ms.
 */
#define PACKETS_PER_ROUND 1024

/* The size in bytes of the largest packet with the attributes in front of it. */
#define BUFFER_SIZE (0xffff + 4096)

struct hold_queue {
	struct mnl_socket *netlink;
	size_t index;
	int verdicts_fd; /* rights_get_queue() */
	hold_queue_handler *handler;
	void *arg;
	size_t verdicts_len;
	uint8_t verdicts[WARDEN_VERDICTS_MAX]; /* verdicts that aren't sent to the main process yet */
	uint8_t buffer[BUFFER_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));
};

int hold_queue_open(struct hold_queue **out, size_t index, hold_queue_handler *handler, void *arg)
{
	struct hold_queue *queue = calloc(1, sizeof(*queue));
	int packets, error;

	if (!queue)
		return -ENOMEM;
	queue->index = index;
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
	rights_give_queue_up(index, queue->verdicts_fd);
	free(queue);
	return error;
}

void hold_queue_flush(struct hold_queue *queue)
{
	if (queue->verdicts_len)
		rights_give_verdicts(queue->index, queue->verdicts_fd, queue->verdicts, queue->verdicts_len);
	queue->verdicts_len = 0;
}

void hold_queue_close(struct hold_queue *queue)
{
	if (!queue)
		return;
	hold_queue_flush(queue);
	mnl_socket_close(queue->netlink);
	rights_give_queue_up(queue->index, queue->verdicts_fd);
	free(queue);
}

int hold_queue_fd(const struct hold_queue *queue)
{
	return mnl_socket_get_fd(queue->netlink);
}

static unsigned read_device(const struct nlattr *index)
{
	return index ? ntohl(mnl_attr_get_u32(index)) : 0;
}

/* Hands the packet in a netlink message to the handler; called by mnl_cb_run(). */
static int on_message(const struct nlmsghdr *header, void *data)
{
	struct hold_queue *queue = data;
	struct nlattr *attributes[NFQA_MAX + 1] = { 0 };
	const struct nfqnl_msg_packet_hdr *packet;
	struct nlattr *payload;

	if (nfq_nlmsg_parse(header, attributes) < 0 || !attributes[NFQA_PACKET_HDR])
		return MNL_CB_OK;
	packet = mnl_attr_get_payload(attributes[NFQA_PACKET_HDR]);
	payload = attributes[NFQA_PAYLOAD];
	/* With br_netfilter, packets between two ports of a bridge arrive here, too. A routed one has no port yet. */
	if (payload)
		queue->handler(queue->arg, ntohl(packet->packet_id), mnl_attr_get_payload(payload),
			       attributes[NFQA_IFINDEX_PHYSOUTDEV] ? 0 : mnl_attr_get_payload_len(payload),
			       read_device(attributes[NFQA_IFINDEX_INDEV]), read_device(attributes[NFQA_IFINDEX_OUTDEV]));
	else
		hold_queue_verdict(queue, ntohl(packet->packet_id), true, NULL, 0);
	return MNL_CB_OK;
}

bool hold_queue_read(struct hold_queue *queue)
{
	for (int i = 0; i < PACKETS_PER_ROUND; i++) {
		ssize_t received = recv(hold_queue_fd(queue), queue->buffer, sizeof(queue->buffer),
					MSG_DONTWAIT);

		if (received <= 0)
			return false;
		mnl_cb_run(queue->buffer, (size_t)received, 0,
			   mnl_socket_get_portid(queue->netlink), on_message, queue);
	}
	return true;
}

void hold_queue_verdict(struct hold_queue *queue, uint32_t id, bool accept, const uint8_t *packet, size_t len)
{
	struct warden_verdict verdict = { .id = id, .len = (uint16_t)len, .accept = accept };
	uint8_t *at;

	if (queue->verdicts_len + sizeof(verdict) + len > sizeof(queue->verdicts))
		hold_queue_flush(queue);
	at = queue->verdicts + queue->verdicts_len;
	memcpy(at, &verdict, sizeof(verdict));
	if (len)
		memcpy(at + sizeof(verdict), packet, len);
	queue->verdicts_len += sizeof(verdict) + len;
}
