/* SPDX-License-Identifier: BSD-3-Clause */
/* columns.c - text for people: lines of a width, and numbers in few characters */
#include "config.h"

#include "common/columns.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

unsigned int columns_of(FILE *out)
{
	struct winsize size;
	int fd = fileno(out);

	if (fd < 0 || !isatty(fd))
		return 0;
	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : COLUMNS_USUAL;
}

/* Returns how many columns UTF-8 text takes, for characters of one column. */
static size_t taken(const char *text, size_t bytes)
{
	size_t count = 0;

	for (size_t i = 0; i < bytes; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	return count;
}

/*
 * Returns how many bytes at @text are a control character; 0: none. U+0080 to U+009F are some, too: a terminal obeys U+009B as it does
 * ESC [.
 */
static size_t control_bytes(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	if (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)
		return 2;
	return *at < ' ' || *at == 0x7f;
}

void columns_wrap(FILE *out, const char *text, unsigned int width, size_t used, unsigned int indent, const char *joint)
{
	const size_t room = width - taken(joint, strlen(joint));
	size_t at = used, len, blanks;

	for (bool begun = false; *text; text += len, begun = true) {
		blanks = strspn(text, " ");
		text += blanks;
		len = strcspn(text, " ");
		if (begun && at + blanks + taken(text, len) > (text[len] ? room : width)) {
			fprintf(out, "%s\n%*s", joint, (int)indent, "");
			at = indent;
		} else {
			fprintf(out, "%*s", (int)blanks, "");
			at += blanks;
		}
		for (size_t i = 0; i < len; i++) {
			const size_t bytes = control_bytes(text + i);

			fputc(bytes ? '?' : text[i], out);
			i += bytes == 2;
		}
		at += taken(text, len);
	}
	fputc('\n', out);
}

const char *amount_of_bytes(uint64_t bytes, char buf[static AMOUNT_MAX])
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 999.5 && unit < 4) {
		value /= 1000;
		unit++;
	}
	snprintf(buf, AMOUNT_MAX, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return buf;
}

const char *amount_of_time(int64_t seconds, char buf[static AMOUNT_MAX])
{
	static const struct {
		int64_t seconds;
		const char *name;
	} units[] = { { 24 * 3600, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
	size_t unit = 0;

	while (unit < 3 && seconds < 2 * units[unit].seconds)
		unit++;
	snprintf(buf, AMOUNT_MAX, "%" PRId64 " %s", seconds / units[unit].seconds, units[unit].name);
	return buf;
}
