/* SPDX-License-Identifier: BSD-3-Clause */
/* gateway_status.h - the parts of the status that only a gateway has: what was routed and why, and the networks of connections */
#ifndef GATEWAY_GATEWAY_STATUS_H
#define GATEWAY_GATEWAY_STATUS_H

#include "common/sockaddr.h"
#include "observe/monitor.h"

/* For monitor_create(), with the struct gateway. */
extern const struct status_program gateway_status;

/* Counts a connection through a converter once its server has answered, by the network that its socket began on. Any thread may call it. */
void gateway_status_count(int fd, const union sockaddr_ip *converter, uint32_t round_trip_us);

/* Adds up the bytes of closed connections by network from now on. */
void gateway_status_watch(struct event_base *base);

#endif
