/* SPDX-License-Identifier: BSD-3-Clause */
/* notices.h - the last warnings and errors, for whoever asks how the converter is */
#ifndef CONVERTD_NOTICES_H
#define CONVERTD_NOTICES_H

#include <stddef.h>
#include <time.h>

#define NOTICES_MAX 16
#define NOTICE_TEXT_MAX 512 /* bytes with the NUL; longer ones are cut */

struct notice {
	char text[NOTICE_TEXT_MAX];
	time_t last;        /* when it was told last */
	unsigned long told; /* how often */
};

/* Keeps it, in place of the one that is the longest ago. One that is there is counted again. */
void notices_add(const char *text);

/* A new configuration is read: what is still wrong will be told again. */
void notices_forget(void);

/* Copies them, the latest first. Returns how many. */
size_t notices_copy(struct notice notices[static NOTICES_MAX]);

#endif
