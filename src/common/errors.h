/* SPDX-License-Identifier: BSD-3-Clause */
/* errors.h - an errno in words, from any thread or signal handler */
#ifndef COMMON_ERRORS_H
#define COMMON_ERRORS_H

#include <string.h>

/*
 * error_text() - a static text in English for @error, positive
 * glibc's strerror(3) may allocate, and translates; musl's only looks into a table.
 */
static inline const char *error_text(int error)
{
#ifdef HAVE_STRERRORDESC_NP
	const char *text = strerrordesc_np(error);

	return text ? text : "unknown error";
#else
	return strerror(error);
#endif
}

#endif
