/* SPDX-License-Identifier: BSD-3-Clause */
/* similar.h - finds the name that the user may have meant by a mistyped word (no I/O) */
#ifndef COMMON_SIMILAR_H
#define COMMON_SIMILAR_H

#include <stddef.h>

/* The name most similar to a word so far: { 0 } at first. */
struct similar {
	const char *name; /* NULL: none is similar */
	size_t wrong;     /* letters to add, remove, replace or swap with their neighbour; 0: @name is the word */
};

/* Makes @name the best so far if it is more similar to @word. A short name may have one wrong letter, a long one two. */
void similar_compare(struct similar *best, const char *word, const char *name);

#endif
