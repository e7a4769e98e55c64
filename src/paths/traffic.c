/* SPDX-License-Identifier: BSD-3-Clause */
/* traffic.c - the bytes of each network by date, from the devices' counters; the text of the file that keeps them; quotas (no I/O) */
#include "config.h"

#include "paths/traffic.h"

#include "common/problems.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIRST_YEAR 2020 /* a clock with an earlier one isn't set yet */

/* --- counting --- */

unsigned int traffic_today(void)
{
	time_t now = time(NULL);
	struct tm tm;

	if (!localtime_r(&now, &tm))
		return 0;
	return (unsigned int)(tm.tm_year + 1900) * 10000 + (unsigned int)(tm.tm_mon + 1) * 100 + (unsigned int)tm.tm_mday;
}

static struct traffic_counter *counter_of(struct traffic *traffic, const char *device)
{
	for (size_t i = 0; i < traffic->counter_count; i++)
		if (strcmp(traffic->counters[i].device, device) == 0)
			return &traffic->counters[i];
	return NULL;
}

/* Forgets the months before the last one, and the oldest record if there is still no room. */
static void make_room(struct traffic *traffic, unsigned int date)
{
	const unsigned int month = date / 100, last = month % 100 == 1 ? month - 100 + 11 : month - 1;
	size_t gone = 0;

	while (gone < traffic->record_count && traffic->records[gone].date / 100 < last)
		gone++;
	if (!gone && traffic->record_count == TRAFFIC_RECORDS_MAX)
		gone = 1;
	traffic->record_count -= gone;
	memmove(traffic->records, traffic->records + gone, traffic->record_count * sizeof(traffic->records[0]));
}

static struct traffic_record *record_of(struct traffic *traffic, const char *device, unsigned int date)
{
	struct traffic_record *record;
	size_t at;

	for (at = traffic->record_count; at > 0 && traffic->records[at - 1].date >= date; at--)
		if (traffic->records[at - 1].date == date && strcmp(traffic->records[at - 1].device, device) == 0)
			return &traffic->records[at - 1];
	make_room(traffic, date);
	for (at = traffic->record_count; at > 0 && traffic->records[at - 1].date > date; at--)
		traffic->records[at] = traffic->records[at - 1];
	record = &traffic->records[at];
	traffic->record_count++;
	*record = (struct traffic_record){ .date = date };
	strcpy(record->device, device);
	return record;
}

static void count_link(struct traffic *traffic, const struct host_link *link, bool first, bool same_boot, unsigned int date)
{
	struct traffic_counter *counter = counter_of(traffic, link->name), before = { .received = link->received, .sent = link->sent };
	struct traffic_record *record;

	if (counter && same_boot && counter->index == link->index && counter->received <= link->received && counter->sent <= link->sent)
		before = *counter;
	else if (!first && (counter || !same_boot || link->index > traffic->last_index))
		before = (struct traffic_counter){ .received = 0 }; /* the device is new, or its counters began anew */
	if (!counter && traffic->counter_count < TRAFFIC_DEVICES_MAX)
		counter = &traffic->counters[traffic->counter_count++];
	if (!counter)
		return;
	*counter = (struct traffic_counter){ .index = link->index, .received = link->received, .sent = link->sent };
	strcpy(counter->device, link->name);
	if (link->received == before.received && link->sent == before.sent)
		return;
	record = record_of(traffic, link->name, date);
	record->received += link->received - before.received;
	record->sent += link->sent - before.sent;
}

static bool is_chosen(const struct traffic *traffic, const struct traffic_choice *choice, const char *device)
{
	for (size_t i = 0; i < choice->network_count; i++)
		if (choice->networks[i].has_route && strcmp(choice->networks[i].link.name, device) == 0)
			return true;
	for (size_t i = 0; choice->quotas && i < choice->quotas->count; i++)
		if (strcmp(choice->quotas->list[i].device, device) == 0)
			return true;
	for (size_t i = traffic->record_count; i-- > 0;)
		if (strcmp(traffic->records[i].device, device) == 0)
			return true;
	return false;
}

static bool is_there(const struct host_link *links, size_t count, const char *device)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(links[i].name, device) == 0)
			return true;
	return false;
}

