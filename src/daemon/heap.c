/* SPDX-License-Identifier: BSD-3-Clause */
/* heap.c - an intrusive priority queue that finds the node with the largest weight (no I/O, no memory of its own) */
#include "config.h"

#include "daemon/heap.h"

#include <stdbool.h>
#include <stddef.h>

static bool goes_before(const struct heap_node *a, const struct heap_node *b)
{
	return a->weight != b->weight ? a->weight > b->weight : a->turn < b->turn;
}

/* Makes one heap of two, whose first nodes have no siblings; either may be NULL. */
static struct heap_node *meld(struct heap_node *a, struct heap_node *b)
{
	struct heap_node *top = a, *below = b;

	if (!a || !b)
		return a ? a : b;
	if (goes_before(b, a)) {
		top = b;
		below = a;
	}
	below->prev = top;
	below->next = top->child;
	if (below->next)
		below->next->prev = below;
	top->child = below;
	return top;
}

/* Makes one heap of siblings: melds them in pairs, then the pairs into one, since the amortized cost rests on this order. */
static struct heap_node *meld_siblings(struct heap_node *first)
{
	struct heap_node *pairs = NULL, *whole = NULL;

	while (first) {
		struct heap_node *a = first, *b = a->next, *pair;

		first = b ? b->next : NULL;
		a->next = a->prev = NULL;
		if (b)
			b->next = b->prev = NULL;
		pair = meld(a, b);
		pair->next = pairs;
		pairs = pair;
	}
	while (pairs) {
		struct heap_node *pair = pairs;

		pairs = pair->next;
		pair->next = NULL;
		whole = meld(whole, pair);
	}
	return whole;
}

static void leave(struct heap *heap, struct heap_node *node)
{
	struct heap_node *below = meld_siblings(node->child);

	node->child = NULL;
	if (!node->prev) {
		heap->first = below;
		return;
	}
	if (node->prev->child == node)
		node->prev->child = node->next;
	else
		node->prev->next = node->next;
	if (node->next)
		node->next->prev = node->prev;
	node->next = node->prev = NULL;
	heap->first = meld(heap->first, below);
}

void heap_set(struct heap *heap, struct heap_node *node, uint64_t weight, uint64_t turn)
{
	if (node->weight)
		leave(heap, node);
	node->weight = weight;
	node->turn = turn;
	if (weight)
		heap->first = meld(heap->first, node);
}
