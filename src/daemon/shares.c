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
 *
 * The nodes are hashed with a secret key (SipHash), so that a client can't choose its place in the table by its address.
 */
#include "config.h"

#include "common/sockaddr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, len, hash) ((hash) = hash_of(shares, (key), (len)))
#include "daemon/shares.h"

/* The lengths of prefixes above a client; for IPv4 those of v4-mapped addresses. */
static const uint8_t above_v4[SHARES_ABOVE_MAX] = { 96 + 24, 96 + 16 };
static const uint8_t above_v6[SHARES_ABOVE_MAX] = { 56, 48, 32 };

static unsigned hash_of(const struct shares *shares, const void *key, size_t len)
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

void shares_fini(struct shares *shares)
{
	struct shares_node *node, *next;

	HASH_ITER(hh, shares->nodes, node, next) {
		HASH_DELETE(hh, shares->nodes, node);
		free(node);
	}
}

static void make_key(const struct in6_addr *address, uint8_t bits, uint8_t height, uint8_t key[static SHARES_KEY_LEN])
{
	struct prefix prefix = prefix_of(address, bits);

	memcpy(key, &prefix.address, sizeof(prefix.address));
	key[SHARES_KEY_LEN - 2] = bits;
	key[SHARES_KEY_LEN - 1] = height;
}

/* Returns the node of a prefix, which may be a new one without a parent, of @size bytes; NULL without memory. */
static struct shares_node *get_node(struct shares *shares, const struct in6_addr *address, uint8_t bits, uint8_t height,
				    size_t size)
{
	uint8_t key[SHARES_KEY_LEN];
	struct shares_node *node;

	make_key(address, bits, height, key);
	HASH_FIND(hh, shares->nodes, key, SHARES_KEY_LEN, node);
	if (node)
		return node;
	node = calloc(1, size);
	if (!node)
		return NULL;
	memcpy(node->key, key, SHARES_KEY_LEN);
	node->height = height;
	HASH_ADD(hh, shares->nodes, key, SHARES_KEY_LEN, node);
	if (node->hh.tbl) {
		shares->leaves += !height;
		return node;
	}
	free(node);
	return NULL;
}

struct shares_node *shares_leaf(struct shares *shares, const struct in6_addr *address, uint8_t bits, size_t size)
{
	const uint8_t *lengths = IN6_IS_ADDR_V4MAPPED(address) && bits >= 96 ? above_v4 : above_v6;
	struct shares_node *leaf = get_node(shares, address, bits, 0, size), *node = leaf;

	if (!leaf || leaf->parent)
		return leaf;
	for (int i = 0; i < SHARES_ABOVE_MAX; i++) {
		struct shares_node *above;

		if (!lengths[i] || lengths[i] >= bits)
			continue;
		above = get_node(shares, address, lengths[i], (uint8_t)(i + 1), sizeof(*above));
		if (!above) {
			shares_forget(shares, leaf);
			return NULL;
		}
		node->parent = above;
		/* A prefix that has other children has its own parent already. */
		if (above->children++)
			return leaf;
		node = above;
	}
	node->parent = &shares->root;
	shares->root.children++;
	return leaf;
}

