/* SPDX-License-Identifier: BSD-3-Clause */
/* quota.c - quotas of networks: how they are written, what is used of them, and what follows (no I/O) */
#include "config.h"

#include "paths/traffic.h"

#include "common/problems.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEAR_PERCENT 80
#define WORD_MAX 64

static const char *const period_names[] = { [QUOTA_DAY] = "day", [QUOTA_MONTH] = "month" };
static_assert(sizeof(period_names) / sizeof(period_names[0]) == QUOTA_PERIOD_COUNT, "a name for each period");

/* Reads a number with a unit, such as 1.5G. Returns the rest of the text, or NULL. */
static const char *read_bytes(const char *text, uint64_t *out)
{
	static const char units[] = "kMGT";
	char *end;
	double value = *text >= '0' && *text <= '9' ? strtod(text, &end) : -1, factor = 1;
	const char *unit;

	if (value < 0)
		return NULL;
	unit = *end ? strchr(units, *end) : NULL;
	for (const char *each = units; unit && each <= unit; each++)
		factor *= 1000;
	value *= factor;
	if (value < 1 || value > 1e18)
		return NULL;
	*out = (uint64_t)value;
	return end + (unit != NULL);
}

/* Reads one element. Returns NULL, or words about the error that complete "X …". */
static const char *read_one(struct quota *out, const char *text)
{
	size_t len = strcspn(text, "=");

	if (!len || !text[len] || len >= sizeof(out->device) || memchr(text, '/', len))
		return "doesn't begin with a device and =; write it as in wwan0=5G/month";
	memcpy(out->device, text, len);
	text = read_bytes(text + len + 1, &out->bytes);
	if (text && *text == ':')
		text = read_bytes(text + 1, &out->limit);
	if (!text)
		return "has no number of bytes; write it as in wwan0=5G/month, or with a limit wwan0=5G:6G/month";
	for (int i = 0; i < QUOTA_PERIOD_COUNT; i++)
		if (*text == '/' && strcmp(text + 1, period_names[i]) == 0) {
			out->period = (enum quota_period)i;
			return out->limit && out->limit < out->bytes ? "has a limit below the quota" : NULL;
		}
	return "doesn't end with /day or /month";
}

bool quotas_read(struct quotas *out, const char *text, char problem[static QUOTA_PROBLEM_MAX])
{
	char word[WORD_MAX], quote[PROBLEM_QUOTE_MAX];
	const char *wrong = NULL;
	size_t len;

	out->count = 0;
	for (; text && *(text += strspn(text, ", \t")) && !wrong; text += len) {
		struct quota *quota = &out->list[out->count];

		len = strcspn(text, ", \t");
		snprintf(word, sizeof(word), "%.*s", (int)(len < WORD_MAX ? len : WORD_MAX - 1), text);
		if (out->count == QUOTAS_MAX) {
			wrong = "is one quota too many";
			break;
		}
		*quota = (struct quota){ .bytes = 0 };
		wrong = read_one(quota, word);
		for (size_t i = 0; i < out->count && !wrong; i++)
			if (strcmp(out->list[i].device, quota->device) == 0 && out->list[i].period == quota->period)
				wrong = "is the second one for this device and period";
		out->count++;
	}
	if (wrong)
		snprintf(problem, QUOTA_PROBLEM_MAX, "quota: %s %s", problems_quote(word, quote), wrong);
	return !wrong;
}

uint64_t quota_used(const struct quota *quota, const struct traffic *traffic, unsigned int today)
{
	uint64_t received, sent;

	traffic_sum(traffic, quota->device, quota->period == QUOTA_DAY ? today : today / 100 * 100, today, &received, &sent);
	return received + sent;
}

enum quota_state quota_judge(const struct quota *quota, uint64_t used)
{
	if (quota->limit && used >= quota->limit)
		return QUOTA_NEVER;
	if (used >= quota->bytes)
		return QUOTA_BACKUP;
	return used >= quota->bytes / 100 * NEAR_PERCENT ? QUOTA_NEAR : QUOTA_FREE;
}

#define SIZE_TEXT_MAX 24

static void format_bytes(uint64_t bytes, char out[static SIZE_TEXT_MAX])
{
	snprintf(out, SIZE_TEXT_MAX, bytes < 1000000000 ? "%.1f MB" : "%.2f GB", (double)bytes / (bytes < 1000000000 ? 1e6 : 1e9));
}

const char *quota_text(const struct quota *quota, uint64_t used, char buf[static QUOTA_TEXT_MAX])
{
	static const char *const texts[] = {
		[QUOTA_FREE] = "",
		[QUOTA_NEAR] = ", nearly used up",
		[QUOTA_BACKUP] = ", used up: only for backup until the period ends",
		[QUOTA_NEVER] = ", its limit is reached: not used until the period ends",
	};
	static_assert(sizeof(texts) / sizeof(texts[0]) == QUOTA_STATE_COUNT, "a text for each state");
	char part[SIZE_TEXT_MAX], whole[SIZE_TEXT_MAX];

	format_bytes(used, part);
	format_bytes(quota->bytes, whole);
	snprintf(buf, QUOTA_TEXT_MAX, "%s of %s %s%s", part, whole, quota->period == QUOTA_DAY ? "today" : "this month",
		 texts[quota_judge(quota, used)]);
	return buf;
}

const char *quotas_devices(const struct quotas *quotas, const struct traffic *traffic, unsigned int today, enum quota_state state,
			   char buf[static QUOTA_LIST_MAX])
{
	size_t len = 0;

	for (size_t i = 0; i < quotas->count; i++)
		if (quota_judge(&quotas->list[i], quota_used(&quotas->list[i], traffic, today)) == state)
			len += (size_t)snprintf(buf + len, QUOTA_LIST_MAX - len, "%s%s", len ? "," : "", quotas->list[i].device);
	return len ? buf : NULL;
}
