/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shares.h - what each of the nested prefixes has of what there is for all, and who has most (no I/O)
 *
 * A leaf is a client; above it are the prefixes that it is in, up to the root, which is everybody. What a
 * leaf has is counted for each of these. Who has most is looked for from the root down: the greediest
 * of the largest prefixes, in it the greediest of the next ones. So an attacker gains nothing by using
 * many small prefixes of one large one, and who shares only the large one with him is not taken for him.
 *
 * Nothing here locks, and nothing takes longer than O(log n).
 */
#ifndef CONVERTD_SHARES_H
#define CONVERTD_SHARES_H

#include "convertd/base/bucket.h"
#include "convertd/base/heap.h"

#include <netinet/in.h>
#include <sodium.h>
#include <stdint.h>
#include <uthash.h>

/* What there is to be shared. */
enum share {
	SHARE_WAITING,     /* sessions that wait for their client's bytes */
	SHARE_PENDING,     /* all that are pending, these included */
	SHARE_WITHHELD,    /* SYNs that are withheld, or released and not accepted yet */
	SHARE_CONNECTIONS, /* all that are pending or open */
	SHARE_REFUSING,    /* refusals that are on their way */
	SHARE_MEMORY,      /* bytes of kernel memory */
	SHARE_STALLED,     /* the same in KiB, times how long it hasn't moved */
	SHARE_COUNT
};

/* Lengths of prefixes above a client that there are at most, and the bytes that name a prefix. */
#define SHARES_ABOVE_MAX 3
#define SHARES_KEY_LEN 17

struct shares_node {
	struct shares_node *parent;          /* NULL: the root, or a leaf that isn't attached */
	struct heap_node place[SHARE_COUNT]; /* what it has, and its place among its siblings */
	struct heap below[SHARE_COUNT];      /* its children, but those that have nothing */
	struct bucket errors;                /* what it may still be told */
	unsigned children;
	uint8_t height; /* 0: a leaf */
	uint8_t key[SHARES_KEY_LEN];
	UT_hash_handle hh; /* of a prefix that is neither leaf nor root */
};

struct shares {
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	struct shares_node root;
	struct shares_node *prefixes; /* the nodes that are neither leaf nor root */
	uint64_t turn;
};

/* Makes an empty tree; libsodium must be initialized. */
void shares_init(struct shares *shares);

/* Frees the tree, to which no leaf may be attached any more. */
void shares_fini(struct shares *shares);

/* A hash that nobody can predict, of a name in any table of this tree's users. */
unsigned shares_hash(const struct shares *shares, const void *key, size_t len);

/* The name of the prefix of @bits (0-128) that @address is in. */
void shares_key(const struct in6_addr *address, uint8_t bits, uint8_t key[static SHARES_KEY_LEN]);

/*
 * shares_attach() - put a leaf, which has nothing yet, in its place
 * @leaf: zeros, but for its key
 * Returns 0 or -ENOMEM.
 */
int shares_attach(struct shares *shares, struct shares_node *leaf);

/* Takes a leaf out, which must have nothing any more. Prefixes above that have no other leaf are freed. */
void shares_detach(struct shares *shares, struct shares_node *leaf);

/* Adds @by, which may be negative, to what @leaf and all prefixes above it have. */
void shares_add(struct shares *shares, struct shares_node *leaf, enum share share, int64_t by);

static inline uint64_t shares_of(const struct shares_node *node, enum share share)
{
	return node->place[share].weight;
}

/* The greediest of the children of @node; NULL if it has none, or none of them has anything. */
struct shares_node *shares_first(const struct shares_node *node, enum share share);

/* The greediest leaf of @node or below, NULL if none there has anything. */
struct shares_node *shares_most(struct shares_node *node, enum share share);

/*
 * shares_compare() - what two different leaves' prefixes have where their ways to the root part
 * So much has the largest prefix that has @a and not @b in it, and the other way round.
 */
void shares_compare(const struct shares_node *a, const struct shares_node *b, enum share share,
		    uint64_t *of_a, uint64_t *of_b);

#endif
