/* SPDX-License-Identifier: BSD-3-Clause */
/* deadlines.c - how long pending conns wait for their converters (CONVERT_TIMEOUT) */
#include "config.h"

#include "shim/wait/deadlines.h"

#include "common/clock.h"

/* No deadline is earlier. It may belong to a conn that has been settled since, until a wait ends at it and calls deadlines_renew(). */
static _Atomic int64_t first;

static void first_lower(int64_t at)
{
	int64_t now = atomic_load(&first);

	while ((now == 0 || at < now) && !atomic_compare_exchange_weak(&first, &now, at))
		;
}

void deadlines_set(struct conn *conn, int64_t at)
{
	atomic_store(&conn->deadline, at);
	if (at)
		first_lower(at);
}

bool deadlines_is_over(const struct conn *conn)
{
	int64_t at = atomic_load(&conn->deadline);

	return at && clock_ns() >= at;
}

int64_t deadlines_first(void)
{
	return atomic_load(&first);
}

static bool lower_visit(struct conn *conn, void *arg)
{
	int64_t at = atomic_load(&conn->deadline);

	if (at > *(const int64_t *)arg && conn_is_pending(conn))
		first_lower(at);
	return true;
}

void deadlines_renew(void)
{
	int64_t now = clock_ns();

	atomic_store(&first, 0);
	conn_each_pending(lower_visit, &now);
}
