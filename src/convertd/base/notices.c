/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notices.c - the latest warnings and errors, kept for the status page
 *
 * The page shows what is wrong now to those who don't have the log. Equal texts share one entry with a count, so
 * that one warning that comes each second doesn't displace the others; the entries stand in the order of their last
 * occurrence, and the last of NOTICES_MAX gives way to a new one. A reload empties the table.
 */
#include "config.h"

#include "convertd/base/notices.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct notice kept[NOTICES_MAX]; /* the latest first */
static size_t kept_count;

/* Finds the index of @text, or makes that of a free or the oldest entry empty for it. The caller holds the lock. */
static size_t find_place(const char *text)
{
	for (size_t i = 0; i < kept_count; i++)
		if (strncmp(kept[i].text, text, NOTICE_TEXT_MAX - 1) == 0)
			return i;
	if (kept_count < NOTICES_MAX)
		kept_count++;
	memset(&kept[kept_count - 1], 0, sizeof(kept[0]));
	return kept_count - 1;
}

void notices_add(const char *text)
{
	struct notice notice;
	size_t place;

	pthread_mutex_lock(&lock);
	place = find_place(text);
	notice = kept[place];
	snprintf(notice.text, sizeof(notice.text), "%s", text);
	notice.last = time(NULL);
	notice.told++;
	memmove(&kept[1], &kept[0], place * sizeof(kept[0]));
	kept[0] = notice;
	pthread_mutex_unlock(&lock);
}

void notices_forget(void)
{
	pthread_mutex_lock(&lock);
	kept_count = 0;
	pthread_mutex_unlock(&lock);
}

size_t notices_copy(struct notice notices[static NOTICES_MAX])
{
	size_t count;

	pthread_mutex_lock(&lock);
	count = kept_count;
	memcpy(notices, kept, count * sizeof(kept[0]));
	pthread_mutex_unlock(&lock);
	return count;
}
