/* SPDX-License-Identifier: BSD-3-Clause */
/* similar.c - finds the name that the user may have meant by a mistyped word (no I/O) */
#include "config.h"

#include "common/similar.h"

#include <stdint.h>
#include <string.h>

#define SIMILAR_MAX 32 /* letters of a word; longer ones are similar to none */
#define SHORT_NAME 6   /* a name with fewer letters may have one wrong letter only */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Returns the number of wrong letters that turn one word into the other. */
static size_t distance(const char *a, const char *b)
{
	size_t len_a = strlen(a), len_b = strlen(b), rows[SIMILAR_MAX + 1][SIMILAR_MAX + 1];

	if (len_a > SIMILAR_MAX || len_b > SIMILAR_MAX)
		return SIZE_MAX;
	for (size_t i = 0; i <= len_a; i++)
		for (size_t j = 0; j <= len_b; j++) {
			if (!i || !j) {
				rows[i][j] = i + j;
				continue;
			}
			rows[i][j] = least(least(rows[i - 1][j], rows[i][j - 1]) + 1, rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				rows[i][j] = least(rows[i][j], rows[i - 2][j - 2] + 1);
		}
	return rows[len_a][len_b];
}

void similar_compare(struct similar *best, const char *word, const char *name)
{
	size_t wrong = distance(word, name);

	if (wrong > (strlen(name) < SHORT_NAME ? 1 : 2) || (best->name && wrong >= best->wrong))
		return;
	best->name = name;
	best->wrong = wrong;
}
