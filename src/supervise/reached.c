/* SPDX-License-Identifier: BSD-3-Clause */
/* reached.c - the server was reached, or nothing more will be said of it: the call succeeds */
#include "config.h"

#include "supervise/reached.h"

#include "client/converters_facts.h"
#include "client/exchange.h"
#include "common/clock.h"
#include "supervise/aftermath.h"
#include "supervise/ends.h"
#include "supervise/enquiry.h"
#include "supervise/kernel.h"
#include "supervise/peers.h"
#include "supervise/probes.h"
#include "supervise/response.h"

#include <errno.h>
#include <stdio.h>

static const char *request_ride(const struct connection *connection)
{
	bool taken;

	if (!connection->attempt.syn_data)
		return "request behind the handshake";
	taken = kernel_tcp_info(connection->sock).tcpi_options & TCPI_OPT_SYN_DATA;
	paths_note_syn_data(&connection->begin.own.id, taken, connection->begin.syn_at);
	return taken ? "request taken in the SYN" : "request not taken in the SYN";
}

/* The server was reached, which @how says in the log. */
static void converted(struct connection *connection, const char *how)
{
	char detail[96];

	snprintf(detail, sizeof(detail), "%s%s", request_ride(connection), how);
	ends_log(connection, connection->sock_mptcp ? "converted over MPTCP, " : "converted over TCP, ", detail);
	probes_end(connection);
	if (!ends_hand_over(connection))
		return;
	peers_note(connection->sock, &connection->attempt.addr, &connection->peer);
	ends_settle(connection, &connection->attempt.addr);
	connection_succeed(connection, connection->early_len);
}

bool reached_by_response(struct connection *connection, const struct handshake_step *told)
{
	/* What is lost behind the handshake shows in the first bytes from the converter. */
	if (connection->sock_mptcp && kernel_has_fallen_back(connection->sock))
		return false;
	if (!response_take(connection->sock, told->length)) {
		ends_fail(connection, ECONNRESET, "the response can't be taken off the stream");
		return true;
	}
	exchange_done(connection->attempt.converter, &connection->peer, told, connection->sock_mptcp);
	converted(connection, "");
	return true;
}

bool reached_silently(struct connection *connection)
{
	if (connection->sock_mptcp && kernel_has_fallen_back(connection->sock))
		return false;
	exchange_done_silently(connection->attempt.converter, &connection->peer, connection->attempt.ask_mptcp);
	converted(connection, ", server confirmed by the SYN+ACK, silently");
	return true;
}

/* How the request fared is looked up later (aftermath.c), when nothing of ours refers to the socket any more. */
void reached_blindly(struct connection *connection)
{
	const struct attempt *attempt = &connection->attempt;

	ends_log(connection, connection->sock_mptcp ? "converted over MPTCP, " : "converted over TCP, ",
		    "request in the SYN, blindly");
	if (!ends_hand_over(connection))
		return;
	peers_note(connection->sock, &attempt->addr, &connection->peer);
	aftermath_expect(connection);
	if (converters_silence_ends_soon(attempt->converter))
		enquiry_start(&connection->begin, clock_ns());
	connection_succeed(connection, attempt->sent - attempt->request_len);
}
