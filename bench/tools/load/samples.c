/* SPDX-License-Identifier: BSD-3-Clause */
/* samples.c - collects durations and computes their quantiles */
#include "samples.h"

#include <err.h>
#include <stdlib.h>

void samples_add(struct samples *samples, int64_t ns)
{
	if (samples->count == samples->room) {
		samples->room = samples->room ? samples->room * 2 : 4096;
		samples->us = realloc(samples->us, samples->room * sizeof(*samples->us));
		if (!samples->us)
			errx(1, "no memory");
	}
	samples->us[samples->count++] = ns / 1000 < UINT32_MAX ? (uint32_t)(ns / 1000) : UINT32_MAX;
}

static int compare(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

/* The sample below or at which @permille of all lie. */
static uint32_t quantile(const struct samples *samples, size_t permille)
{
	size_t place = (samples->count * permille + 999) / 1000;

	return samples->us[place ? place - 1 : 0];
}

void samples_print(struct samples *samples, FILE *out)
{
	fprintf(out, "{\"count\": %zu", samples->count);
	if (samples->count) {
		qsort(samples->us, samples->count, sizeof(*samples->us), compare);
		fprintf(out,
			", \"p50\": %u, \"p90\": %u, \"p99\": %u, \"p999\": %u, \"max\": %u, "
			"\"cdf\": [",
			quantile(samples, 500), quantile(samples, 900), quantile(samples, 990),
			quantile(samples, 999), samples->us[samples->count - 1]);
		for (size_t percent = 0; percent <= 100; percent++)
			fprintf(out, "%s%u", percent ? ", " : "", quantile(samples, percent * 10));
		fputc(']', out);
	}
	fputc('}', out);
}
