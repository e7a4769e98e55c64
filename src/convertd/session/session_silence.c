/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_silence.c - clients that want no response: which of them can't be served
 *
 * doc/private-tlvs.md says what is promised to them, judgement.h what is decided by the facts of their connections. What they
 * can't be told ends in a reset.
 */
#include "config.h"

#include "convertd/session/session_silence.h"

#include "convertd/policy/judgement.h"
#include "convertd/session/session_report.h"
#include "convertd/session/session_request.h"

/* The client's third ACK, and its first packets behind that, show whether Multipath TCP works on the way. */
#define FALLBACK_LOOKS 4

const char *session_cant_be_silent(const struct session *s, const struct judgement *judgement)
{
	if (!judgement->request.silent || judgement->request.action == REQUEST_RESET)
		return NULL;
	/* What its SYN+ACK has confirmed, as both ends see it, is a whole request. */
	if (judgement->request.action == REQUEST_WAIT)
		return session_request_is_confirmed(s) ? "a part of a request in the SYN of a silent client" : NULL;
	if (judgement->voice != JUDGEMENT_RESET)
		return NULL;
	return session_request_is_confirmed(s) ? "not Multipath TCP, which a silent client needs" :
						 "a blind client whose SYN+ACK has confirmed nothing";
}

/*
 * A silent client that needs Multipath TCP leaves it to the converter to see that its connection has become another: the
 * kernel may lose bytes of it then (fallback.c). Its first packets tell, and session_relay_watch() looks later on.
 */
bool session_has_fallen_back(struct session *s)
{
	const struct relay_side *client = &s->relay.side[RELAY_UPSTREAM];

	if (!s->needs_mptcp || s->voice != JUDGEMENT_SILENT)
		return false;
	/* Each read looks by itself. */
	if (client->looked) {
		session_look_transport(s);
	} else if (s->confirmed && !client->readable && s->fallback_looks < FALLBACK_LOOKS) {
		s->fallback_looks++;
		session_look_transport(s);
	}
	return s->transport == RECORD_FALLBACK;
}
