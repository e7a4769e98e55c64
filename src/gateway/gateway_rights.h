/* SPDX-License-Identifier: BSD-3-Clause */
/* gateway_rights.h - the calls of src/hold and src/serve that need a right, in a process that has it; the service manager */
#ifndef GATEWAY_GATEWAY_RIGHTS_H
#define GATEWAY_GATEWAY_RIGHTS_H

#include <stddef.h>
#include <stdint.h>

/*
 * gateway_queues_own() - become the owner of @count netfilter queues, the first free ones from @from on
 * Each worker carries its verdicts out itself, since it has the right to, and sends released SYNs to this host itself, with @mark
 * (gateway_rules.c). rights_bind() makes the sockets with @port transparent. Returns 0 or -errno, which is -EPERM without CAP_NET_ADMIN and
 * CAP_NET_RAW.
 */
int gateway_queues_own(uint16_t from, size_t count, uint32_t mark, uint16_t port);

/* Returns the number of the first queue. */
uint16_t gateway_queues_first(void);

/* Tells the service manager, if there is one: sd_notify(3). */
void gateway_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
