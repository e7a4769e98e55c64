/* SPDX-License-Identifier: BSD-3-Clause */
/* shell.h - foreign words in commands that are shown, and foreign text on a terminal */
#ifndef COMMON_SHELL_H
#define COMMON_SHELL_H

#include <stddef.h>

/* Bytes that a word of @len bytes may take, with the NUL. */
#define SHELL_WORD_MAX(len) (4 * (len) + sizeof("\"$(printf '')\""))

/*
 * shell_quote() - write @word as sh(1) reads it: as it is, in quotes, or, with control characters, by printf(1), so that none is printed
 * @buf: of SHELL_WORD_MAX(strlen(@word)) bytes. Returns @buf.
 */
const char *shell_quote(const char *word, char *buf);

/* Replaces control characters but for line feeds by question marks: device names may have all of them but blanks. Returns @text. */
char *shell_printable(char *text);

#endif
