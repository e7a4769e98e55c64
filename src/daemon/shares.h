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

/* The shared resources. */
enum share {
	SHARE_WAITING,     /* sessions that wait for their client's bytes */
	SHARE_REFUSED,     /* refused sessions whose clients haven't proved their addresses */
	SHARE_PENDING,     /* all pending sessions, those of SHARE_WAITING and SHARE_REFUSED included */
	SHARE_WITHHELD,    /* SYNs that are withheld, or released and not accepted yet */
	SHARE_CONNECTIONS, /* all sessions, pending or open */
	SHARE_REFUSING,    /* refusals that are on their way */
	SHARE_MEMORY,      /* bytes of kernel memory */
	SHARE_STALLED,     /* kernel memory in KiB, times how long its bytes haven't moved */
	SHARE_COUNT
};

/* The most prefixes above a client, and the bytes of a node's key: the prefix's address, its length, and @height. */
#define SHARES_ABOVE_MAX 3
#define SHARES_KEY_LEN 18

struct shares_node {
	struct shares_node *parent;          /* NULL: the root */
	struct heap_node place[SHARE_COUNT]; /* its use of each resource (the weight), and its place among its siblings */
	struct heap below[SHARE_COUNT];      /* its children that use the resource, the greediest first */
	uint64_t errors_ns; /* at this time its whole burst of errors may be sent again, in nanoseconds of clock_now_ms() */
	unsigned children;
	uint8_t height; /* 0: a leaf */
	uint8_t key[SHARES_KEY_LEN];
	UT_hash_handle hh;
};

struct shares {
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	struct shares_node root;
	struct shares_node *nodes; /* all but the root, by their keys */
	size_t leaves;
	uint64_t turn;
};

/* Makes an empty tree; libsodium must be initialized. */
void shares_init(struct shares *shares);

/* Frees the tree with all its nodes. */
void shares_fini(struct shares *shares);

/*
 * shares_leaf() - return the leaf for the prefix of length @bits (0-128) that @address is in
 * @size: bytes to allocate for a new leaf, which begins with a struct shares_node and is zero behind it
 * Makes the leaf and the prefixes above it if need be. The tree owns it. Returns NULL without memory.
 */
struct shares_node *shares_leaf(struct shares *shares, const struct in6_addr *address, uint8_t bits, size_t size);

/* Frees a leaf, which must use nothing any more, and the prefixes above it that have no other leaf. */
void shares_forget(struct shares *shares, struct shares_node *leaf);

/* Adds @by, which may be negative, to the use of @leaf and all prefixes above it. */
void shares_add(struct shares *shares, struct shares_node *leaf, enum share share, int64_t by);

/* Returns how much of a resource @node uses. */
static inline uint64_t shares_of(const struct shares_node *node, enum share share)
{
	return node->place[share].weight;
}

/* Returns the greediest leaf, which is @node itself or found below it as described above; NULL if none uses anything. */
struct shares_node *shares_most(struct shares_node *node, enum share share);

/*
 * shares_compare() - compare the use of two different leaves, at the level where their ways to the root meet
 * @of_a: set to the use of the largest prefix that contains @a and not @b
 * @of_b: set to the use of the largest prefix that contains @b and not @a
 */
void shares_compare(const struct shares_node *a, const struct shares_node *b, enum share share,
		    uint64_t *of_a, uint64_t *of_b);

/* Returns the use of all but the greediest prefix that doesn't contain @address: limits_pending_of_others(). */
uint64_t shares_apart(const struct shares *shares, const struct in6_addr *address, enum share share);

/*
 * shares_take_error() - tell whether an error may be sent to the leaf now, and count it if so
 * @per_leaf, @total: errors a second for a leaf, and for all; 0: no limit. All prefixes above the leaf must have one left, too.
 */
bool shares_take_error(struct shares_node *leaf, unsigned per_leaf, unsigned total, uint64_t now_ms);

/* Tells whether the leaf's whole burst of errors may be sent, so that it may be forgotten: a new one would be the same. */
bool shares_owes_nothing(const struct shares_node *leaf, uint64_t now_ms);

/*
 * shares_stalled() - return a leaf below @node (or @node) that has to give memory back; NULL: none has to
 * @per_leaf, @total: bytes that a leaf, and all, may hold; 0: no limit
 * @enough_ms: set to how long its memory must have stalled for that, in milliseconds
 */
struct shares_node *shares_stalled(struct shares_node *node, uint64_t per_leaf, uint64_t total, uint32_t *enough_ms);

/* Kernel memory whose bytes haven't moved for less than this counts as moving. */
#define STALLED_MIN_MS 500

#endif
