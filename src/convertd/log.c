/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c - what convertd says on standard error */
#include "config.h"

#include "convertd/log.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_LEN 8192

static const char *const level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARNING] = "warning",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};
static_assert(sizeof(level_names) / sizeof(level_names[0]) == LOG_LEVEL_COUNT,
	      "a name for each level");

static _Atomic(enum log_level) max_level = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&max_level, level, memory_order_relaxed);
}

int log_level_parse(const char *name)
{
	for (int i = 0; i < LOG_LEVEL_COUNT; i++)
		if (strcmp(name, level_names[i]) == 0)
			return i;
	return -1;
}

bool log_enabled(enum log_level level)
{
	return level <= atomic_load_explicit(&max_level, memory_order_relaxed);
}

void log_printf(enum log_level level, const char *format, ...)
{
	char line[LINE_MAX_LEN];
	int saved_errno = errno;
	size_t len;
	va_list args;
	int n;

	if (!log_enabled(level))
		return;
	n = snprintf(line, sizeof(line), "convertd: %s: ", level_names[level]);
	va_start(args, format);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n, format, args);
	va_end(args);
	len = n < LINE_MAX_LEN - 1 ? (size_t)n : LINE_MAX_LEN - 2;
	line[len++] = '\n';
	/* A log that can't be written must not stop the sessions. */
	if (write(STDERR_FILENO, line, len) < 0)
		(void)0;
	errno = saved_errno;
}

uint64_t log_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool log_limit_pass(struct log_limit *limit, unsigned *suppressed)
{
	uint64_t now = log_now_ms(), last = atomic_load(&limit->last_ms);

	/* Of several threads that come at once, the one that sets the time prints. */
	if ((last && now < last + LOG_LIMIT_MS) ||
	    !atomic_compare_exchange_strong(&limit->last_ms, &last, now)) {
		atomic_fetch_add(&limit->suppressed, 1);
		return false;
	}
	*suppressed = atomic_exchange(&limit->suppressed, 0);
	return true;
}
