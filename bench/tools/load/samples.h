/* SPDX-License-Identifier: BSD-3-Clause */
/* samples.h - collects durations and computes their quantiles */
#ifndef LOAD_SAMPLES_H
#define LOAD_SAMPLES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct samples {
	uint32_t *us;
	size_t count, room;
};

/* Adds a duration of @ns. */
void samples_add(struct samples *samples, int64_t ns);

/* Writes {"count": …, "p50": …, …, "cdf": […]} in µs: cdf has the quantiles 0, 0.01 … 1. Sorts
 * them. */
void samples_print(struct samples *samples, FILE *out);

#endif
