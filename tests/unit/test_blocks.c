/* SPDX-License-Identifier: BSD-3-Clause */
/* test_blocks.c - blocks of one size: they are zero, apart from each other, and go back to the system */
#include "config.h"

#include "daemon/blocks.h"

#include "run.h"

#include <check.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#include <stdint.h>
#include <string.h>

#define SIZE 900
#define COUNT 1000

static struct blocks blocks;
static uint8_t *taken[COUNT];

static void take(size_t first, size_t end)
{
	static const uint8_t zeros[SIZE];

	for (size_t i = first; i < end; i++) {
		taken[i] = blocks_get(&blocks);
		ck_assert_ptr_nonnull(taken[i]);
		ck_assert_uint_eq((uintptr_t)taken[i] % _Alignof(max_align_t), 0);
		ck_assert_mem_eq(taken[i], zeros, SIZE);
		memset(taken[i], (int)(i % 255 + 1), SIZE);
	}
}

/* Frees each @step-th block from @first on, whose bytes must still be what was written. */
static void give(size_t first, size_t step)
{
	for (size_t i = first; i < COUNT; i += step) {
		uint8_t written[SIZE];

		memset(written, (int)(i % 255 + 1), SIZE);
		ck_assert_mem_eq(taken[i], written, SIZE);
		blocks_put(&blocks, taken[i]);
	}
}

static void start(void)
{
	blocks_init(&blocks, SIZE);
	ck_assert_uint_eq(blocks.slabs, 0);
}

START_TEST(all_go_back)
{
	start();
	for (int round = 0; round < 3; round++) {
		take(0, COUNT);
		ck_assert_uint_le(blocks.slabs, COUNT / (BLOCKS_SLAB_SIZE / SIZE - 1) + 1);
		give(0, 2);
		give(1, 2);
		/* One empty slab is kept, so that a client that comes and goes costs no mmap(). */
		ck_assert_uint_eq(blocks.slabs, 1);
	}
	blocks_fini(&blocks);
}
END_TEST

START_TEST(holes_are_filled)
{
	size_t slabs;

	start();
	take(0, COUNT);
	slabs = blocks.slabs;
	for (size_t i = 0; i < COUNT / 2; i++)
		blocks_put(&blocks, taken[i]);
	ck_assert_uint_le(blocks.slabs, slabs / 2 + 2);
	take(0, COUNT / 2);
	ck_assert_uint_le(blocks.slabs, slabs);
	give(0, 1);
	blocks_fini(&blocks);
}
END_TEST

/* When few of many blocks remain, new ones fill the slabs of some, so that the other slabs become empty. */
START_TEST(few_of_many)
{
	size_t slabs;

	start();
	take(0, COUNT);
	slabs = blocks.slabs;
	for (size_t i = 0; i < COUNT; i++)
		if (i % 20)
			blocks_put(&blocks, taken[i]);
	/* Each slab has one block in use, except perhaps the last one, which held few. */
	ck_assert_uint_ge(blocks.slabs, slabs - 1);
	for (int i = 0; i < 100 * COUNT; i++) {
		void *block = blocks_get(&blocks);

		blocks_put(&blocks, block);
	}
	ck_assert_uint_le(blocks.slabs, slabs);
	give(0, 20);
	ck_assert_uint_eq(blocks.slabs, 1);
	blocks_fini(&blocks);
}
END_TEST

#ifdef __SANITIZE_ADDRESS__
START_TEST(free_is_poisoned)
{
	void *block, *other;

	start();
	block = blocks_get(&blocks);
	other = blocks_get(&blocks);
	blocks_put(&blocks, block);
	ck_assert(__asan_address_is_poisoned(block));
	ck_assert(!__asan_address_is_poisoned(other));
	blocks_put(&blocks, other);
	blocks_fini(&blocks);
}
END_TEST
#endif

START_TEST(none)
{
	start();
	blocks_put(&blocks, NULL);
	blocks_fini(&blocks);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("blocks");
	TCase *tcase = tcase_create("blocks");

	tcase_add_test(tcase, all_go_back);
	tcase_add_test(tcase, holes_are_filled);
	tcase_add_test(tcase, few_of_many);
	tcase_add_test(tcase, none);
#ifdef __SANITIZE_ADDRESS__
	tcase_add_test(tcase, free_is_poisoned);
#endif
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
