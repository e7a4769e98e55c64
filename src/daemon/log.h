/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h - the log on standard error; any thread may call every function here */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum log_level {
	LOG_LEVEL_ERROR,   /* the daemon stops, or can't do what its operator asked */
	LOG_LEVEL_WARNING, /* the daemon works, but worse than it could: the message names the remedy */
	LOG_LEVEL_INFO,    /* one line for the start, one for each session */
	LOG_LEVEL_DEBUG,   /* every change of a session's state, and more */
	LOG_LEVEL_COUNT
};

enum log_format {
	LOG_FORMAT_TEXT, /* "PROGRAM: LEVEL: text" */
	LOG_FORMAT_JSON, /* one object per line: time, level, message, and the fields of log_fields() */
};

/* The interval of log_limit_pass(), for events that may come thousands of times a second: one line per interval. */
#define LOG_LIMIT_MS 10000

/* A rate limit of one kind of line. A zeroed one is ready: nothing was printed yet. */
struct log_limit {
	_Atomic uint64_t next_us;   /* at this time the whole burst is allowed again (GCRA's theoretical arrival time) */
	_Atomic uint64_t left_out; /* lines suppressed since a line last gave their number */
};

/* Sets the level above which nothing is printed. */
void log_set_level(enum log_level level);
void log_set_format(enum log_format format);

/*
 * log_start() - set the name in front of each line, a constant, and find out where standard error goes
 * If it is the journal's own socket (JOURNAL_STREAM, systemd.exec(5)), each line begins with its level as the journal
 * wants it, "<4>" for a warning.
 */
void log_start(const char *program);

/* Tells whether a line of @level would be printed, so that costly texts are made only then. */
bool log_enabled(enum log_level level);

/*
 * log_printf() - print a message as one line, with one write
 * Lines of the text format carry no time, since the service manager that collects them adds it. errno is preserved.
 * Warnings and errors are kept for the status page, too.
 */
void log_printf(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * log_fields() - print a message with further fields for programs
 * @text: the message for people
 * @write: called in the JSON format, to write the fields that follow the message in the object: a comma, a name, a
 *   colon and a value, and so on
 */
void log_fields(enum log_level level, const char *text,
		void (*write)(FILE *out, const void *arg), const void *arg);

/*
 * log_limit_pass() - tell whether a line may be printed now: one per LOG_LIMIT_MS
 * @suppressed: set when true is returned, to the number of lines suppressed since the last one that was printed
 */
bool log_limit_pass(struct log_limit *limit, unsigned *suppressed);

/*
 * log_limit_take() - tell whether a line may be printed: a burst of @burst lines, and one more each @interval_us
 * @now_us: the time in microseconds, as clock_now_us() has it
 * If it returns false, it counts the line in @limit->left_out.
 */
bool log_limit_take(struct log_limit *limit, uint64_t interval_us, unsigned burst, uint64_t now_us);

/*
 * log_shortage() - warn if @error, the errno of a failed call, means a lack of descriptors or memory, once per LOG_LIMIT_MS
 * @what: the consequence, such as "clients have to wait"
 */
void log_shortage(int error, const char *what);

#define log_error(...) log_printf(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_printf(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_printf(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) (log_enabled(LOG_LEVEL_DEBUG) ? log_printf(LOG_LEVEL_DEBUG, __VA_ARGS__) : (void)0)

/* ----- the latest warnings and errors, kept for the status page ----- */

#define NOTICES_MAX 16
#define NOTICE_TEXT_MAX 512 /* bytes with the NUL; longer texts are cut */

struct notice {
	char text[NOTICE_TEXT_MAX];
	time_t last;        /* when the message was logged last */
	unsigned long told; /* how many times it was logged */
};

/* Keeps @text, in place of the oldest notice if all places are taken. A text that is kept already is counted again. */
void notices_add(const char *text);

/* Forgets all notices. Call it when a new configuration is read: if a problem persists, it is logged again then. */
void notices_forget(void);

/* Copies the notices, the latest first. Returns their number. */
size_t notices_copy(struct notice notices[static NOTICES_MAX]);

#endif
