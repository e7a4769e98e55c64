/* SPDX-License-Identifier: BSD-3-Clause */
/* nft_rule.h - what a rule of nftables matches and does, expression by expression */
#ifndef CONVERTD_NFT_RULE_H
#define CONVERTD_NFT_RULE_H

#include "convertd/base/listen_address.h"
#include "convertd/syn/nft_table.h"

#include <libnftnl/expr.h>
#include <linux/netfilter/nf_tables.h>
#include <stddef.h>
#include <stdint.h>

/*
 * All of these add to the rule that nft_transaction_begin_rule() has begun, and do nothing where that had no memory. Each is
 * what nft(8) writes for the expression that it quotes. A value is loaded into register 1 and compared or changed there.
 */

/* An expression of this type with nothing set yet; NULL: out of memory. nft_rule_add() takes it. */
struct nftnl_expr *nft_rule_new_expr(struct nft_transaction *t, const char *type);

/* Adds an expression to the rule, which owns it from here on. NULL is fine. */
void nft_rule_add(struct nft_transaction *t, struct nftnl_expr *expr);

/* Has the rule go on only if register 1 is to @data as @op says. */
void nft_rule_compare(struct nft_transaction *t, enum nft_cmp_ops op, const void *data, size_t len);

/* Loads a field of a header; the rule ends where the packet has no such field. */
void nft_rule_load_payload(struct nft_transaction *t, enum nft_payload_bases base, uint32_t offset,
			   size_t len);

/* Loads a byte of a TCP option; the rule ends where the segment hasn't got the option. */
void nft_rule_load_tcp_option(struct nft_transaction *t, uint8_t kind, uint32_t offset);

/* Register 1 becomes what it has of the bits of @mask. */
void nft_rule_mask_byte(struct nft_transaction *t, uint8_t mask);

/* "meta l4proto tcp" */
void nft_rule_match_tcp(struct nft_transaction *t);

/* "tcp flags & (fin | syn | rst | ack) == syn" */
void nft_rule_match_syn(struct nft_transaction *t);

/* Matches the interface and the address of what goes to one of the converter's addresses; :: stands for all of both families. */
void nft_rule_match_address(struct nft_transaction *t, const struct listen_address *listen);

/* "tcp dport PORT", of that address */
void nft_rule_match_port(struct nft_transaction *t, const struct listen_address *listen);

/* "accept" */
void nft_rule_accept(struct nft_transaction *t);

/* "reject with tcp reset" */
void nft_rule_reject_by_reset(struct nft_transaction *t);

/* "reject with icmp CODE", or icmpv6 by the packet's family; @code: a number that means something in either */
void nft_rule_reject_by_icmp(struct nft_transaction *t, uint8_t code);

/* "jump CHAIN", to a chain of the same table */
void nft_rule_jump(struct nft_transaction *t, const char *chain);

#endif
