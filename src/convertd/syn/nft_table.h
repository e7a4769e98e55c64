/* SPDX-License-Identifier: BSD-3-Clause */
/* nft_table.h - a table of nftables that belongs to a netlink socket, and transactions that change it */
#ifndef CONVERTD_NFT_TABLE_H
#define CONVERTD_NFT_TABLE_H

#include <libmnl/libmnl.h>
#include <libnftnl/rule.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nft_table {
	struct mnl_socket *netlink; /* owns the table */
	uint32_t sequence;	    /* of the next message */
	char name[48];		    /* the caller's to set, before the first transaction */
};

/*
 * nft_table_init() - opens the socket of a table, and makes no table yet
 * @kept: the nft_table_fd() of a process before this one, whose table this becomes, or -1; it stays the caller's
 * Returns 0 or -errno. Ended by nft_table_fini().
 */
int nft_table_init(struct nft_table *table, int kept);

/* The socket's port: no other socket of the network namespace has it. */
uint32_t nft_table_port(const struct nft_table *table);

/* The table lasts as long as some process has this descriptor open. */
int nft_table_fd(const struct nft_table *table);

/* Closes the socket: the kernel removes the table, as it does at the end of the process, by a kill as well. */
void nft_table_fini(struct nft_table *table);

/* Changes of a table that the kernel makes all at once, or not at all. */
struct nft_transaction {
	struct nft_table *table;
	struct mnl_nlmsg_batch *batch;
	void *buf; /* of the batch */
	struct nftnl_rule *rule; /* that nft_rule.h adds to; NULL: none, or out of memory */
	bool failed; /* out of memory */
	unsigned acks; /* how many messages the kernel answers */
};

/*
 * nft_transaction_begin() - begins a transaction, whose first step is that there is the table
 * @messages: how many calls of those below are to follow, at most
 * Nothing here or in nft_rule.h fails for itself: what goes wrong is known from nft_transaction_commit(), which has to follow.
 */
void nft_transaction_begin(struct nft_transaction *t, struct nft_table *table, size_t messages);

/*
 * Makes a chain with this name, unless it is there, and removes its rules. Chains stay, since the kernel drops
 * all packets in the netfilter queues of the network namespace when a chain with a hook goes.
 */
void nft_transaction_add_chain(struct nft_transaction *t, const char *name);

/* Makes a chain as nft_transaction_add_chain() does, of the type "filter" and at the hook "input". */
void nft_transaction_add_input_chain(struct nft_transaction *t, const char *name, int priority);

/* Begins a rule at the end of a chain; the functions of nft_rule.h say what it does. */
void nft_transaction_begin_rule(struct nft_transaction *t, const char *chain);

void nft_transaction_end_rule(struct nft_transaction *t);

/*
 * nft_transaction_commit() - has the kernel make the changes, and ends the transaction
 * Returns 0, or -errno with everything as it was: -EPERM without CAP_NET_ADMIN; -ENOENT, -EOPNOTSUPP or another where the
 * kernel hasn't got what the rules need.
 */
int nft_transaction_commit(struct nft_transaction *t);

#endif
