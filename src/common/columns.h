/* SPDX-License-Identifier: BSD-3-Clause */
/* columns.h - text for people: lines of a width, and numbers in few characters */
#ifndef COMMON_COLUMNS_H
#define COMMON_COLUMNS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define COLUMNS_USUAL 80

/* Returns the width of the terminal that @out writes to; 0 if it writes to something else. */
unsigned int columns_of(FILE *out);

/*
 * columns_wrap() - write text in lines of at most @width columns, broken at blanks, and a newline
 * @used: columns of the first line that are written already; @indent: blanks before all other lines; @joint: written before each break,
 * such as " \\" for a shell. A word that is longer than a line stays whole. Control characters become question marks.
 */
void columns_wrap(FILE *out, const char *text, unsigned int width, size_t used, unsigned int indent, const char *joint);

#define AMOUNT_MAX 32

/* Writes "12.3 MB" in at most 8 columns, with decimal units. Returns @buf. */
const char *amount_of_bytes(uint64_t bytes, char buf[static AMOUNT_MAX]);

/* Writes "12 s", "3 min", "5 h" or "4 d". Returns @buf. */
const char *amount_of_time(int64_t seconds, char buf[static AMOUNT_MAX]);

#endif
