/* SPDX-License-Identifier: BSD-3-Clause */
/* session_count.c - what a session counts as: for the limits, and in the metrics */
#include "config.h"

#include "convertd/session/session_count.h"

#include "convertd/observe/metrics.h"

void session_count_pending(struct session *s, enum limits_class class, uint64_t by)
{
	if (class == LIMITS_PENDING || class == LIMITS_WAITING)
		metrics_add(s->pool->context.metrics, METRIC_PENDING, by);
}

void session_count_class(struct session *s, enum limits_class before)
{
	enum limits_class class = (enum limits_class)s->member.class;

	if (class == before)
		return;
	session_count_pending(s, before, (uint64_t)-1);
	session_count_pending(s, class, 1);
}

void session_set_class(struct session *s, enum limits_class class)
{
	enum limits_class before = (enum limits_class)s->member.class;

	if (class == before)
		return;
	limits_move(s->pool->context.admission.limits, &s->member, class);
	session_count_class(s, before);
}
