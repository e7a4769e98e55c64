/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transfer.c - bytes to a converter and back, over a connection that a probe has made
 *
 * Progress shows in the bytes that come back, and in those that the peer's kernel acknowledges (SIOCOUTQ, which is looked
 * at in ticks, since no event tells of it). So a path that carries full segments one way only is told from one that
 * carries none.
 */
#include "config.h"

#include "convertize/check/transfer.h"

#include <errno.h>
#include <linux/mptcp.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#define TICK_MS 20
#define SUBFLOWS_MAX 16
#define TCP_ESTABLISHED 1 /* include/net/tcp_states.h */
#define SUBFLOWS_MS 2500 /* the second half waits for subflows for so long and SUBFLOWS_ROUND_TRIPS */
#define SUBFLOWS_ROUND_TRIPS 4
#define ALL_MS 30000     /* a transfer that takes longer is given up */

static void look_at_subflows(struct transfer *transfer)
{
	/* MPTCP_INFO counts those that are still being set up as well */
	struct {
		struct mptcp_subflow_data header;
		struct tcp_info subflows[SUBFLOWS_MAX];
	} infos = { .header = { .size_subflow_data = sizeof(struct mptcp_subflow_data),
				.size_user = sizeof(struct tcp_info) } };
	socklen_t len = sizeof(infos);
	unsigned int established = 0;

	if (!transfer->subflows ||
	    getsockopt(transfer->fd, SOL_MPTCP, MPTCP_TCPINFO, &infos, &len) < 0)
		return;
	for (uint32_t i = 0; i < infos.header.num_subflows && i < SUBFLOWS_MAX; i++)
		established += infos.subflows[i].tcpi_state == TCP_ESTABLISHED;
	if (established && established - 1 > transfer->result->subflows)
		transfer->result->subflows = established - 1;
}

/* Returns how many bytes may have been sent by now. */
static size_t may_send(const struct transfer *transfer, double since_start)
{
	double patience = SUBFLOWS_MS + SUBFLOWS_ROUND_TRIPS * transfer->result->round_trip_ms;

	if (transfer->result->subflows >= transfer->subflows || since_start > patience)
		return transfer->len;
	return transfer->len - transfer->echo / 2;
}

/* Returns false if the connection is lost. */
static bool send_some(struct transfer *transfer, size_t end)
{
	ssize_t sent;

	if (transfer->sent >= end)
		return true;
	sent = send(transfer->fd, transfer->bytes + transfer->sent, end - transfer->sent,
		    MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent > 0)
		transfer->sent += (size_t)sent;
	return sent >= 0 || errno == EAGAIN || errno == EINTR;
}

/* Puts the bytes of the answer into the message, and counts those behind it. */
static enum probe_outcome take(struct transfer *transfer, const uint8_t *bytes, size_t len,
			       enum probe_outcome outcome)
{
	struct probe_result *result = transfer->result;

	for (; len && outcome == PROBE_SILENT; len--) {
		result->message[result->message_len++] = *bytes++;
		outcome = probe_judge(result);
	}
	result->returned += len;
	return outcome;
}

/* Returns false at the end of the stream, or of the connection; *outcome is then final. */
static bool receive_some(struct transfer *transfer, enum probe_outcome *outcome)
{
	uint8_t bytes[16384];
	ssize_t got = recv(transfer->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (got > 0) {
		*outcome = take(transfer, bytes, (size_t)got, *outcome);
		return true;
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (*outcome == PROBE_SILENT)
		*outcome = got == 0 ? PROBE_CLOSED : PROBE_RESET;
	return false;
}

static void look_at_acknowledged(struct transfer *transfer)
{
	size_t acknowledged;
	int unacknowledged = 0;

	if (ioctl(transfer->fd, SIOCOUTQ, &unacknowledged) < 0 || unacknowledged < 0)
		return;
	acknowledged = transfer->sent - (size_t)unacknowledged;
	if (acknowledged <= transfer->sent && acknowledged > transfer->result->acknowledged)
		transfer->result->acknowledged = acknowledged;
}

static bool is_over(const struct transfer *transfer, enum probe_outcome outcome)
{
	const struct probe_result *result = transfer->result;

	return outcome != PROBE_SILENT &&
	       (outcome != PROBE_ANSWERED || !result->response.has_echo ||
		result->returned >= transfer->echo);
}

enum probe_outcome transfer_run(struct transfer *transfer)
{
	struct probe_result *result = transfer->result;
	enum probe_outcome outcome = PROBE_SILENT;
	double start = probe_now_ms(), moved = start, now = start;
	size_t before = 0, so_far;

	while (!is_over(transfer, outcome) && now - moved < transfer->stall_ms &&
	       now - start < ALL_MS) {
		size_t end = may_send(transfer, now - start);
		struct pollfd ready = { .fd = transfer->fd,
					.events = (short)(POLLIN |
							  (transfer->sent < end ? POLLOUT : 0)) };

		poll(&ready, 1, TICK_MS);
		if (!send_some(transfer, end)) {
			outcome = outcome == PROBE_SILENT ? PROBE_RESET : outcome;
			break;
		}
		if (!receive_some(transfer, &outcome))
			break;
		look_at_acknowledged(transfer);
		look_at_subflows(transfer);
		now = probe_now_ms();
		so_far = result->acknowledged + result->returned + result->message_len;
		if (so_far != before || end < transfer->len)
			moved = now;
		before = so_far;
	}
	result->transfer_ms = probe_now_ms() - start;
	result->answer_ms = result->round_trip_ms + result->transfer_ms;
	return outcome;
}
