/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap.h - an intrusive priority queue that finds the node with the largest weight (no I/O, no memory of its own)
 *
 * Of several nodes with the largest weight, the first is the one with the lowest turn. It is a pairing heap: entering
 * costs O(1), leaving and a change of weight O(log n) amortized. Nodes of weight 0 aren't kept in it.
 */
#ifndef DAEMON_HEAP_H
#define DAEMON_HEAP_H

#include <stdint.h>

/* Embedded in each object in the queue; a zeroed node is in no heap. Its owner may read @weight, and changes nothing. */
struct heap_node {
	struct heap_node *child, *next;
	struct heap_node *prev; /* the sibling before this node, or its parent if it is the first; NULL at the top */
	uint64_t weight;
	uint64_t turn; /* among equal weights, the lower goes first */
};

/* A zeroed heap is empty. */
struct heap {
	struct heap_node *first; /* the node with the largest weight; NULL: the heap is empty */
};

/*
 * heap_set() - give @node a weight
 * @turn: a number that grows from call to call, or the node's old one, by which it keeps its place among equals
 * The node enters the heap with its first weight that isn't 0, and leaves it with weight 0.
 */
void heap_set(struct heap *heap, struct heap_node *node, uint64_t weight, uint64_t turn);

#endif