void traffic_count(struct traffic *traffic, const struct traffic_choice *choice, const char *boot, const struct host_link *links, size_t count,
		   unsigned int date)
{
	const bool first = !*traffic->boot, same = strcmp(traffic->boot, boot) == 0;
	unsigned int last = 0;

	if (date < FIRST_YEAR * 10000 && traffic->record_count)
		date = traffic->records[traffic->record_count - 1].date;
	for (size_t i = traffic->counter_count; i-- > 0;)
		if (!is_there(links, count, traffic->counters[i].device))
			traffic->counters[i] = traffic->counters[--traffic->counter_count];
	for (size_t i = 0; i < count; i++) {
		if (!links[i].loopback && is_chosen(traffic, choice, links[i].name))
			count_link(traffic, &links[i], first, same, date);
		last = links[i].index > last ? links[i].index : last;
	}
	if (!same || last > traffic->last_index)
		traffic->last_index = last;
	snprintf(traffic->boot, sizeof(traffic->boot), "%s", boot);
}

void traffic_sum(const struct traffic *traffic, const char *device, unsigned int first, unsigned int last, uint64_t *received, uint64_t *sent)
{
	*received = *sent = 0;
	for (size_t i = 0; i < traffic->record_count; i++) {
		const struct traffic_record *record = &traffic->records[i];

		if (record->date < first || record->date > last || strcmp(record->device, device) != 0)
			continue;
		*received += record->received;
		*sent += record->sent;
	}
}

void traffic_add_outlived(struct traffic *traffic, size_t count, unsigned int date)
{
	traffic->outlived = traffic_outlived(traffic, date) + count;
	traffic->outlived_date = date;
}

uint64_t traffic_outlived(const struct traffic *traffic, unsigned int date)
{
	return traffic->outlived_date == date ? traffic->outlived : 0;
}

/* --- the text --- */

static void parse_line(void *arg, const char *line)
{
	struct traffic *out = arg;
	struct traffic_counter counter = { .index = 0 };
	struct traffic_record record = { .date = 0 }, *known;

	if (sscanf(line, "boot %39s %u", out->boot, &out->last_index) == 2 ||
	    sscanf(line, "outlived %u %" SCNu64, &out->outlived_date, &out->outlived) == 2)
		return;
	if (sscanf(line, "counter %15s %u %" SCNu64 " %" SCNu64, counter.device, &counter.index, &counter.received, &counter.sent) == 4 &&
	    out->counter_count < TRAFFIC_DEVICES_MAX)
		out->counters[out->counter_count++] = counter;
	else if (sscanf(line, "day %u %15s %" SCNu64 " %" SCNu64, &record.date, record.device, &record.received, &record.sent) == 4) {
		known = record_of(out, record.device, record.date);
		known->received += record.received;
		known->sent += record.sent;
	}
}

void traffic_parse(struct traffic *out, char *text)
{
	memset(out, 0, sizeof(*out));
	paths_each_line(text, parse_line, out);
}

ssize_t traffic_format(const struct traffic *traffic, char *out, size_t size)
{
	FILE *stream = fmemopen(out, size, "w");
	long len;

	if (!stream)
		return -ENOSPC;
	fprintf(stream, "# bytes of each network by day: received, sent; and the counters of the last look\nboot %s %u\n", traffic->boot,
		traffic->last_index);
	for (size_t i = 0; i < traffic->counter_count; i++)
		fprintf(stream, "counter %s %u %" PRIu64 " %" PRIu64 "\n", traffic->counters[i].device, traffic->counters[i].index,
			traffic->counters[i].received, traffic->counters[i].sent);
	for (size_t i = 0; i < traffic->record_count; i++)
		fprintf(stream, "day %u %s %" PRIu64 " %" PRIu64 "\n", traffic->records[i].date, traffic->records[i].device,
			traffic->records[i].received, traffic->records[i].sent);
	if (traffic->outlived_date)
		fprintf(stream, "outlived %u %" PRIu64 "\n", traffic->outlived_date, traffic->outlived);
	len = fflush(stream) == 0 ? ftell(stream) : -1;
	fclose(stream);
	return len >= 0 && (size_t)len < size - 1 ? (ssize_t)len : -ENOSPC;
}

/* --- quotas: reading them, their use, their state --- */

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
