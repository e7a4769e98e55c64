/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h - what convertd says on standard error; all of it may be called by any thread */
#ifndef CONVERTD_LOG_H
#define CONVERTD_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum log_level {
	LOG_LEVEL_ERROR,   /* convertd stops, or can't do what it was asked */
	LOG_LEVEL_WARNING, /* it works, but worse than it could: names the remedy */
	LOG_LEVEL_INFO,    /* one line for the start, one for each session */
	LOG_LEVEL_DEBUG,   /* every change of a session's state */
	LOG_LEVEL_COUNT
};

enum log_format {
	LOG_FORMAT_TEXT, /* "convertd: LEVEL: text" */
	LOG_FORMAT_JSON, /* an object a line: time, level, message, and what else is known */
	LOG_FORMAT_COUNT
};

/* For what may happen thousands of times a second: one line in LOG_LIMIT_MS. */
#define LOG_LIMIT_MS 10000

/* Zero at first: nothing was printed yet. */
struct log_limit {
	_Atomic uint64_t next_us;   /* a line then would find the whole burst again */
	_Atomic uint64_t left_out; /* lines since somebody told of them */
};

/* Nothing above @level is printed. */
void log_set_level(enum log_level level);
void log_set_format(enum log_format format);

/*
 * log_start() - look where standard error goes
 * Where it is the journal's own socket (JOURNAL_STREAM, systemd.exec(5)) each line has its level
 * in front as the journal wants it, "<4>" for a warning.
 */
void log_start(void);

/* The level or format of that name, or -1. */
int log_level_parse(const char *name);
int log_format_parse(const char *name);

/* Would a line of @level be printed? For lines that cost something to make. */
bool log_enabled(enum log_level level);

/*
 * log_printf() - print a message as one line, with one write
 * Text has no time: the service manager that collects the lines stamps them. errno is left as it
 * was. Warnings and errors are kept for the status page, too (notices.h).
 */
void log_printf(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * log_fields() - print a message that has more to tell to programs
 * @text: what people read
 * @write: called where the format is JSON, to write what stands behind the message in the object:
 *         a comma, a name, a colon and a value, and so on
 */
void log_fields(enum log_level level, const char *text,
		void (*write)(FILE *out, const void *arg), const void *arg);

/*
 * log_limit_pass() - may this line be printed now?
 * @suppressed: set on true: lines kept back since the last one that was printed
 */
bool log_limit_pass(struct log_limit *limit, unsigned *suppressed);

/*
 * log_limit_take() - the same for @burst lines at once and one more each @interval_us
 * A line that may not be printed is counted in @limit->left_out.
 */
bool log_limit_take(struct log_limit *limit, uint64_t interval_us, unsigned burst, uint64_t now_us);

#define log_error(...) log_printf(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_printf(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_printf(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_printf(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
