/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - the facts that "convertize check" finds, as lines or as one JSON object */
#include "config.h"

#include "convertize/check/report.h"

#include "common/columns.h"
#include "common/quote.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define COMMANDS_MAX 4 /* of one fact */
#define WORDS_MAX 24
#define INDENT 6 /* columns of a status and two blanks */

struct command {
	enum command_place place;
	char *words[WORDS_MAX + 1]; /* ending with NULL */
};

struct fact {
	struct fact *next;
	enum fact_status status;
	const char *name;
	char *about, *text, *remedy; /* NULL: none; the text is always there */
	char *value;                 /* as JSON; NULL: none */
	struct command commands[COMMANDS_MAX];
	size_t command_count;
};

static const char *const status_names[] = {
	[FACT_OK] = "ok",
	[FACT_NOTE] = "note",
	[FACT_WARN] = "warn",
	[FACT_FAIL] = "fail",
};
static_assert(sizeof(status_names) / sizeof(status_names[0]) == FACT_STATUS_COUNT,
	      "a name for each status");

/* The result of the whole check, by the worst status of a fact. */
static const struct {
	const char *name, *text;
} results[] = {
	[FACT_OK] = { "ok", "connections are converted" },
	[FACT_NOTE] = { "ok", "connections are converted" },
	[FACT_WARN] = { "degraded", "connections are converted, but not as well as they could be" },
	[FACT_FAIL] = { "failed", "connections are not converted" },
};
static_assert(sizeof(results) / sizeof(results[0]) == FACT_STATUS_COUNT, "one for each status");

static void *need(void *memory)
{
	if (!memory) {
		fputs("convertize: out of memory\n", stderr);
		exit(EXIT_FAILURE);
	}
	return memory;
}

