/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_proof.c - sessions whose client hasn't proved yet that it is where it says
 *
 * A session is unproven from accept() until its client's third ACK, or until its request turns out to have
 * a cookie that was computed for its address. proof.c says what may go to such a client; this file keeps to it: little is
 * written to the client (relay_cap()), no FIN and no RST are sent that don't fit, the session stays a pending one whatever
 * becomes of its request, and it ends in time.
 *
 *     TCP     the kernel gives up by itself after TCP_SYNCNT, and says so as an error of the socket
 *     MPTCP   the session's deadline is brought forward; what follows is a reset, which has to come before the kernel gives up, as it
 *             says nothing: a client whose third ACKs were lost, and that waits for the server to speak, would wait for ever
 */
#include "config.h"

#include "convertd/session/session_proof.h"

#include "convertd/base/clock.h"
#include "convertd/policy/demand.h"
#include "convertd/policy/proof.h"
#include "convertd/session/session_socket.h"

#include <linux/tcp.h>

/* When an MPTCP client must have completed its handshake, in ms behind its SYN+ACK. */
static unsigned deadline_ms(const struct session *s, const struct proof *proof)
{
	unsigned kernels = s->pool->context.terms->synacks, most = proof_synacks(proof);

	return proof_deadline_ms(most < kernels ? most : kernels);
}

void session_start_proof(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	struct tcp_info info;
	struct proof proof;
	unsigned age_ms;
	int retries;

	s->unproven = proof_look(client->fd, &info, &age_ms);
	s->confirmed = !s->unproven;
	s->syn_data = info.tcpi_options & TCPI_OPT_SYN_DATA;
	s->timestamps = info.tcpi_options & TCPI_OPT_TIMESTAMPS;
	s->established = s->confirmed || client->tcp;
	if (!s->unproven)
		return;
	demand_enter(s->pool->context.admission.demand);
	proof_read(&proof, &info, !sockaddr_ip_is_v4(&s->client), !client->tcp);
	if (client->tcp) {
		retries = proof_retries(&proof);
		proof_set_retries(client->fd, retries);
		relay_cap(&s->relay, RELAY_UPSTREAM, proof_room(&proof, (unsigned)retries + 1),
			  proof.header, proof.segment);
		s->reset_bytes = proof.reset;
	} else {
		unsigned ms = deadline_ms(s, &proof);

		s->prove_by_us = clock_now_us() + (ms > age_ms ? ms - age_ms : 1) * 1000ULL;
	}
}

void session_cap_answer(struct session *s, size_t len)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];
	uint32_t cost = client->overhead + (uint32_t)len;

	if (!client->capped)
		return;
	/* Half of an answer is of no use to anybody. */
	if (client->allowance < cost || len > client->segment)
		client->allowance = 0;
	else if (client->allowance > cost + s->reset_bytes)
		client->allowance -= s->reset_bytes;
	/* The server's first bytes are worth more than a reset: the kernel ends this session without one. */
	else
		s->no_reset = true;
}

void session_forget_proof(struct session *s)
{
	if (!s->unproven)
		return;
	s->unproven = false;
	demand_leave(s->pool->context.admission.demand);
}

void session_end_proof(struct session *s)
{
	struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];

	if (!s->unproven)
		return;
	session_forget_proof(s);
	if (client->capped) {
		relay_uncap(&s->relay, RELAY_UPSTREAM);
		client->writable = true;
	}
	/* A client that is proven by its cookie has as long as any for its handshake. */
	if (client->tcp && !s->confirmed && s->pool->context.terms->synacks > 1)
		proof_set_retries(client->fd, (int)s->pool->context.terms->synacks - 1);
	s->prove_by_us = 0;
	s->no_reset = false;
	if (s->hurried)
		session_set_deadline(s, (enum session_timeout)s->timeout);
}
