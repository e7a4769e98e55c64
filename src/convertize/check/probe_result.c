/* SPDX-License-Identifier: BSD-3-Clause */
/* probe_result.c - what was seen of a connection to a converter, and what became of it */
#include "config.h"

#include "convertize/check/probe_result.h"

enum probe_outcome probe_judge(struct probe_result *result)
{
	size_t length = 0;

	result->status = convert_message_length(result->message, result->message_len, &length);
	if (result->status == CONVERT_STATUS_OK)
		result->status = convert_response_parse(result->message, result->message_len,
							&result->response);
	if (result->status == CONVERT_STATUS_OK)
		return PROBE_ANSWERED;
	return result->status == CONVERT_STATUS_NEED_MORE ? PROBE_SILENT : PROBE_NOT_CONVERT;
}

void probe_copy(struct probe_result *to, const struct probe_result *from)
{
	*to = *from;
	probe_judge(to);
}

bool probe_is_connected(const struct probe_result *result)
{
	return result->outcome != PROBE_LOCAL && result->outcome != PROBE_UNREACHABLE &&
	       result->outcome != PROBE_NO_SYN_ACK;
}
