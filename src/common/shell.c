/* SPDX-License-Identifier: BSD-3-Clause */
/* shell.c - quotes foreign words in printed commands, and foreign text on a terminal */
#include "config.h"

#include "common/shell.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Is it a control character other than a line feed? $(…) would remove line feeds from the end, and no device name has them. */
static bool is_control(char c)
{
	return c != '\n' && ((unsigned char)c < ' ' || c == 0x7f);
}

static bool has_control(const char *word)
{
	for (; *word; word++)
		if (is_control(*word))
			return true;
	return false;
}

/* Writes each byte that printf's format interprets, or that must not be printed, as three octal digits. */
static const char *quote_by_printf(const char *word, char *buf)
{
	char *at = buf + sprintf(buf, "\"$(printf '");

	for (; *word; word++)
		if (is_control(*word) || strchr("'\\%", *word))
			at += sprintf(at, "\\%03o", (unsigned int)(unsigned char)*word);
		else
			*at++ = *word;
	strcpy(at, "')\"");
	return buf;
}

const char *shell_quote(const char *word, char *buf)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-";
	char *at = buf;

	if (*word && !word[strspn(word, plain)])
		return strcpy(buf, word);
	if (has_control(word))
		return quote_by_printf(word, buf);
	*at++ = '\'';
	for (; *word; word++) {
		const char *piece = *word == '\'' ? "'\\''" : (const char[]){ *word, '\0' };

		strcpy(at, piece);
		at += strlen(piece);
	}
	strcpy(at, "'");
	return buf;
}

char *shell_printable(char *text)
{
	for (char *at = text; *at; at++)
		if (is_control(*at))
			*at = '?';
	return text;
}
