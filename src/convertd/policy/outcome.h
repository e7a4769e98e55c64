/* SPDX-License-Identifier: BSD-3-Clause */
/* outcome.h - how a session ended: for people, and in words that programs may rely on */
#ifndef CONVERTD_OUTCOME_H
#define CONVERTD_OUTCOME_H

#include <stdint.h>

/* Each has a name, which stays, and a text, which may be improved: outcome.c. */
enum outcome {
	OUTCOME_NONE, /* not over yet */
	OUTCOME_DONE,
	OUTCOME_INFORMATION,
	OUTCOME_CLIENT_LEFT,
	OUTCOME_CLIENT_LOST_REQUEST,
	OUTCOME_CLIENT_LOST_CONNECTING,
	OUTCOME_CLIENT_LOST,
	OUTCOME_SERVER_LOST,
	OUTCOME_BYTES_MISSING,
	OUTCOME_NO_REQUEST,
	OUTCOME_NO_HANDSHAKE,
	OUTCOME_CLIENT_STALLED,
	OUTCOME_SERVER_STALLED,
	OUTCOME_HALF_CLOSED,
	OUTCOME_IDLE,
	OUTCOME_NOT_CONVERT,
	OUTCOME_NOT_SILENT, /* its client wants no response, and can't be served without one */
	OUTCOME_BAD_REQUEST,
	OUTCOME_UNSUPPORTED_OPTION,
	OUTCOME_MISSING_COOKIE,
	OUTCOME_NOT_AUTHORIZED,
	OUTCOME_RESOURCES,
	OUTCOME_SERVER_REFUSED,
	OUTCOME_SERVER_UNREACHABLE,
	OUTCOME_NETWORK_FAILURE,
	OUTCOME_LACKING, /* it may be reached, but not from here */
	OUTCOME_LIMIT_CLIENT_PENDING,
	OUTCOME_LIMIT_CLIENT_CONNECTIONS,
	OUTCOME_LIMIT_PENDING,
	OUTCOME_LIMIT_CONNECTIONS,
	OUTCOME_LIMIT_MEMORY,
	OUTCOME_LIMIT_REFUSED,
	OUTCOME_LIMIT_ERRORS,
	OUTCOME_STOPPED,
	OUTCOME_OUT_OF_MEMORY,
	OUTCOME_COUNT
};

/* "client_lost": in the log's JSON and in metrics; letters a to z and underscores. */
const char *outcome_name(enum outcome outcome);

/* "client lost" */
const char *outcome_text(enum outcome outcome);

/* What it means that the converter's last word was an Error TLV of this code. */
enum outcome outcome_of_error(uint8_t code);

#endif
