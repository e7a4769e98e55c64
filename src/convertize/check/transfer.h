/* SPDX-License-Identifier: BSD-3-Clause */
/* transfer.h - bytes to a converter and back, over a connection that a probe has made */
#ifndef CONVERTIZE_TRANSFER_H
#define CONVERTIZE_TRANSFER_H

#include "convertize/check/probe_result.h"

struct transfer {
	int fd;
	const uint8_t *bytes; /* all that is to be sent, the request first */
	size_t len, sent;
	size_t echo;           /* bytes that are to come back behind the answer */
	unsigned int subflows; /* half of them waits, for a while, for so many subflows besides the first */
	int stall_ms;
	struct probe_result *result;
};

/*
 * transfer_run() - send the rest and take what comes
 * Returns the outcome of the request. The transfer ends with the answer if that has no Echo TLV; else when all bytes have
 * come back, or nothing has moved for stall_ms.
 */
enum probe_outcome transfer_run(struct transfer *transfer);

#endif
