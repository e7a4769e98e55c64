/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - the facts that "convertize check" finds, as lines or as one JSON object
 *
 * A fact is one line: a finding, and the remedy if it is a fault. For scripts it has a name, which never changes, a status,
 * and a value. A remedy may consist of commands, stored word by word: the doctor runs them without a shell, and quotes them where
 * it prints them.
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
	FACT_WARN, /* conversions work, but worse than they could */
	FACT_FAIL, /* no connection is converted, or none of this program */
	FACT_STATUS_COUNT
};

/* The machine on which root has to run a command. */
enum command_place { COMMAND_HERE, COMMAND_CONVERTER };

struct fact;

struct report {
	FILE *out;
	unsigned int width; /* of the terminal that @out writes to; 0: no terminal, so each fact is one line */
	bool json;
	bool quiet;    /* print warnings and failures only */
	bool commands; /* add each fact's commands to the JSON object */
	enum fact_status worst;
	struct fact *first, **end, *unwritten;
	char *ran; /* JSON: the commands that the doctor has run; NULL: none */
};

/* @out: the stream to write the report to */
void report_init(struct report *report, FILE *out, bool json, bool quiet);
void report_fini(struct report *report);

/*
 * report_fact() - add a fact
 * @name: static, such as "kernel.mptcp"
 * @about: the subject, if there are several, such as a converter's address; copied; NULL: there is only one
 * The report owns the result. The process ends if memory runs out, here and below.
 */
struct fact *report_fact(struct report *report, enum fact_status status, const char *name,
			 const char *about, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Likewise, without a subject. */
#define report_plain(report, status, name, ...) report_fact(report, status, name, NULL, __VA_ARGS__)

/* Sets the remedy of a fact, and replaces the one before. */
void fact_remedy(struct fact *fact, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * fact_command() - add a command that cures the fault, to run after those added before
 * @...: its words; copied; leaves out empty ones
 * Without a fact_remedy() the commands are the remedy.
 */
#define fact_command(fact, place, ...) fact_add_command(fact, place, __VA_ARGS__, (char *)NULL)
void fact_add_command(struct fact *fact, enum command_place place, ...) __attribute__((sentinel));

/* Set the fact's value for scripts. The caller calls one of these, once. */
void fact_value_bool(struct fact *fact, bool value);
void fact_value_number(struct fact *fact, double value);
void fact_value_text(struct fact *fact, const char *value);
void fact_value_bytes(struct fact *fact, const uint8_t *values, size_t count);

/* Writes the lines of the facts added since the last call. Writes nothing if @report is JSON. */
void report_flush(struct report *report);

/*
 * report_commands() - visit the commands of the facts with FACT_WARN and FACT_FAIL, each command once
 * @each: gets the words, ending with NULL, and the fact's @about, which may be NULL; NULL: only count them
 * Returns the number of commands.
 */
typedef void report_on_command(char *const words[], const char *about, void *arg);
size_t report_commands(const struct report *report, enum command_place place,
		       report_on_command *each, void *arg);

/* Writes the words of a command, quoted for a shell where needed. */
void report_write_command(FILE *out, char *const words[]);

/* Notes a command that the doctor ran before it found the facts of @report, for the JSON object. */
void report_ran(struct report *report, char *const words[], int status);

/* Writes the remaining facts and the result. Returns false if writing failed. */
bool report_finish(struct report *report);

#endif
