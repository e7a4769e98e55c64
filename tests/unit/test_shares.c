/* SPDX-License-Identifier: BSD-3-Clause */
/* test_shares.c - the heap against a search of all entries; nested prefixes against a new count; shares of this host's memory */
#include "config.h"

#include "common/sockaddr.h"
#include "daemon/heap.h"
#include "convertd/config/effective_settings.h"
#include "daemon/shares.h"

#include "run.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MB (1ULL << 20)

/* The same numbers each time. */
static uint32_t chance(void)
{
	static uint32_t state = 1;

	state = state * 1664525 + 1013904223;
	return state >> 8;
}

START_TEST(heap_is_as_a_search)
{
	static struct heap_node node[200];
	struct heap heap = { 0 };

	for (uint64_t turn = 1; turn < 10000; turn++) {
		struct heap_node *first = NULL;

		heap_set(&heap, &node[chance() % ARRAY_SIZE(node)], chance() % 8, turn);
		for (size_t i = 0; i < ARRAY_SIZE(node); i++) {
			struct heap_node *n = &node[i];

			if (n->weight && (!first || n->weight > first->weight ||
					  (n->weight == first->weight && n->turn < first->turn)))
				first = n;
		}
		ck_assert_ptr_eq(heap.first, first);
	}
}
END_TEST

static struct shares_node *leaf_of(struct shares *shares, const char *text, uint8_t bits)
{
	union sockaddr_ip address;
	struct shares_node *leaf;
	struct in6_addr in6;

	ck_assert_int_eq(sockaddr_ip_parse(&address, text, 1), 0);
	in6 = sockaddr_ip_in6(&address);
	leaf = shares_leaf(shares, &in6, bits, sizeof(*leaf));
	ck_assert_ptr_nonnull(leaf);
	ck_assert_ptr_eq(shares_leaf(shares, &in6, bits, sizeof(*leaf)), leaf);
	return leaf;
}

/* The lengths of the prefixes above a leaf. */
static const struct {
	const char *address;
	uint8_t bits, above[SHARES_ABOVE_MAX + 1];
} ladders[] = {
	{ "2001:db8::1", 64, { 56, 48, 32 } },
	{ "2001:db8::1", 128, { 56, 48, 32 } },
	{ "2001:db8::1", 56, { 48, 32 } },
	{ "2001:db8::1", 48, { 32 } },
	{ "2001:db8::1", 20, { 0 } },
	{ "10.0.0.1", 128, { 120, 112 } },
	{ "10.0.0.1", 120, { 112 } },
	{ "10.0.0.1", 96, { 0 } },
};

START_TEST(prefixes_above)
{
	struct shares shares;
	struct shares_node *leaf;
	int i = 0;

	ck_assert_int_ge(sodium_init(), 0);
	shares_init(&shares);
	leaf = leaf_of(&shares, ladders[_i].address, ladders[_i].bits);
	ck_assert_uint_eq(shares.leaves, 1);
	for (const struct shares_node *node = leaf->parent; node->parent; node = node->parent, i++)
		ck_assert_uint_eq(node->key[SHARES_KEY_LEN - 2], ladders[_i].above[i]);
	ck_assert_uint_eq(ladders[_i].above[i], 0);
	shares_forget(&shares, leaf);
	ck_assert_ptr_null(shares.nodes);
	ck_assert_uint_eq(shares.leaves, 0);
	shares_fini(&shares);
}
END_TEST

#define LEAVES 100

/* Leaves of some /32s, /48s and /56s, which have more and less in turns: the greediest is found as by counting. */
START_TEST(greediest_is_as_counted)
{
	struct shares_node *leaf[LEAVES];
	struct shares shares;

	ck_assert_int_ge(sodium_init(), 0);
	shares_init(&shares);
	for (unsigned i = 0; i < LEAVES; i++) {
		char text[64];

		snprintf(text, sizeof(text), "2001:%x:%x:%x::1", i % 5, i / 5 % 4, i);
		leaf[i] = leaf_of(&shares, text, 64);
	}
	for (int round = 0; round < 1000; round++) {
		unsigned changed = chance() % LEAVES;
		uint64_t has = shares_of(leaf[changed], SHARE_PENDING);
		const struct shares_node *most;

		shares_add(&shares, leaf[changed], SHARE_PENDING, (int64_t)(chance() % 5) - (int64_t)has);
		most = shares_most(&shares.root, SHARE_PENDING);
		if (!shares_of(&shares.root, SHARE_PENDING)) {
			ck_assert_ptr_null(most);
			continue;
		}
		/* Checks, level by level, that no other prefix below the same one has more. */
		for (const struct shares_node *node = most; node->parent; node = node->parent) {
			uint64_t sum = 0;
			bool right = true; /* an assertion costs a system call */

			for (unsigned i = 0; i < LEAVES; i++)
				for (const struct shares_node *n = leaf[i]; n->parent; n = n->parent) {
					right &= n->parent != node->parent ||
						 shares_of(n, SHARE_PENDING) <=
							 shares_of(node, SHARE_PENDING);
					sum += n == node ? shares_of(leaf[i], SHARE_PENDING) : 0;
				}
			ck_assert(right);
			ck_assert_uint_eq(sum, shares_of(node, SHARE_PENDING));
		}
	}
	for (unsigned i = 0; i < LEAVES; i++) {
		shares_add(&shares, leaf[i], SHARE_PENDING,
			   -(int64_t)shares_of(leaf[i], SHARE_PENDING));
		shares_forget(&shares, leaf[i]);
	}
	ck_assert_uint_eq(shares_of(&shares.root, SHARE_PENDING), 0);
	ck_assert_ptr_null(shares.nodes);
	shares_fini(&shares);
}
END_TEST

/* ----- memory_budget.c ----- */

static const struct {
	uint64_t total, per_client;
	const char *tcp_mem;
	uint64_t cgroup_max;
	struct limits_memory is;
} budgets[] = {
	{ 0, 0, "1000\t262144\t524288\n", UINT64_MAX, { 64 * MB, 512 * MB } },
	{ 0, 0, "1000 262144 524288", 256 * MB, { 16 * MB, 128 * MB } },
	{ 0, 0, "1000 262144 524288", 4096 * MB, { 64 * MB, 512 * MB } },
	{ 0, 0, "", 4096 * MB, { 256 * MB, 2048 * MB } },
	{ 0, 0, "", UINT64_MAX, { 0, 0 } },
	{ 0, 0, "1 4096 3", UINT64_MAX, { 4 * MB, 8 * MB } },
	{ 100 * MB, 0, "1000 262144 524288", 8 * MB, { 16 * MB, 100 * MB } },
	{ 100 * MB, 3 * MB, "", UINT64_MAX, { 3 * MB, 100 * MB } },
	{ 0, 3 * MB, "1000 262144 524288", UINT64_MAX, { 3 * MB, 512 * MB } },
};

START_TEST(budget)
{
	struct limits_memory is = memory_budget_of(budgets[_i].total, budgets[_i].per_client,
						   budgets[_i].tcp_mem, 4096, budgets[_i].cgroup_max);

	ck_assert_uint_eq(is.total, budgets[_i].is.total);
	ck_assert_uint_eq(is.per_client, budgets[_i].is.per_client);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shares");
	TCase *tcase = tcase_create("shares");

	tcase_add_test(tcase, heap_is_as_a_search);
	tcase_add_loop_test(tcase, prefixes_above, 0, (int)ARRAY_SIZE(ladders));
	tcase_add_test(tcase, greediest_is_as_counted);
	tcase_add_loop_test(tcase, budget, 0, (int)ARRAY_SIZE(budgets));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
