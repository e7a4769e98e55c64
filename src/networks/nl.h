/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nl.h - questions to the kernel by netlink, in the few lines that can run in a hook
 *
 * No library, no allocation, little stack, and no descriptor that is kept; src/common/netlink.c is for programs that have libmnl. The
 * kernel writes its answer within send(), and goes on with a dump within recv(), so that nothing here waits.
 */
#ifndef NETWORKS_NL_H
#define NETWORKS_NL_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* nl_open() - a socket for questions of @protocol, such as NETLINK_ROUTE; -1 if there is none. To be closed by io_close(). */
int nl_open(int protocol);

/* Is given what follows the header of an answer: @len bytes at @body. */
typedef void nl_reader(void *arg, const uint8_t *body, size_t len);

/*
 * nl_ask() - send @question, and have @read see each answer
 * The question ends the answers by NLM_F_ACK or NLM_F_DUMP in its flags. Returns false if the kernel can't be asked, or says that it
 * has no answer.
 */
bool nl_ask(int fd, const struct nlmsghdr *question, nl_reader *read, void *arg);

typedef void nl_attribute_reader(void *arg, uint16_t type, const uint8_t *value, size_t len);

/* nl_attributes() - calls @read for each attribute in the @len bytes at @list */
void nl_attributes(const uint8_t *list, size_t len, nl_attribute_reader *read, void *arg);

/* The number that an attribute is, of at most 32 bits in the machine's byte order. */
uint32_t nl_u32(const uint8_t *value, size_t len);

#endif
