/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocks.h - memory in blocks of one size, all of which goes back to the system
 *
 * For one thread: no locks.
 */
#ifndef CONVERTD_BLOCKS_H
#define CONVERTD_BLOCKS_H

#include <stddef.h>

/* What the system is asked for at a time, in bytes; a block is smaller by far. */
#define BLOCKS_SLAB_SIZE (64 * 1024)

struct slab;

struct blocks {
	struct slab *room; /* slabs with room in them; blocks are taken from the first */
	size_t size;       /* of a block, in bytes */
	size_t per_slab;
	size_t slabs;      /* all that there are */
};

/* @size: bytes of each block, up to a quarter of a slab. Takes no memory yet. */
void blocks_init(struct blocks *blocks, size_t size);

/* Frees everything: no block may be in use. */
void blocks_fini(struct blocks *blocks);

/* A block of zeros, aligned for any type; NULL without memory. */
void *blocks_get(struct blocks *blocks);

/* Gives one back. NULL is fine. */
void blocks_put(struct blocks *blocks, void *block);

#endif
