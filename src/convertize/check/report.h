/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - the facts that "convertize check" finds, as lines or as one JSON object
 *
 * A fact is one line: a finding, and the remedy if it is a fault. For scripts it has a name, which never changes,
 * a status, and a value. A remedy may be commands, word by word: these can be run without a shell, and are quoted for one
 * where they are printed.
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
	FACT_WARN, /* conversions work, and worse than they could */
	FACT_FAIL, /* nothing is converted, or nothing of this program */
	FACT_STATUS_COUNT
};

/* The machine on which root has to run a command. */
enum command_place { COMMAND_HERE, COMMAND_CONVERTER };

struct fact;

struct report {
	FILE *out;
	bool json;
	bool quiet;    /* the lines have warnings and failures only */
	bool commands; /* each fact of the JSON object has its commands */
	enum fact_status worst;
	struct fact *first, **end, *unwritten;
	char *ran; /* JSON: the commands that were run; NULL: none */
};

/* @out: the stream that the report is written to. */
void report_init(struct report *report, FILE *out, bool json, bool quiet);
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

/* Sets the remedy of a fact, in place of the one before. */
void fact_remedy(struct fact *fact, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * fact_command() - a command that is to be run about it, after those that were added before
 * @...: its words, ending with NULL; copied
 * Without a fact_remedy() the commands are the remedy.
 */
void fact_command(struct fact *fact, enum command_place place, ...) __attribute__((sentinel));

/* Set the fact's value for scripts; one of these is called, once. */
void fact_value_bool(struct fact *fact, bool value);
void fact_value_number(struct fact *fact, double value);
void fact_value_text(struct fact *fact, const char *value);
void fact_value_bytes(struct fact *fact, const uint8_t *values, size_t count);

/* Writes the lines of the facts that were added since the last time; nothing if @report is JSON. */
void report_flush(struct report *report);

/*
 * report_commands() - the commands of the facts with FACT_WARN and FACT_FAIL, each command once
 * @each: called with the words, ending with NULL; @about: which of several the fact is about, or NULL
 * Returns how many there are.
 */
typedef void report_on_command(char *const words[], const char *about, void *arg);
size_t report_commands(const struct report *report, enum command_place place,
		       report_on_command *each, void *arg);

/* Writes the words of a command, quoted for a shell where that is needed. */
void report_write_command(FILE *out, char *const words[]);

/* Notes a command that was run before the facts of @report were found, for the JSON object. */
void report_ran(struct report *report, char *const words[], int status);

/* Writes the facts that weren't written yet, and the result. Returns false if writing failed. */
bool report_finish(struct report *report);

#endif
