/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nl.h - questions to the kernel by netlink, in the few lines that can run in a hook
 *
 * No library, no allocation, little stack, and no descriptor that is kept; src/common/netlink.c is for programs that have libmnl. The
 * kernel writes its answer within send(), and goes on with a dump within recv(), so that nothing here waits.
 */
#ifndef HOST_NL_H
#define HOST_NL_H

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

/* nl_open() - a socket for questions of @protocol, such as NETLINK_ROUTE; -1 if there is none. Close it by raw_close(). */
int nl_open(int protocol);

/* Is given what follows the header of an answer: its type (RTM_…), and @len bytes at @body. */
typedef void nl_reader(void *arg, uint16_t type, const uint8_t *body, size_t len);

/*
 * nl_ask() - send @question, and have @read see each answer
 * NLM_F_ACK or NLM_F_DUMP in the question's flags end the answers; without either there is one answer. Answers with another sequence
 * number are skipped. Returns 0, or -errno: the kernel's answer where it refuses.
 */
int nl_ask(int fd, const struct nlmsghdr *question, nl_reader *read, void *arg);

/* nl_ask_briefly() - likewise, for one answer of a few hundred bytes: saves the two system calls that map a larger buffer */
int nl_ask_briefly(int fd, const struct nlmsghdr *question, nl_reader *read, void *arg);

typedef void nl_attribute_reader(void *arg, uint16_t type, const uint8_t *value, size_t len);

/* nl_attributes() - call @read for each attribute behind the first @skip of @len bytes at @body, the family's own header */
void nl_attributes(const uint8_t *body, size_t len, size_t skip, nl_attribute_reader *read, void *arg);

/* The number that an attribute is, of at most 32 bits in the machine's byte order. */
uint32_t nl_u32(const uint8_t *value, size_t len);

#endif
