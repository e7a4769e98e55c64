/* SPDX-License-Identifier: BSD-3-Clause */
/* native_refusal.h - an Error TLV as the network itself would say it: by a reset or an ICMP message (no I/O) */
#ifndef CONVERTD_NATIVE_REFUSAL_H
#define CONVERTD_NATIVE_REFUSAL_H

#include "convertd/net/downstream.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * How a SYN is refused whose client can't take a response off its stream (doc/private-tlvs.md): by an ICMP message of type
 * Destination Unreachable with that code, of the client's own family, or by one of these.
 */
#define NATIVE_CODES 16    /* the codes of both families are below */
#define NATIVE_RESET 0x80  /* by a reset */
#define NATIVE_NONE 0xff   /* it isn't refused */

/*
 * native_refusal() - from what an Error TLV would say
 * @server_v4, @client_v4: a code of the server's family becomes that of the client's which means the same to applications
 */
uint8_t native_refusal(const struct downstream_error *refusal, bool server_v4, bool client_v4);

/* The converter itself refuses: administratively prohibited. */
uint8_t native_prohibited(bool client_v4);

#endif
