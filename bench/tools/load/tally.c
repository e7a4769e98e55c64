/* SPDX-License-Identifier: BSD-3-Clause */
/* tally.c - what has come of the load so far, and the JSON object that tells it */
#include "config.h"

#include "tally.h"

#include "loop.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

#define TIMELINE_MAX 100000

void tally_init(struct tally *tally, int64_t timeline_ns)
{
	tally->timeline_ns = timeline_ns;
	if (!timeline_ns)
		return;
	tally->timeline = calloc(TIMELINE_MAX, sizeof(*tally->timeline));
	if (!tally->timeline)
		errx(1, "no memory");
}

void tally_begin(struct tally *tally, int64_t warmup_ns, int64_t duration_ns)
{
	tally->start = tally->last_progress = loop_now();
	tally->from = tally->start + warmup_ns;
	tally->to = duration_ns ? tally->from + duration_ns : INT64_MAX;
	tally->connections = tally->requests = tally->failed = tally->bytes = tally->bytes_all = 0;
	memset(tally->errors, 0, sizeof(tally->errors));
	tally->connected.count = tally->first_byte.count = tally->latency.count = 0;
	tally->timeline_len = 0;
	if (tally->timeline)
		memset(tally->timeline, 0, TIMELINE_MAX * sizeof(*tally->timeline));
}

bool tally_measures(const struct tally *tally, int64_t from, int64_t to)
{
	return from >= tally->from && to <= tally->to;
}

void tally_bytes(struct tally *tally, size_t bytes)
{
	int64_t now = loop_now();
	size_t place;

	tally->last_progress = now;
	tally->bytes_all += bytes;
	if (tally_measures(tally, now, now))
		tally->bytes += bytes;
	if (!tally->timeline)
		return;
	place = (size_t)((now - tally->start) / tally->timeline_ns);
	if (place >= TIMELINE_MAX)
		return;
	tally->timeline[place] += bytes;
	if (place >= tally->timeline_len)
		tally->timeline_len = place + 1;
}

void tally_failure(struct tally *tally, int error)
{
	tally->failed++;
	tally->errors[error > 0 && error < TALLY_ERRNO_MAX ? error : 0]++;
}

static void print_count(const char *name, uint64_t count)
{
	printf(", \"%s\": %llu", name, (unsigned long long)count);
}

/* "ECONNREFUSED" and the like; some C libraries have only sentences. */
static const char *errno_name(int number)
{
#ifdef HAVE_STRERRORNAME_NP
	const char *name = strerrorname_np(number);

	return name ? name : "unknown";
#else
	return strerror(number);
#endif
}

static void print_errors(const struct tally *tally)
{
	const char *separator = "";

	printf(", \"errors\": {");
	for (int i = 0; i < TALLY_ERRNO_MAX; i++) {
		if (!tally->errors[i])
			continue;
		printf("%s\"%s\": %llu", separator, i ? errno_name(i) : "other", (unsigned long long)tally->errors[i]);
		separator = ", ";
	}
	printf("}");
}

static void print_samples(const char *name, struct samples *samples)
{
	printf(", \"%s\": ", name);
	samples_print(samples, stdout);
}

static void print_timeline(const struct tally *tally)
{
	printf(", \"timeline\": [");
	for (size_t i = 0; i < tally->timeline_len; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)tally->timeline[i]);
	printf("]");
}

void tally_print(struct tally *tally, int64_t end, uint64_t opened, uint64_t unfinished)
{
	double seconds = (double)((end < tally->to ? end : tally->to) - tally->from) / 1e9;

	printf("{\"start\": %.6f, \"seconds\": %.6f, \"seconds_all\": %.6f", (double)tally->start / 1e9, seconds,
	       (double)(end - tally->start) / 1e9);
	print_count("connections", tally->connections);
	print_count("requests", tally->requests);
	print_count("failed", tally->failed);
	print_count("opened", opened);
	print_count("unfinished", unfinished);
	print_count("bytes", tally->bytes);
	print_count("bytes_all", tally->bytes_all);
	print_errors(tally);
	print_samples("connected", &tally->connected);
	print_samples("first_byte", &tally->first_byte);
	print_samples("latency", &tally->latency);
	if (tally->timeline)
		print_timeline(tally);
	printf("}\n");
	fflush(stdout);
}
