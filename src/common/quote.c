/* SPDX-License-Identifier: BSD-3-Clause */
/* quote.c - foreign text for shells, terminals and readers of JSON */
#include "config.h"

#include "common/quote.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
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
	const unsigned char first = text[0];
	const size_t len = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;

	for (size_t n = 1; n < len; n++)
		if ((text[n] & 0xc0) != 0x80)
			return 0;
	/* a longer form than necessary, half a pair of UTF-16, a number above the last */
	if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xf0 && text[1] < 0x90) || (first == 0xed && text[1] > 0x9f) ||
	    (first == 0xf4 && text[1] > 0x8f))
		return 0;
	return len;
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

void json_member(FILE *out, const char *name, const char *text)
{
	fprintf(out, ", \"%s\": ", name);
	if (text)
		json_string(out, text);
	else
		fputs("null", out);
}

void json_member_number(FILE *out, const char *name, bool known, int64_t value)
{
	if (known)
		fprintf(out, ", \"%s\": %" PRId64, name, value);
	else
		fprintf(out, ", \"%s\": null", name);
}

void json_member_bool(FILE *out, const char *name, bool value)
{
	fprintf(out, ", \"%s\": %s", name, value ? "true" : "false");
}

void json_number(FILE *out, double value)
{
	long long thousandths = (long long)(value * 1000 + (value < 0 ? -0.5 : 0.5));
	long long positive = thousandths < 0 ? -thousandths : thousandths;

	fprintf(out, "%s%lld", thousandths < 0 ? "-" : "", positive / 1000);
	if (positive % 1000)
		fprintf(out, ".%03lld", positive % 1000);
}