void shares_forget(struct shares *shares, struct shares_node *leaf)
{
	struct shares_node *node = leaf;

	shares->leaves--;
	while (node && node != &shares->root && !node->children) {
		struct shares_node *parent = node->parent;

		HASH_DELETE(hh, shares->nodes, node);
		free(node);
		if (parent)
			parent->children--;
		node = parent;
	}
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

/* Returns the greediest child of @node, or NULL if none uses anything. */
static struct shares_node *first_below(const struct shares_node *node, enum share share)
{
	struct heap_node *first = node->below[share].first;

	return first ? node_of_place(first, share) : NULL;
}

struct shares_node *shares_most(struct shares_node *node, enum share share)
{
	while (node->height || !node->parent) {
		node = first_below(node, share);
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

uint64_t shares_apart(const struct shares *shares, const struct in6_addr *address, enum share share)
{
	const struct shares_node *node = &shares->root;
	uint64_t all = shares_of(node, share);
	uint8_t key[SHARES_KEY_LEN];

	while ((node = first_below(node, share))) {
		make_key(address, node->key[SHARES_KEY_LEN - 2], node->height, key);
		if (memcmp(key, node->key, SHARES_KEY_LEN) != 0)
			return all - shares_of(node, share);
	}
	return all;
}

/*
 * ----- errors -----
 *
 * Each node has a rate of errors a second, and may be sent a burst of as many as in ERRORS_BURST_SECONDS. This is the generic cell
 * rate algorithm (ITU-T I.371), a token bucket in one number: each error moves the time at which the whole burst is
 * allowed again. A thread that read the clock earlier than another may come later, which does no harm.
 */

#define ERRORS_BURST_SECONDS 5
#define SECOND_NS UINT64_C(1000000000)

/* The part of the total rate of errors that a prefix may have: one in this many, by its height. */
static const unsigned errors_part[] = { 0, 8, 4, 2 };

static unsigned error_rate(const struct shares_node *node, unsigned per_leaf, unsigned total)
{
	if (!node->parent)
		return total;
	/* If the part comes to 0, the prefix has no limit besides those of its clients. */
	return node->height ? total / errors_part[node->height] : per_leaf;
}

static bool has_error_left(const struct shares_node *node, unsigned rate, uint64_t now_ns)
{
	return !rate || node->errors_ns <= now_ns + SECOND_NS / rate * ((uint64_t)rate * ERRORS_BURST_SECONDS - 1);
}

bool shares_take_error(struct shares_node *leaf, unsigned per_leaf, unsigned total, uint64_t now_ms)
{
	uint64_t now_ns = now_ms * (SECOND_NS / 1000);

	for (struct shares_node *node = leaf; node; node = node->parent)
		if (!has_error_left(node, error_rate(node, per_leaf, total), now_ns))
			return false;
	for (struct shares_node *node = leaf; node; node = node->parent) {
		unsigned rate = error_rate(node, per_leaf, total);

		if (rate)
			node->errors_ns = (node->errors_ns > now_ns ? node->errors_ns : now_ns) + SECOND_NS / rate;
	}
	return true;
}

bool shares_owes_nothing(const struct shares_node *leaf, uint64_t now_ms)
{
	return leaf->errors_ns <= now_ms * (SECOND_NS / 1000);
}

/*
 * ----- memory -----
 *
 * If a peer takes no bytes, the kernel keeps all that its socket, and the socket on the other side, can hold:
 * megabytes each, as buffers grow with the speed that the connection once had. We can't take these bytes back, as
 * they have been acknowledged. Nor can we bound the buffers beforehand: they would no longer grow with the
 * connection, and fast ones would pay for the stalled ones. So we measure the memory (src/relay), and end members
 * where it is too much. The weight of a member is its memory times how long that hasn't moved. The prefix with the
 * greatest weight goes first, and in it the member with the greatest weight. A member that moves has no weight, and
 * is never ended.
 *
 * There are three budgets: of all clients, of a client, and of the prefixes above it, which may have twice, four
 * times as much and so on, half of all at most. A stalled member has some seconds to move again: two where all hold
 * too much, five where only a prefix does. Honest peers may stall that long: a receiver opens its window when a
 * sixteenth of its buffer is free, and radios pause.
 */

/* A prefix above a client may have twice, four times … as much as the client, and half of the total at most. */
#define PREFIX_PART_MIN 2

/*
 * A leaf has to have stalled for at least this long: where a prefix holds too much; where all do; where a prefix holds
 * more than twice its limit; and in a prefix that holds much less than the greediest one, which may have begun to stall
 * only now.
 */
#define STALLED_PREFIX_MS 5000
#define STALLED_TOTAL_MS 2000
#define STALLED_GREEDY_MS 2000
#define STALLED_SMALL_MS 10000

/* Returns the memory that a prefix may hold: the limit of a client, doubled for each level above it. */
static uint64_t memory_limit(const struct shares_node *node, uint64_t per_leaf, uint64_t total)
{
	uint64_t limit = per_leaf << node->height, half = total / PREFIX_PART_MIN;

	if (!node->parent)
		return total;
	return node->height && half && limit > half ? half : limit;
}

/* Returns for how long memory below @node must have stalled to be given back, if some has to be; 0: none has. */
static uint32_t stalled_enough(const struct shares_node *node, uint64_t per_leaf, uint64_t total)
{
	uint64_t limit = memory_limit(node, per_leaf, total), memory = shares_of(node, SHARE_MEMORY);

	if (!limit || memory <= limit)
		return 0;
	if (!node->parent)
		return memory > 2 * limit ? STALLED_MIN_MS : STALLED_TOTAL_MS;
	return memory > 2 * limit ? STALLED_GREEDY_MS : STALLED_PREFIX_MS;
}

/* Tells whether another prefix below @node holds the most, and more than twice as much as @leaf's. */
static bool others_hold_more(struct shares_node *node, const struct shares_node *leaf)
{
	const struct shares_node *most = shares_most(node, SHARE_MEMORY);
	uint64_t of_most, of_leaf;

	if (!most || most == leaf)
		return false;
	shares_compare(most, leaf, SHARE_MEMORY, &of_most, &of_leaf);
	return of_most > 2 * of_leaf;
}

struct shares_node *shares_stalled(struct shares_node *node, uint64_t per_leaf, uint64_t total, uint32_t *enough_ms)
{
	struct shares_node *leaf = shares_most(node, SHARE_STALLED);

	*enough_ms = stalled_enough(node, per_leaf, total);
	if (!*enough_ms || !leaf)
		return NULL;
	if (*enough_ms < STALLED_SMALL_MS && others_hold_more(node, leaf))
		*enough_ms = STALLED_SMALL_MS;
	return leaf;
}
