/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocks.c - an allocator for blocks of one size that returns its memory to the system
 *
 * The problem: glibc's malloc() gives memory back to the system from the end of its heap only, so after a peak of
 * connections a few bytes that stay in use keep all that was taken before them (tests/lab/test_convertd_memory.py
 * fails with it). So sessions have pages of their own.
 *
 * A slab is mapped at a multiple of its size, so that the address of a block yields its slab. Slabs with free blocks
 * stand in a list: blocks are taken from the first, and a slab that was full goes to the end of the list when one of
 * its blocks returns. So the first slabs fill up while the last ones drain, and a slab without a block in use is
 * unmapped, unless it is the only one in the list.
 *
 * We tell AddressSanitizer which blocks are free, so that it reports their use as it does with malloc().
 */
#include "config.h"

#include "daemon/blocks.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <utlist.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

#define ALIGNMENT _Alignof(max_align_t)

/* A free block that was used before begins with this. */
struct hole {
	struct hole *next;
};

struct slab {
	struct slab *prev, *next; /* neighbours in blocks->room, if it has free blocks */
	struct hole *holes;       /* free blocks that were used before */
	uint32_t used;            /* the number of blocks in use */
	uint32_t touched;         /* the number of blocks that were ever used: those behind are still zero */
	_Alignas(ALIGNMENT) uint8_t memory[];
};

/* Maps twice the size of a slab, and unmaps the parts in front of and behind the aligned slab. */
static struct slab *slab_map(void)
{
	uint8_t *mapped = mmap(NULL, 2 * BLOCKS_SLAB_SIZE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (mapped == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)mapped % BLOCKS_SLAB_SIZE;
	if (before)
		munmap(mapped, before);
	munmap(mapped + before + BLOCKS_SLAB_SIZE, BLOCKS_SLAB_SIZE - before);
	return (struct slab *)(mapped + before);
}

static struct slab *slab_of(const void *block)
{
	return (struct slab *)((uintptr_t)block / BLOCKS_SLAB_SIZE * BLOCKS_SLAB_SIZE);
}

static void slab_unmap(struct blocks *blocks, struct slab *slab)
{
	DL_DELETE(blocks->room, slab);
	blocks->slabs--;
	/* The next mapping at this address must not be poisoned. */
	ASAN_UNPOISON_MEMORY_REGION(slab, BLOCKS_SLAB_SIZE);
	munmap(slab, BLOCKS_SLAB_SIZE);
}

void blocks_init(struct blocks *blocks, size_t size)
{
	assert(size && size <= BLOCKS_SLAB_SIZE / 4);
	blocks->room = NULL;
	blocks->size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	blocks->per_slab = (BLOCKS_SLAB_SIZE - sizeof(struct slab)) / blocks->size;
	blocks->slabs = 0;
}

void blocks_fini(struct blocks *blocks)
{
	while (blocks->room) {
		assert(!blocks->room->used);
		slab_unmap(blocks, blocks->room);
	}
	assert(!blocks->slabs);
}

void *blocks_get(struct blocks *blocks)
{
	struct slab *slab = blocks->room;
	void *block;

	if (!slab) {
		slab = slab_map();
		if (!slab)
			return NULL;
		blocks->slabs++;
		DL_APPEND(blocks->room, slab);
	}
	if (slab->holes) {
		block = slab->holes;
		ASAN_UNPOISON_MEMORY_REGION(block, blocks->size);
		slab->holes = slab->holes->next;
		memset(block, 0, blocks->size);
	} else {
		block = slab->memory + slab->touched++ * blocks->size;
	}
	if (++slab->used == blocks->per_slab)
		DL_DELETE(blocks->room, slab);
	return block;
}

void blocks_put(struct blocks *blocks, void *block)
{
	struct slab *slab = slab_of(block);
	struct hole *hole = block;

	if (!block)
		return;
	if (slab->used-- == blocks->per_slab)
		DL_APPEND(blocks->room, slab);
	hole->next = slab->holes;
	slab->holes = hole;
	ASAN_POISON_MEMORY_REGION(block, blocks->size);
	if (!slab->used && blocks->room->next)
		slab_unmap(blocks, slab);
}
