/* SPDX-License-Identifier: BSD-3-Clause */
/* notices.h - the latest warnings and errors, kept for the status page; any thread may call every function here */
#ifndef CONVERTD_NOTICES_H
#define CONVERTD_NOTICES_H

#include <stddef.h>
#include <time.h>

#define NOTICES_MAX 16
#define NOTICE_TEXT_MAX 512 /* bytes with the NUL; longer texts are cut */

struct notice {
	char text[NOTICE_TEXT_MAX];
	time_t last;        /* when the message was logged last */
	unsigned long told; /* how many times it was logged */
};

/* Keeps @text, in place of the oldest notice if all places are taken. A text that is kept already is counted again. */
void notices_add(const char *text);

/* Forgets all notices. It is called when a new configuration is read: what is still wrong is logged again then. */
void notices_forget(void);

/* Copies the notices, the latest first. Returns their number. */
size_t notices_copy(struct notice notices[static NOTICES_MAX]);

#endif
