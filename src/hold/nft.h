/* SPDX-License-Identifier: BSD-3-Clause */
/* nft.h - changes a table of nftables that belongs to a netlink socket, by transactions and the expressions of its rules */
#ifndef HOLD_NFT_H
#define HOLD_NFT_H

#include "daemon/listen_address.h"

#include <libmnl/libmnl.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <linux/netfilter/nf_tables.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ----- a table of nftables that belongs to a netlink socket, and transactions that change it ----- */

struct nft_table {
	struct mnl_socket *netlink; /* owns the table, which lasts as long as some process has it open */
	uint32_t sequence;	    /* of the next message */
	char name[48];		    /* set by the caller, before the first transaction */
};

/*
 * nft_table_init() - open the socket of a table, without making the table
 * @kept: the descriptor of a process before this one, whose table this becomes, or -1; it stays the caller's
 * Returns 0 or -errno. nft_table_fini() closes it.
 */
int nft_table_init(struct nft_table *table, int kept);

/* Closes the socket: the kernel removes the table, as it does when the process ends or is killed. */
void nft_table_fini(struct nft_table *table);

/* Changes of a table that the kernel makes all at once, or not at all. */
struct nft_transaction {
	struct nft_table *table;
	struct mnl_nlmsg_batch *batch;
	void *buf; /* of the batch */
	struct nftnl_rule *rule; /* the rule to which nft_rule_* functions add; NULL: none, or out of memory */
	bool failed; /* out of memory */
	unsigned acks; /* the number of messages that the kernel answers */
};

/*
 * nft_transaction_begin() - begin a transaction, whose first step makes the table unless it exists
 * @calls: the most calls of the functions below that follow
 * Neither these nor the nft_rule_* functions report errors: nft_transaction_commit() does, and has to follow.
 */
void nft_transaction_begin(struct nft_transaction *t, struct nft_table *table, size_t calls);

struct nft_hook {
	uint32_t number; /* NF_INET_… */
	int priority;
};

/*
 * Makes a chain with this name, unless it is there, and removes its rules. Chains stay, since the kernel drops
 * all packets in the netfilter queues of the network namespace when a chain with a hook goes.
 * @hook: where packets enter the chain, of the type "filter"; NULL: nowhere, it is jumped to
 */
void nft_transaction_add_chain(struct nft_transaction *t, const char *name, const struct nft_hook *hook);

/* Begins a rule at the end of a chain; the nft_rule_* functions add its expressions. */
void nft_transaction_begin_rule(struct nft_transaction *t, const char *chain);

void nft_transaction_end_rule(struct nft_transaction *t);

/*
 * nft_transaction_commit() - make the kernel carry out the changes, and end the transaction
 * Returns 0, or -errno with everything as it was: -EPERM without CAP_NET_ADMIN; -ENOENT, -EOPNOTSUPP or another if
 * the kernel lacks something that the rules need.
 */
int nft_transaction_commit(struct nft_transaction *t);

/* ----- the expressions of a rule of nftables ----- */

/*
 * All of these functions add to the rule that nft_transaction_begin_rule() has begun, and do nothing without memory.
 * Each does what nft(8) does for the quoted expression. A value is loaded into register 1, and compared or changed
 * there.
 */

/* An attribute of an expression: a number of @len bytes, or the @len bytes at @data. */
struct nft_attribute {
	uint16_t type; /* NFTNL_EXPR_… */
	uint32_t len;
	uint32_t value;
	const void *data; /* NULL: it is a number */
};
#define NFT_U8(type, value) { type, sizeof(uint8_t), value, NULL }
#define NFT_U16(type, value) { type, sizeof(uint16_t), value, NULL }
#define NFT_U32(type, value) { type, sizeof(uint32_t), (uint32_t)(value), NULL }
#define NFT_DATA(type, data, len) { type, (uint32_t)(len), 0, data }

/* Adds an expression of this type, with its attributes as the other arguments. */
#define nft_rule_put(t, type, ...)                                                   \
	nft_rule_put_all(t, type, (const struct nft_attribute[]){ __VA_ARGS__ }, \
			 sizeof((const struct nft_attribute[]){ __VA_ARGS__ }) / sizeof(struct nft_attribute))
void nft_rule_put_all(struct nft_transaction *t, const char *type, const struct nft_attribute *attributes, size_t count);

/* Continues the rule only if a field of a header compares to @data by @op; a packet without the field doesn't. */
void nft_rule_match_payload(struct nft_transaction *t, enum nft_payload_bases base, uint32_t offset, enum nft_cmp_ops op,
			    const void *data, size_t len);

/* "meta l4proto tcp tcp flags & (fin | syn | rst | ack) == syn" */
void nft_rule_match_syn(struct nft_transaction *t);

/* "meta mark & BITS == MARK" */
void nft_rule_match_mark(struct nft_transaction *t, uint32_t mark, uint32_t bits);

/* Matches the port, the interface and the address of packets to one of our listeners; :: stands for all addresses of both families. */
void nft_rule_match_listener(struct nft_transaction *t, const struct listen_address *listen);

/* "reject with tcp reset", or "reject with icmp CODE", icmpv6 by the packet's family; @code: a number that has a meaning in both */
void nft_rule_reject(struct nft_transaction *t, enum nft_reject_types type, uint8_t code);

/* "jump CHAIN", to a chain of the same table */
void nft_rule_jump(struct nft_transaction *t, const char *chain);

#endif
