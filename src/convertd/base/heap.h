/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap.h - who has most: an intrusive priority queue (no I/O, no memory of its own)
 *
 * The first is the one with the largest weight; of several, the one that has had its weight for the
 * longest time. A pairing heap: entering costs O(1), leaving and a change O(log n) amortized. Weights
 * of 0 aren't kept in it.
 */
#ifndef CONVERTD_HEAP_H
#define CONVERTD_HEAP_H

#include <stdint.h>

/* A place in a heap; zeros: in none. Its owner reads weight, and changes nothing. */
struct heap_node {
	struct heap_node *child, *next;
	struct heap_node *prev; /* the one before it among siblings, or its parent; NULL at the top */
	uint64_t weight;
	uint64_t turn; /* the lower came first */
};

/* Zeros: empty. */
struct heap {
	struct heap_node *first;
};

/*
 * heap_set() - gives @node a weight
 * @turn: a number that grows from call to call, or the same as before where its turn is to stay
 * It enters the heap with its first weight that isn't 0, and leaves it with 0.
 */
void heap_set(struct heap *heap, struct heap_node *node, uint64_t weight, uint64_t turn);

#endif
