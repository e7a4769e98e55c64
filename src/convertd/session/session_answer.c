/* SPDX-License-Identifier: BSD-3-Clause */
/* session_answer.c - what the converter itself says to a client: queued, and counted */
#include "config.h"

#include "convertd/session/session_answer.h"

#include "convertd/observe/metrics.h"
#include "convertd/session/session_proof.h"

bool session_queue_answer(struct session *s, const uint8_t *answer, size_t len)
{
	s->answer_len = (uint16_t)len;
	session_cap_answer(s, len);
	return len && relay_prepend(&s->relay, RELAY_DOWNSTREAM, answer, len) == 0;
}

enum outcome session_answer_outcome(const uint8_t *answer, size_t len)
{
	struct convert_response response;
	bool error = convert_response_parse(answer, len, &response) == CONVERT_STATUS_OK && response.has_error;

	return error ? outcome_of_error(response.error_code) : OUTCOME_INFORMATION;
}

enum outcome session_read_answer(struct session *s, const uint8_t *answer, size_t len)
{
	struct convert_response response;

	if (convert_response_parse(answer, len, &response) != CONVERT_STATUS_OK || !response.has_error)
		return OUTCOME_INFORMATION;
	s->error = response.error_code;
	metrics_count_error(s->pool->context.metrics, response.error_code);
	return outcome_of_error(response.error_code);
}
