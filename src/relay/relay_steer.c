/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_steer.c - takes short writes off the subflow that the kernel prefers, while that is far slower than the next one
 *
 * The problem: Linux's MPTCP scheduler (6.18) sends on the subflow whose queued bytes would take the least time, and takes the first
 * subflow if nothing is queued on any. It doesn't look at round-trip times. So the answers of all clients whose connections are idle in
 * between go over the network that these began with, until its queue is full. From then on each answer takes as long as that queue; after
 * 200 ms the kernel sends the whole answer again on the idle subflow. For 4,000 clients (bench: exam) the networks carried a third more
 * bytes than the answered pages have.
 *
 * The kernel skips the first subflow if bytes are queued there. So we write a few bytes of an answer first, on their own: the kernel sends
 * them on the first subflow and the rest on the second. These few bytes also measure the first subflow's round trip again, and end the
 * split when its queue is gone.
 *
 * We split nothing while the first subflow has bytes under way (the kernel then chooses by itself, bulk transfers included), nor a
 * write that is about one segment.
 */
#include "config.h"

#include "relay/relay.h"

#include <linux/mptcp.h>
#include <linux/tcp.h>
#include <sys/socket.h>

/* Shorter writes aren't worth a second packet. */
#define STEER_MIN 4096

/* The number of bytes that go first. */
#define STEER_LEAD 64

/* The first subflow is far slower if its round trip is longer than this many of the second one's plus this many microseconds. */
#define STEER_TIMES 2
#define STEER_MORE_US 2000

size_t relay_steer(const struct relay_side *to, size_t len)
{
	struct {
		struct mptcp_subflow_data header;
		struct tcp_info tcp[2];
	} subflows = { .header = { .size_subflow_data = sizeof(struct mptcp_subflow_data), .size_user = sizeof(struct tcp_info) } };
	socklen_t size = sizeof(subflows);
	const struct tcp_info *first = &subflows.tcp[0], *second = &subflows.tcp[1];

	if (to->tcp || to->capped || to->mptcp.fallen || to->mptcp.subflows < 2 || len < STEER_MIN)
		return 0;
	/* The kernel lists the subflows in the order in which its scheduler takes them. */
	if (getsockopt(to->fd, SOL_MPTCP, MPTCP_TCPINFO, &subflows, &size) < 0 || subflows.header.num_subflows < 2)
		return 0;
	return !first->tcpi_unacked && second->tcpi_rtt && first->tcpi_rtt > STEER_TIMES * second->tcpi_rtt + STEER_MORE_US ? STEER_LEAD : 0;
}
