/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syn_queue.c - a netfilter queue: packets from the kernel, and what becomes of them
 *
 * Whatever goes wrong, packets pass: the rule that fills the queue has "bypass" for one without an
 * owner, and the queue itself has NFQA_CFG_F_FAIL_OPEN for being full. The kernel completes the
 * checksums of packets that are segmented or summed by network cards, since NFQA_CFG_F_GSO isn't
 * asked for.
 *
 * Messages are answered within the call that sends them, so that nothing here waits.
 */
#include "config.h"

#include "convertd/syn_queue.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Packets that are read before others get their turn. */
#define PACKETS_PER_ROUND 64

/* Larger than any packet with the attributes in front of it. */
#define BUFFER_SIZE (0xffff + 4096)

/*
 * What has arrived and isn't read yet, in bytes as the kernel counts, which doubles it: 5,000 SYNs, as
 * many as are judged in a tenth of a second. In a flood of requests each client waits behind so many;
 * those beyond pass at once.
 */
#define RECEIVE_BUFFER (2 * 1024 * 1024)

struct syn_queue {
	struct mnl_socket *netlink;
	syn_queue_handler *handler;
	void *arg;
	uint16_t number;
	uint8_t buffer[BUFFER_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));
	uint8_t verdict[BUFFER_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));
};

/* Sends a configuration message and waits for the kernel's answer to it. Returns 0 or -errno. */
static int configure(struct syn_queue *queue, struct nlmsghdr *header)
{
	char reply[1024] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *answer = (const struct nlmsghdr *)reply;

	header->nlmsg_flags |= NLM_F_ACK;
	if (mnl_socket_sendto(queue->netlink, header, header->nlmsg_len) < 0 ||
	    mnl_socket_recvfrom(queue->netlink, reply, sizeof(reply)) < 0)
		return -errno;
	if (answer->nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(answer))->error;
}

static struct nlmsghdr *config_message(struct syn_queue *queue)
{
	return nfq_nlmsg_put((char *)queue->buffer, NFQNL_MSG_CONFIG, queue->number);
}

/* Returns 0 or -errno. */
static int bind_queue(struct syn_queue *queue)
{
	struct nlmsghdr *header = config_message(queue);
	int error;

	nfq_nlmsg_cfg_put_cmd(header, AF_UNSPEC, NFQNL_CFG_CMD_BIND);
	error = configure(queue, header);
	return error == -EEXIST ? -EBUSY : error;
}

/* Returns 0 or -errno. */
static int set_up(struct syn_queue *queue, unsigned packets)
{
	const uint32_t flags = NFQA_CFG_F_FAIL_OPEN;
	struct nlmsghdr *header = config_message(queue);

	nfq_nlmsg_cfg_put_params(header, NFQNL_COPY_PACKET, 0xffff);
	nfq_nlmsg_cfg_put_qmaxlen(header, packets);
	mnl_attr_put_u32(header, NFQA_CFG_FLAGS, htonl(flags));
	mnl_attr_put_u32(header, NFQA_CFG_MASK, htonl(flags));
	return configure(queue, header);
}

/* Bytes for bursts; an overflow, which is no error then, makes packets pass. */
static void size_buffers(struct syn_queue *queue)
{
	static const int size = RECEIVE_BUFFER, on = 1;
	int fd = mnl_socket_get_fd(queue->netlink);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	mnl_socket_setsockopt(queue->netlink, NETLINK_NO_ENOBUFS, (void *)&on, sizeof(on));
}

int syn_queue_open(struct syn_queue **out, uint16_t number, unsigned packets,
		   syn_queue_handler *handler, void *arg)
{
	struct syn_queue *queue = calloc(1, sizeof(*queue));
	int error;

	if (!queue)
		return -ENOMEM;
	queue->number = number;
	queue->handler = handler;
	queue->arg = arg;
	queue->netlink = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (!queue->netlink || mnl_socket_bind(queue->netlink, 0, MNL_SOCKET_AUTOPID) < 0)
		error = -errno;
	else
		error = bind_queue(queue);
	if (!error)
		error = set_up(queue, packets);
	if (error) {
		syn_queue_close(queue);
		return error;
	}
	size_buffers(queue);
	*out = queue;
	return 0;
}

void syn_queue_close(struct syn_queue *queue)
{
	if (!queue)
		return;
	if (queue->netlink)
		mnl_socket_close(queue->netlink);
	free(queue);
}

int syn_queue_fd(const struct syn_queue *queue)
{
	return mnl_socket_get_fd(queue->netlink);
}

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

static void give_verdict(struct syn_queue *queue, uint32_t id, uint32_t verdict,
			 const uint8_t *packet, size_t len)
{
	struct nlmsghdr *header =
		nfq_nlmsg_put((char *)queue->verdict, NFQNL_MSG_VERDICT, queue->number);

	nfq_nlmsg_verdict_put(header, (int)id, (int)verdict);
	if (packet)
		nfq_nlmsg_verdict_put_pkt(header, packet, (uint32_t)len);
	/* Fails for a packet that is gone with its device: so is the connection. */
	mnl_socket_sendto(queue->netlink, header, header->nlmsg_len);
}

void syn_queue_pass(struct syn_queue *queue, uint32_t id)
{
	give_verdict(queue, id, NF_ACCEPT, NULL, 0);
}

void syn_queue_pass_changed(struct syn_queue *queue, uint32_t id, const uint8_t *packet, size_t len)
{
	give_verdict(queue, id, NF_ACCEPT, packet, len);
}

void syn_queue_drop(struct syn_queue *queue, uint32_t id)
{
	give_verdict(queue, id, NF_DROP, NULL, 0);
}
