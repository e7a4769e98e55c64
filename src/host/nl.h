/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nl.h - asks the kernel by netlink, with code that can run in a hook
 *
 * It uses no library, no allocation and little stack, and keeps no descriptor; src/common/netlink.c is for programs with libmnl. The
 * kernel writes its answer within send(), and continues a dump within recv(), so nothing here blocks.
 */
#ifndef HOST_NL_H
#define HOST_NL_H

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

/* nl_open() - open a socket for @protocol, such as NETLINK_ROUTE. Returns -1 if that fails. Close it by raw_close(). */
int nl_open(int protocol);

/* Gets one answer: its type (RTM_…), and the @len bytes at @body, which follow its header. */
typedef void nl_reader(void *arg, uint16_t type, const uint8_t *body, size_t len);

/*
 * nl_ask() - send @question, and call @read for each answer
 * With NLM_F_ACK or NLM_F_DUMP in the question's flags, the kernel marks the last answer; without them there is one answer. Skips answers
 * with another sequence number. Returns 0, or -errno, which may be the kernel's error.
 */
int nl_ask(int fd, const struct nlmsghdr *question, nl_reader *read, void *arg);

/* nl_ask_briefly() - likewise, for one answer of a few hundred bytes: saves two system calls for a mapped buffer */
int nl_ask_briefly(int fd, const struct nlmsghdr *question, nl_reader *read, void *arg);

typedef void nl_attribute_reader(void *arg, uint16_t type, const uint8_t *value, size_t len);

/* nl_attributes() - call @read for each attribute in the @len bytes at @body, after the family's own header of @skip bytes */
void nl_attributes(const uint8_t *body, size_t len, size_t skip, nl_attribute_reader *read, void *arg);

/* Returns an attribute's number of at most 32 bits, in the machine's byte order. */
uint32_t nl_u32(const uint8_t *value, size_t len);

#endif
