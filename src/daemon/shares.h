/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shares.h - counts how much of shared resources each client and each prefix around it uses, and finds the greediest (no I/O)
 *
 * The problem: when a resource is used up, its greediest user has to give way, and an attacker has many addresses. So
 * users form a tree: a leaf is a client; above it are the prefixes that it is in, up to the root, which stands for
 * all clients. Each node counts the use of all leaves below it. The greediest client is found from the root down: the
 * greediest of the largest prefixes, in it the greediest of the next ones, and so on. So an attacker gains nothing by
 * using many small prefixes of a large one, and a client that shares only the large one with him isn't taken for him.
 *
 * A tree has no lock of its own. No operation takes longer than O(log n).
 */
#ifndef DAEMON_SHARES_H
#define DAEMON_SHARES_H

#include "daemon/heap.h"

#include <netinet/in.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

/*
 * A token bucket limits a rate. A full one holds BUCKET_SECONDS times the rate, which may be taken at once. Tokens are
 * counted in thousandths, so that each millisecond adds as many thousandths as the rate has tokens per second.
 */

#define BUCKET_SECONDS 5

/* A zeroed bucket was never used, and is full. */
struct bucket {
	uint64_t filled_ms; /* the time at which @tokens was computed; 0: never */
	uint64_t tokens;    /* in thousandths of a token */
};

/*
 * Tells whether there is a token. @rate: tokens per second; 0: no limit. @now_ms may be earlier than in the call before,
 * as threads may come in another order than they read the clock.
 */
bool bucket_has(struct bucket *bucket, unsigned rate, uint64_t now_ms);

/* Takes a token; bucket_has() has just said that there is one. */
void bucket_take(struct bucket *bucket, unsigned rate);

/* Tells whether the bucket is full, so that it may be forgotten: a new one would be the same. */
bool bucket_is_full(struct bucket *bucket, unsigned rate, uint64_t now_ms);

/* The shared resources. */
enum share {
	SHARE_WAITING,     /* sessions that wait for their client's bytes */
	SHARE_PENDING,     /* all pending sessions, those of SHARE_WAITING included */
	SHARE_WITHHELD,    /* SYNs that are withheld, or released and not accepted yet */
	SHARE_CONNECTIONS, /* all sessions, pending or open */
	SHARE_REFUSING,    /* refusals that are on their way */
	SHARE_MEMORY,      /* bytes of kernel memory */
	SHARE_STALLED,     /* kernel memory in KiB, times how long its bytes haven't moved */
	SHARE_COUNT
};

/* The most prefixes above a client, and the bytes of the key of a prefix: its address and its length. */
#define SHARES_ABOVE_MAX 3
#define SHARES_KEY_LEN 17

struct shares_node {
	struct shares_node *parent;          /* NULL: the root, or a leaf that isn't attached */
	struct heap_node place[SHARE_COUNT]; /* its use of each resource (the weight), and its place among its siblings */
	struct heap below[SHARE_COUNT];      /* its children that use the resource, the greediest first */
	struct bucket errors;                /* the errors that may still be sent to it */
	unsigned children;
	uint8_t height; /* 0: a leaf */
	uint8_t key[SHARES_KEY_LEN];
	UT_hash_handle hh; /* used in nodes that are neither leaf nor root */
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

/* Returns a keyed hash that clients can't predict, for the hash tables of this tree and its users. */
unsigned shares_hash(const struct shares *shares, const void *key, size_t len);

/* Makes the key of the prefix of length @bits (0-128) that @address is in. */
void shares_key(const struct in6_addr *address, uint8_t bits, uint8_t key[static SHARES_KEY_LEN]);

/*
 * shares_attach() - put a leaf, which uses nothing yet, in its place in the tree
 * @leaf: zeroed except for its key; it stays the caller's
 * Returns 0 or -ENOMEM.
 */
int shares_attach(struct shares *shares, struct shares_node *leaf);

/* Takes out a leaf, which must use nothing any more. Prefixes above it that have no other leaf are freed. */
void shares_detach(struct shares *shares, struct shares_node *leaf);

/* Adds @by, which may be negative, to the use of @leaf and all prefixes above it. */
void shares_add(struct shares *shares, struct shares_node *leaf, enum share share, int64_t by);

/* Returns how much of a resource @node uses. */
static inline uint64_t shares_of(const struct shares_node *node, enum share share)
{
	return node->place[share].weight;
}

/* Returns the greediest child of @node, or NULL if none uses anything. */
struct shares_node *shares_first(const struct shares_node *node, enum share share);

/* Returns the greediest leaf, which is @node itself or found below it as described above; NULL if none uses anything. */
struct shares_node *shares_most(struct shares_node *node, enum share share);

/*
 * shares_compare() - compare the use of two different leaves, at the level where their ways to the root meet
 * @of_a: set to the use of the largest prefix that contains @a and not @b
 * @of_b: set to the use of the largest prefix that contains @b and not @a
 */
void shares_compare(const struct shares_node *a, const struct shares_node *b, enum share share,
		    uint64_t *of_a, uint64_t *of_b);

#endif
