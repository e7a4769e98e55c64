/* SPDX-License-Identifier: BSD-3-Clause */
/* shell.h - quotes foreign words in printed commands, and foreign text on a terminal */
#ifndef COMMON_SHELL_H
#define COMMON_SHELL_H

#include <stddef.h>

/* Bytes that a word of @len bytes may take, with the NUL. */
#define SHELL_WORD_MAX(len) (4 * (len) + sizeof("\"$(printf '')\""))

/*
 * shell_quote() - write @word for sh(1): as it is, in quotes, or, with control characters, as octal digits for printf(1)
 * @buf: of SHELL_WORD_MAX(strlen(@word)) bytes. Returns @buf.
 */
const char *shell_quote(const char *word, char *buf);

/* Replaces control characters other than line feeds by question marks: device names may contain all of them but blanks. Returns @text. */
char *shell_printable(char *text);

#endif
