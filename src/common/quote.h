/* SPDX-License-Identifier: BSD-3-Clause */
/* quote.h - foreign text for shells, terminals and readers of JSON */
#ifndef COMMON_QUOTE_H
#define COMMON_QUOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* --- shells and terminals --- */

/* Bytes that a word of @len bytes may take, with the NUL. */
#define SHELL_WORD_MAX(len) (4 * (len) + sizeof("\"$(printf '')\""))

/*
 * shell_quote() - write @word for sh(1): as it is, in quotes, or, with control characters, as octal digits for printf(1)
 * @buf: of SHELL_WORD_MAX(strlen(@word)) bytes. Returns @buf.
 */
const char *shell_quote(const char *word, char *buf);

/* Replaces control characters but line feeds by question marks: a device name may have any that isn't white space. Returns @text. */
char *shell_printable(char *text);

/* --- JSON (RFC 8259) --- */

/*
 * json_string() - write a string in quotes
 * Valid JSON for any @text: writes a byte that isn't UTF-8 as U+FFFD.
 */
void json_string(FILE *out, const char *text);

/* json_member() - write a further member of an object, with a comma in front. @text: NULL: null */
void json_member(FILE *out, const char *name, const char *text);

/* Likewise, a whole number, or null unless @known; and a truth value. */
void json_member_number(FILE *out, const char *name, bool known, int64_t value);
void json_member_bool(FILE *out, const char *name, bool value);

/* json_number() - write a number, with three decimals unless they are 0, and a point in any locale */
void json_number(FILE *out, double value);

#endif
