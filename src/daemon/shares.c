/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shares.c - counts how much of shared resources each client and each prefix around it uses, and finds the greediest (no I/O)
 *
 * The theory is in shares.h. The lengths of prefixes follow how addresses are assigned. IPv6: a /64 is a link, a /56
 * a household, a /48 a site, a /32 a provider (RFC 6177; the registries' allocations). IPv4: a /24 is the smallest
 * prefix that is routed, a /16 stands for a provider. With shorter prefixes, strangers would answer for one another;
 * single addresses of a /64 cost their user nothing, so they don't distinguish users.
 *
 * A prefix has a node as long as a leaf is below it: there are at most SHARES_ABOVE_MAX such nodes per leaf. The
 * prefixes of both address families are children of the same root.
 */
#include "config.h"

#include "common/sockaddr.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, len, hash) ((hash) = shares_hash(shares, (key), (len)))
#include "daemon/shares.h"

/* The lengths of prefixes above a client; for IPv4 those of v4-mapped addresses. */
static const uint8_t above_v4[SHARES_ABOVE_MAX] = { 96 + 24, 96 + 16 };
static const uint8_t above_v6[SHARES_ABOVE_MAX] = { 56, 48, 32 };

unsigned shares_hash(const struct shares *shares, const void *key, size_t len)
{
	uint8_t hash[crypto_shorthash_BYTES];
	unsigned result;

	crypto_shorthash(hash, key, len, shares->hash_key);
	memcpy(&result, hash, sizeof(result));
	return result;
}

void shares_init(struct shares *shares)
{
	memset(shares, 0, sizeof(*shares));
	crypto_shorthash_keygen(shares->hash_key);
}

/* (Without entries, uthash has no table that would have to be freed.) */
void shares_fini(struct shares *shares)
{
	HASH_CLEAR(hh, shares->prefixes);
}

void shares_key(const struct in6_addr *address, uint8_t bits, uint8_t key[static SHARES_KEY_LEN])
{
	struct prefix prefix = prefix_of(address, bits);

	memcpy(key, &prefix.address, sizeof(prefix.address));
	key[SHARES_KEY_LEN - 1] = bits;
}

/* Returns the lengths of prefixes above a leaf of this key, the longest first; the caller skips 0 and lengths that aren't shorter. */
static const uint8_t *lengths_above(const uint8_t key[static SHARES_KEY_LEN])
{
	struct in6_addr address;

	memcpy(&address, key, sizeof(address));
	return IN6_IS_ADDR_V4MAPPED(&address) && key[SHARES_KEY_LEN - 1] >= 96 ? above_v4 : above_v6;
}

static struct shares_node *prefix_create(struct shares *shares, const uint8_t key[static SHARES_KEY_LEN],
					 uint8_t height)
{
	struct shares_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	memcpy(node->key, key, SHARES_KEY_LEN);
	node->height = height;
	HASH_ADD(hh, shares->prefixes, key, SHARES_KEY_LEN, node);
	if (node->hh.tbl)
		return node;
	free(node);
	return NULL;
}

/* Makes @node a child of @parent. Returns true if @parent had children before, and so is attached itself. */
static bool put_below(struct shares_node *node, struct shares_node *parent)
{
	node->parent = parent;
	return parent->children++ > 0;
}

/* Frees @node and the prefixes above it, as far as they have no children any more. */
static void free_unused(struct shares *shares, struct shares_node *node)
{
	while (node && node != &shares->root && !node->children) {
		struct shares_node *parent = node->parent;

		HASH_DELETE(hh, shares->prefixes, node);
		free(node);
		if (parent)
			parent->children--;
		node = parent;
	}
}

int shares_attach(struct shares *shares, struct shares_node *leaf)
{
	const uint8_t *lengths = lengths_above(leaf->key);
	struct shares_node *node = leaf;
	struct in6_addr address;

	memcpy(&address, leaf->key, sizeof(address));
	for (int i = 0; i < SHARES_ABOVE_MAX; i++) {
		uint8_t key[SHARES_KEY_LEN];
		struct shares_node *above;

		if (!lengths[i] || lengths[i] >= leaf->key[SHARES_KEY_LEN - 1])
			continue;
		shares_key(&address, lengths[i], key);
		HASH_FIND(hh, shares->prefixes, key, SHARES_KEY_LEN, above);
		if (!above)
			above = prefix_create(shares, key, (uint8_t)(i + 1));
		if (!above) {
			shares_detach(shares, leaf);
			return -ENOMEM;
		}
		if (put_below(node, above))
			return 0;
		node = above;
	}
	put_below(node, &shares->root);
	return 0;
}

void shares_detach(struct shares *shares, struct shares_node *leaf)
{
	struct shares_node *parent = leaf->parent;

	leaf->parent = NULL;
	if (!parent)
		return;
	parent->children--;
	free_unused(shares, parent);
}

void shares_add(struct shares *shares, struct shares_node *leaf, enum share share, int64_t by)
{
	uint64_t turn = ++shares->turn;
	struct shares_node *node = leaf;

	for (; node->parent; node = node->parent)
		heap_set(&node->parent->below[share], &node->place[share],
			 node->place[share].weight + (uint64_t)by, turn);
	node->place[share].weight += (uint64_t)by;
}

static struct shares_node *node_of_place(struct heap_node *place, enum share share)
{
	return (struct shares_node *)((char *)(place - share) - offsetof(struct shares_node, place));
}

struct shares_node *shares_first(const struct shares_node *node, enum share share)
{
	struct heap_node *first = node->below[share].first;

	return first ? node_of_place(first, share) : NULL;
}

struct shares_node *shares_most(struct shares_node *node, enum share share)
{
	while (node->height || !node->parent) {
		node = shares_first(node, share);
		if (!node)
			return NULL;
	}
	return shares_of(node, share) ? node : NULL;
}

/* Counts the prefixes above a node. */
static unsigned depth(const struct shares_node *node)
{
	unsigned depth = 0;

	for (; node->parent; node = node->parent)
		depth++;
	return depth;
}

void shares_compare(const struct shares_node *a, const struct shares_node *b, enum share share,
		    uint64_t *of_a, uint64_t *of_b)
{
	unsigned depth_a = depth(a), depth_b = depth(b);

	for (; depth_a > depth_b; depth_a--)
		a = a->parent;
	for (; depth_b > depth_a; depth_b--)
		b = b->parent;
	for (; a->parent != b->parent; a = a->parent)
		b = b->parent;
	*of_a = shares_of(a, share);
	*of_b = shares_of(b, share);
}

/* ----- token buckets ----- */

#define TOKEN 1000

static uint64_t bucket_size(unsigned rate)
{
	return (uint64_t)rate * BUCKET_SECONDS * TOKEN;
}

/* Adds the tokens of the time since the last call. */
static void bucket_fill(struct bucket *bucket, unsigned rate, uint64_t now_ms)
{
	uint64_t full = bucket_size(rate);
	/* A thread that read the clock earlier than another may get here later. */
	uint64_t elapsed = now_ms > bucket->filled_ms ? now_ms - bucket->filled_ms : 0;

	if (!bucket->filled_ms || elapsed >= BUCKET_SECONDS * 1000)
		bucket->tokens = full;
	else
		bucket->tokens += elapsed * rate;
	if (bucket->tokens > full)
		bucket->tokens = full;
	if (now_ms > bucket->filled_ms)
		bucket->filled_ms = now_ms;
}

bool bucket_has(struct bucket *bucket, unsigned rate, uint64_t now_ms)
{
	if (!rate)
		return true;
	bucket_fill(bucket, rate, now_ms);
	return bucket->tokens >= TOKEN;
}

void bucket_take(struct bucket *bucket, unsigned rate)
{
	if (rate)
		bucket->tokens -= TOKEN;
}

bool bucket_is_full(struct bucket *bucket, unsigned rate, uint64_t now_ms)
{
	if (!rate || !bucket->filled_ms)
		return true;
	bucket_fill(bucket, rate, now_ms);
	return bucket->tokens == bucket_size(rate);
}