static char *format_text(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

static char *format_text(const char *format, va_list args)
{
	char *text = NULL;

	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	return need(text);
}

void report_init(struct report *report, FILE *out, bool json, bool quiet)
{
	*report = (struct report){ .out = out, .json = json, .quiet = quiet, .width = columns_of(out) };
	report->end = &report->first;
}

void report_fini(struct report *report)
{
	while (report->first) {
		struct fact *fact = report->first;

		report->first = fact->next;
		free(fact->about);
		free(fact->text);
		free(fact->remedy);
		free(fact->value);
		for (size_t i = 0; i < fact->command_count; i++)
			for (char **word = fact->commands[i].words; *word; word++)
				free(*word);
		free(fact);
	}
	free(report->ran);
}

struct fact *report_fact(struct report *report, enum fact_status status, const char *name,
			 const char *about, const char *format, ...)
{
	struct fact *fact = need(calloc(1, sizeof(*fact)));
	va_list args;

	fact->status = status;
	fact->name = name;
	fact->about = about ? need(strdup(about)) : NULL;
	va_start(args, format);
	fact->text = format_text(format, args);
	va_end(args);
	if (status > report->worst)
		report->worst = status;
	*report->end = fact;
	report->end = &fact->next;
	if (!report->unwritten)
		report->unwritten = fact;
	return fact;
}

void fact_remedy(struct fact *fact, const char *format, ...)
{
	va_list args;

	free(fact->remedy);
	va_start(args, format);
	fact->remedy = format_text(format, args);
	va_end(args);
}

/* --- commands ----------------------------------------------------------------------- */

void fact_add_command(struct fact *fact, enum command_place place, ...)
{
	struct command *command = &fact->commands[fact->command_count];
	size_t count = 0;
	const char *word;
	va_list args;

	assert(fact->command_count < COMMANDS_MAX);
	fact->command_count++;
	command->place = place;
	va_start(args, place);
	while ((word = va_arg(args, const char *))) {
		assert(count < WORDS_MAX);
		if (*word)
			command->words[count++] = need(strdup(word));
	}
	va_end(args);
}

/* A device's name may contain any characters but '/' and blanks, even those with a meaning in a shell: so this quotes. */
void report_write_command(FILE *out, char *const words[])
{
	for (size_t i = 0; words[i]; i++) {
		char *word = need(malloc(SHELL_WORD_MAX(strlen(words[i]))));

		fprintf(out, "%s%s", i ? " " : "", shell_quote(words[i], word));
		free(word);
	}
}

/* Returns the same as a text, which the caller frees. */
static char *command_text(char *const words[])
{
	char *text = NULL;
	size_t size;
	FILE *stream = need(open_memstream(&text, &size));

	report_write_command(stream, words);
	fclose(stream);
	return need(text);
}

static bool words_equal(char *const a[], char *const b[])
{
	while (*a && *b && strcmp(*a, *b) == 0) {
		a++;
		b++;
	}
	return !*a && !*b;
}

static bool needs_doing(const struct fact *fact)
{
	return fact->status == FACT_WARN || fact->status == FACT_FAIL;
}

/* Does a fact before @end have the same command? */
static bool was_before(const struct report *report, const struct fact *end,
		       const struct command *command)
{
	for (const struct fact *fact = report->first; fact != end; fact = fact->next)
		for (size_t i = 0; i < fact->command_count && needs_doing(fact); i++)
			if (fact->commands[i].place == command->place &&
			    words_equal(fact->commands[i].words, command->words))
				return true;
	return false;
}

size_t report_commands(const struct report *report, enum command_place place,
		       report_on_command *each, void *arg)
{
	size_t count = 0;

	for (const struct fact *fact = report->first; fact; fact = fact->next)
		for (size_t i = 0; i < fact->command_count && needs_doing(fact); i++) {
			const struct command *command = &fact->commands[i];

			if (command->place != place || was_before(report, fact, command))
				continue;
			if (each)
				each(command->words, fact->about, arg);
			count++;
		}
	return count;
}

/* Turns the commands into the remedy, unless the fact has one in words. */
static void settle_remedy(struct fact *fact)
{
	enum command_place place = COMMAND_HERE;
	size_t size;
	FILE *stream;

	if (fact->remedy || !fact->command_count)
		return;
	stream = need(open_memstream(&fact->remedy, &size));
	for (size_t i = 0; i < fact->command_count; i++) {
		fputs(i ? " && " : "", stream);
		if (fact->commands[i].place != place)
			fputs("on the converter, ", stream);
		place = fact->commands[i].place;
		report_write_command(stream, fact->commands[i].words);
	}
	fclose(stream);
	need(fact->remedy);
}

void report_ran(struct report *report, char *const words[], int status)
{
	char *before = report->ran, *command = command_text(words);
	size_t size;
	FILE *stream = need(open_memstream(&report->ran, &size));

	fprintf(stream, "%s%s{\"command\": ", before ? before : "", before ? ", " : "");
	json_string(stream, command);
	fprintf(stream, ", \"status\": %d}", status);
	fclose(stream);
	need(report->ran);
	free(before);
	free(command);
}

/* --- values ------------------------------------------------------------------------- */

/* Opens a memory stream for a value; value_close() makes its text fact->value. */
static FILE *value_open(struct fact *fact, size_t *size)
{
	return need(open_memstream(&fact->value, size));
}

static void value_close(struct fact *fact, FILE *stream)
{
	fclose(stream);
	need(fact->value);
}

void fact_value_bool(struct fact *fact, bool value)
{
	fact->value = need(strdup(value ? "true" : "false"));
}

void fact_value_number(struct fact *fact, double value)
{
	size_t size;
	FILE *stream = value_open(fact, &size);

	json_number(stream, value);
	value_close(fact, stream);
}

void fact_value_text(struct fact *fact, const char *value)
{
	size_t size;
	FILE *stream = value_open(fact, &size);

	json_string(stream, value);
	value_close(fact, stream);
}

void fact_value_bytes(struct fact *fact, const uint8_t *values, size_t count)
{
	size_t size;
	FILE *stream = value_open(fact, &size);

	fputc('[', stream);
	for (size_t i = 0; i < count; i++)
		fprintf(stream, "%s%u", i ? ", " : "", values[i]);
	fputc(']', stream);
	value_close(fact, stream);
}

/* Writes a fact: for a terminal in lines of its width, with the remedy in a new one; otherwise in one line. */
static void write_fact(const struct report *report, const struct fact *fact)
{
	char *line = NULL;
	size_t size;
	FILE *stream = need(open_memstream(&line, &size));
	const bool lines = report->width;

	fprintf(stream, "%s%s%s", fact->about ? fact->about : "", fact->about ? ": " : "", fact->text);
	if (fact->remedy && !lines)
		fprintf(stream, "; remedy: %s", fact->remedy);
	fclose(stream);
	fprintf(report->out, "%-4s  ", status_names[fact->status]);
	columns_wrap(report->out, need(line), lines ? report->width : UINT_MAX, INDENT, INDENT, "");
	if (fact->remedy && lines) {
		fprintf(report->out, "%*sremedy: ", INDENT, "");
		/* a shell takes a command that is broken like this as one line */
		columns_wrap(report->out, fact->remedy, report->width, INDENT + strlen("remedy: "), INDENT, fact->command_count ? " \\" : "");
	}
	free(line);
}

void report_flush(struct report *report)
{
	for (struct fact *fact = report->unwritten; fact; fact = fact->next)
		settle_remedy(fact);
	for (const struct fact *fact = report->unwritten; fact && !report->json; fact = fact->next)
		if (!report->quiet || needs_doing(fact))
			write_fact(report, fact);
	report->unwritten = NULL;
	if (!report->json)
		fflush(report->out);
}

static void write_commands(FILE *out, const struct fact *fact, enum command_place place,
			   const char *member)
{
	size_t count = 0;

	for (size_t i = 0; i < fact->command_count; i++) {
		char *text;

		if (fact->commands[i].place != place)
			continue;
		text = command_text(fact->commands[i].words);
		fprintf(out, count++ ? ", " : ", \"%s\": [", member);
		json_string(out, text);
		free(text);
	}
	if (count)
		fputc(']', out);
}

static void write_json(const struct report *report)
{
	FILE *out = report->out;

	fprintf(out, "{\"convertize\": \"%s\", \"result\": \"%s\", ", PACKAGE_VERSION,
		results[report->worst].name);
	if (report->ran)
		fprintf(out, "\"ran\": [%s], ", report->ran);
	fputs("\"facts\": [", out);
	for (const struct fact *fact = report->first; fact; fact = fact->next) {
		fprintf(out, "%s\n  {\"name\": \"%s\", \"status\": \"%s\"",
			fact == report->first ? "" : ",", fact->name, status_names[fact->status]);
		if (fact->about)
			json_member(out, "about", fact->about);
		if (fact->value)
			fprintf(out, ", \"value\": %s", fact->value);
		json_member(out, "text", fact->text);
		if (fact->remedy)
			json_member(out, "remedy", fact->remedy);
		if (report->commands && needs_doing(fact)) {
			write_commands(out, fact, COMMAND_HERE, "commands");
			write_commands(out, fact, COMMAND_CONVERTER, "converter_commands");
		}
		fputc('}', out);
	}
	fputs("\n]}\n", out);
}

bool report_finish(struct report *report)
{
	report_flush(report);
	if (report->json)
		write_json(report);
	else if (!report->quiet || report->worst >= FACT_WARN)
		fprintf(report->out, "%s: %s\n", results[report->worst].name,
			results[report->worst].text);
	return fflush(report->out) == 0 && !ferror(report->out);
}
