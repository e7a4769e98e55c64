/* SPDX-License-Identifier: BSD-3-Clause */
/* json.h - values of JSON (RFC 8259) */
#ifndef COMMON_JSON_H
#define COMMON_JSON_H

#include <stdio.h>

/*
 * json_string() - write a string in quotes
 * Valid JSON for any @text: writes a byte that isn't UTF-8 as U+FFFD.
 */
void json_string(FILE *out, const char *text);

/* json_number() - write a number with three decimals, and a point in any locale */
void json_number(FILE *out, double value);

#endif
