/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - the facts that "convertize check" finds, as lines or as one JSON object
 *
 * A fact is one line: what is so, and if it should be otherwise, what to do. For scripts it has
 * a name, which never changes, a status, and a value. What to do may be commands, word by word: then
 * they can be run as they are, and as text they are quoted for a shell.
 */
#ifndef CONVERTIZE_REPORT_H
#define CONVERTIZE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum fact_status {
	FACT_OK,
	FACT_NOTE, /* good to know */
	FACT_WARN, /* conversions work worse than they could */
	FACT_FAIL, /* there are none, or not for this program */
	FACT_STATUS_COUNT
};

/* Whose root has to run a command. */
enum command_place { COMMAND_HERE, COMMAND_CONVERTER };

struct fact;

struct report {
	FILE *out;
	bool json;
	bool commands; /* each fact of the JSON object has its commands */
	enum fact_status worst;
	struct fact *first, **end, *unwritten;
	char *ran; /* JSON, what was run; NULL: nothing */
};

/* @out: where it is written to. */
void report_init(struct report *report, FILE *out, bool json);
void report_fini(struct report *report);

/*
 * report_fact() - add a fact
 * @name: static, such as "kernel.mptcp"
 * @about: which of several, such as a converter's address; copied; NULL: there is one only
 * The result is the report's. Out of memory ends the process, here and below.
 */
struct fact *report_fact(struct report *report, enum fact_status status, const char *name,
			 const char *about, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* What to do about it; the last one stays. */
void fact_remedy(struct fact *fact, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * fact_command() - a command that is to be run about it, after those that were added before
 * @...: its words, ending with NULL; copied
 * Without a fact_remedy() the commands are the remedy.
 */
void fact_command(struct fact *fact, enum command_place place, ...) __attribute__((sentinel));

/* Its value for scripts; one of these, once. */
void fact_value_bool(struct fact *fact, bool value);
void fact_value_number(struct fact *fact, double value);
void fact_value_text(struct fact *fact, const char *value);
void fact_value_bytes(struct fact *fact, const uint8_t *values, size_t count);

/* Writes the lines of the facts that were added since the last time; nothing if @report is JSON. */
void report_flush(struct report *report);

/*
 * report_commands() - what is to be run about what isn't as it should be, each command once
 * @each: called with the words, ending with NULL; @about: which of several the fact is about, or NULL
 * Returns how many there are.
 */
typedef void report_on_command(char *const words[], const char *about, void *arg);
size_t report_commands(const struct report *report, enum command_place place,
		       report_on_command *each, void *arg);

/* Writes the words for a shell, quoted where they have to be. */
void report_write_command(FILE *out, char *const words[]);

/* What was run before the facts of @report were found out: a member of the JSON object. */
void report_ran(struct report *report, char *const words[], int status);

/* Writes all that is left to be written, and the result. Returns false if that failed. */
bool report_finish(struct report *report);

#endif
