/* SPDX-License-Identifier: BSD-3-Clause */
/* transfer.h - bytes to a converter and back, over a connection that a probe has made */
#ifndef CONVERTIZE_TRANSFER_H
#define CONVERTIZE_TRANSFER_H

#include "convertize/probe_result.h"

struct transfer {
	int fd;
	const uint8_t *bytes; /* all that is to be sent, the request first */
	size_t len, sent;
	size_t echo;           /* so many bytes are to come back behind the answer */
	unsigned int subflows; /* half of them waits for these, for a while */
	int stall_ms;
	struct probe_result *result;
};

/*
 * transfer_run() - send the rest and take what comes
 * The outcome tells of the answer. Without an Echo TLV in it, that is the end; with it, the end is
 * when all has come back, or nothing has moved for the time that it may.
 */
enum probe_outcome transfer_run(struct transfer *transfer);

#endif
