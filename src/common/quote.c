/* SPDX-License-Identifier: BSD-3-Clause */
/* quote.c - foreign text for shells, terminals and readers of JSON */
#include "config.h"

#include "common/quote.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

/* --- JSON --- */

#define REPLACEMENT "\\ufffd"

/* Returns the bytes of the UTF-8 character at @text, 0 if it is none (RFC 3629 4); stops at the NUL. */
static size_t utf8_len(const unsigned char *text)
{
	static const struct {
		uint8_t first, last;   /* of the first byte */
		uint8_t second_first, second_last;
		uint8_t len;
	} forms[] = {
		{ 0x01, 0x7f, 0x00, 0x00, 1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (text[0] < forms[i].first || text[0] > forms[i].last)
			continue;
		if (forms[i].len == 1)
			return 1;
		if (text[1] < forms[i].second_first || text[1] > forms[i].second_last)
			return 0;
		for (size_t n = 2; n < forms[i].len; n++)
			if (text[n] < 0x80 || text[n] > 0xbf)
				return 0;
		return forms[i].len;
	}
	return 0;
}

/* Returns the number of bytes at @text that a string contains unchanged. */
static size_t plain_len(const unsigned char *text)
{
	const unsigned char *at = text;
	size_t len;

	while (*at >= 0x20 && *at != '"' && *at != '\\' && (len = utf8_len(at)))
		at += len;
	return (size_t)(at - text);
}

void json_string(FILE *out, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	fputc('"', out);
	while (*at) {
		size_t len = plain_len(at);

		fwrite(at, 1, len, out);
		at += len;
		if (!*at)
			break;
		if (*at == '"' || *at == '\\')
			fprintf(out, "\\%c", *at);
		else if (*at < 0x20)
			fprintf(out, "\\u%04x", *at);
		else
			fputs(REPLACEMENT, out);
		at++;
	}
	fputc('"', out);
}

void json_number(FILE *out, double value)
{
	long long thousandths = (long long)(value * 1000 + (value < 0 ? -0.5 : 0.5));
	long long positive = thousandths < 0 ? -thousandths : thousandths;

	fprintf(out, "%s%lld", thousandths < 0 ? "-" : "", positive / 1000);
	if (positive % 1000)
		fprintf(out, ".%03lld", positive % 1000);
}
