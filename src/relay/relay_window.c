/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_window.c - opens the receive window of an upload
 *
 * The problem: Linux (6.18) begins with a receive buffer of net.ipv4.tcp_rmem's second number, 128 KB, and enlarges it once a round
 * trip. Over several subflows an upload fills it for two round trips: 512 KiB over 48 + 48 Mbit/s took 1.12 of the time over one
 * network. With Nagle's algorithm, 128 KiB over one network took 1.2 of direct: a full window ends in a short segment (bench: sizes).
 *
 * SO_RCVLOWAT enlarges the receive buffer without ending its autotuning, as SO_RCVBUF would. The kernel does that for the subflows
 * that the connection has, and then enlarges nothing until autotuning wants more: later ones would stay at their first window of 80
 * KB. So the window becomes a little larger again with each subflow that has joined.
 */
#include "config.h"

#include "relay/relay.h"

#include <sys/socket.h>

/* Requests are shorter. */
#define UPLOAD_MIN 8192

/* The window in bytes, and how much more each subflow makes it. */
#define WINDOW (1024 * 1024)
#define WINDOW_STEP 4096

void relay_widen(struct relay_side *side)
{
	const int least = 1, window = WINDOW + side->mptcp.subflows * WINDOW_STEP;

	if (side->tcp || side->mptcp.fallen || side->mptcp.subflows <= side->widened || side->received < UPLOAD_MIN)
		return;
	side->widened = side->mptcp.subflows;
	/* No event is lost in between: the caller has just read, and reads on until EAGAIN. */
	setsockopt(side->fd, SOL_SOCKET, SO_RCVLOWAT, &window, sizeof(window));
	setsockopt(side->fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
}
