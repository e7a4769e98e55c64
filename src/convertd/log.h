/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h - what convertd says on standard error; all threads may use it at once */
#ifndef CONVERTD_LOG_H
#define CONVERTD_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level {
	LOG_LEVEL_ERROR,   /* convertd stops, or can't do what it was asked */
	LOG_LEVEL_WARNING, /* it works, but worse than it could: names the remedy */
	LOG_LEVEL_INFO,    /* one line for the start, one for each session */
	LOG_LEVEL_DEBUG,   /* every change of a session's state */
	LOG_LEVEL_COUNT
};

/* For what may happen thousands of times a second: one line in LOG_LIMIT_MS. */
#define LOG_LIMIT_MS 10000

struct log_limit {
	_Atomic uint64_t last_ms;
	atomic_uint suppressed; /* lines kept back since then */
};

/* Nothing above @level is printed. */
void log_set_level(enum log_level level);

/* The level of that name, or -1. */
int log_level_parse(const char *name);

/* Would a line of @level be printed? For lines that cost something to make. */
bool log_enabled(enum log_level level);

/*
 * log_printf() - print "convertd: LEVEL: text" as one line, with one write
 * No time is printed: the service manager that collects the lines stamps them.
 * errno is left as it was.
 */
void log_printf(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * log_limit_pass() - may this line be printed now?
 * @suppressed: set on true: lines kept back since the last one that was printed
 */
bool log_limit_pass(struct log_limit *limit, unsigned *suppressed);

/* Milliseconds since some point in the past; never goes back. */
uint64_t log_now_ms(void);

#define log_error(...) log_printf(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_printf(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_printf(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_printf(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
