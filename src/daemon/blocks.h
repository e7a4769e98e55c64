/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocks.h - an allocator for blocks of one size that returns its memory to the system
 *
 * A struct blocks belongs to one thread: it has no lock.
 */
#ifndef DAEMON_BLOCKS_H
#define DAEMON_BLOCKS_H

#include <stddef.h>

/* Memory is mapped in slabs of this many bytes; a block is much smaller. */
#define BLOCKS_SLAB_SIZE (64 * 1024)

struct slab;

struct blocks {
	struct slab *room; /* the slabs with free blocks; blocks are taken from the first */
	size_t size;       /* the size of a block, in bytes */
	size_t per_slab;   /* the number of blocks in a slab */
	size_t slabs;      /* the number of slabs, full ones included */
};

/* Prepares an allocator for blocks of @size bytes, up to a quarter of a slab. It takes no memory yet. */
void blocks_init(struct blocks *blocks, size_t size);

/* Unmaps all slabs; no block may be in use. */
void blocks_fini(struct blocks *blocks);

/* Returns a zeroed block, aligned for any type, which blocks_put() takes back; NULL without memory. */
void *blocks_get(struct blocks *blocks);

/* Gives a block back. NULL is fine. */
void blocks_put(struct blocks *blocks, void *block);

#endif
