/* SPDX-License-Identifier: BSD-3-Clause */
/* session_request.c - the request that a session's stream begins with: kept until it is whole, and judged */
#include "config.h"

#include "convertd/session/session_request.h"

#include "convertd/base/clock.h"
#include "convertd/observe/metrics.h"
#include "convertd/policy/judgement.h"
#include "convertd/session/blame.h"
#include "convertd/session/session_count.h"
#include "convertd/session/session_withheld.h"
#include "convertd/session/withheld.h"

#include <stdlib.h>
#include <string.h>

bool session_request_is_confirmed(const struct session *s)
{
	return s->syn_data && s->timestamps;
}

void session_request_judge(struct session *s, const uint8_t *buf, size_t len, struct judgement *judgement)
{
	enum limits_class before = (enum limits_class)s->member.class;
	const struct judgement_case c = {
		.place = JUDGEMENT_STREAM,
		.bytes = buf,
		.len = len,
		.client = { .address = sockaddr_ip_in6(&s->client), .proven = !s->unproven },
		.grant = s->withheld ? &s->withheld->grant : NULL,
		.member = &s->member,
		.now_ms = clock_now_ms(),
		.mptcp = !s->relay.side[RELAY_UPSTREAM].tcp,
		.confirmed = session_request_is_confirmed(s),
	};
	const struct request_decision *request = &judgement->request;

	judgement_make(&s->pool->context.admission, &c, judgement);
	session_count_class(s, before);
	if (request->silent && request->action != REQUEST_WAIT && request->action != REQUEST_PROVE) {
		s->voice = (uint8_t)judgement->voice;
		s->needs_mptcp = request->silence.mptcp;
		metrics_add(s->pool->context.metrics, METRIC_SILENT + judgement->voice, 1);
	}
	if (request->connect)
		sockaddr_ip_set(&s->server, AF_UNSPEC, &request->address, request->port);
	/* The request isn't the one of the SYN, or is no longer granted: what was done for that is of no use. */
	if (request->action != REQUEST_WAIT && !judgement->by_grant)
		session_drop_withheld(s);
	s->error_taken = judgement->error_taken;
	if (request->lacking) {
		s->outcome = OUTCOME_LACKING;
		blame_again(&s->pool->context, &s->server);
	}
	if (judgement->exceeded != OUTCOME_NONE)
		s->outcome = (uint8_t)judgement->exceeded;
}

bool session_request_keep(struct session *s, const uint8_t *buf, size_t len)
{
	s->request = malloc(len);
	if (!s->request)
		return false;
	memcpy(s->request, buf, len);
	s->request_len = (uint16_t)len;
	return true;
}

size_t session_request_unkeep(struct session *s, uint8_t *scratch)
{
	size_t len = s->request_len;

	if (len)
		memcpy(scratch, s->request, len);
	free(s->request);
	s->request = NULL;
	s->request_len = 0;
	return len;
}
