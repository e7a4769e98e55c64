/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status_page.c - writes the status of a daemon as an HTML page with pictures of the last hour (no I/O)
 *
 * The page is one answer and needs no script: we draw the pictures as SVG, a column's <title> tells its figures where
 * the pointer rests, and the browser asks again every ten seconds. The answer forbids it everything else (endpoint.c).
 * Of texts, only warnings and names of clients aren't constants; html_text() escapes them.
 *
 * Each picture has a column for each interval between two samples of the history, the last at the right edge, so that
 * the time axis stays the same while the first hour fills it.
 */
#include "config.h"

#include "observe/monitor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS (HISTORY_MAX - 1)

/* The user units of a picture; the browser stretches it. */
#define COLUMN_WIDTH 6
#define PICTURE_WIDTH (COLUMNS * COLUMN_WIDTH)
#define PICTURE_HEIGHT 120

static void html_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		default:
			fputc(*text, out);
		}
	}
}

/* ----- figures of an interval between two samples ----- */

#define VALUE_TEXT_MAX 32

/* Returns the time in microseconds below which a part @quantile of what the histogram has counted lies, NAN without any. */
static double time_of(const struct sample *from, const struct sample *to, enum metric histogram, double quantile)
{
	struct metrics_sum added = to->sum;
	double us;

	for (unsigned i = 0; i < METRICS_TIME_BUCKETS; i++)
		added.values[histogram + i] -= from->sum.values[histogram + i];
	us = metrics_quantile_us(&added, histogram, quantile);
	return us < 0 ? NAN : us;
}

static void write_number(char text[static VALUE_TEXT_MAX], double value)
{
	snprintf(text, VALUE_TEXT_MAX, value < 9.95 && value != floor(value) ? "%.1f" : "%.0f", value);
}

static void write_bits(char text[static VALUE_TEXT_MAX], double value)
{
	static const char *const units[] = { "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s" };
	size_t unit = 0;

	while (value >= 999.5 && unit < sizeof(units) / sizeof(units[0]) - 1) {
		value /= 1000;
		unit++;
	}
	write_number(text, value);
	snprintf(text + strlen(text), VALUE_TEXT_MAX - strlen(text), " %s", units[unit]);
}

static void write_time(char text[static VALUE_TEXT_MAX], double us)
{
	if (us >= 1e6)
		snprintf(text, VALUE_TEXT_MAX, "%.2g s", us / 1e6);
	else
		snprintf(text, VALUE_TEXT_MAX, "%.*f ms", us < 1e4 ? 1 : 0, us / 1e3);
}

/* ----- pictures ----- */

#define FIGURES 2

/* The value of a line in an interval: a gauge at its end, a counter's growth, or a time of a histogram. */
enum kind { OPEN, GAUGE, RATE, BITS, HALF, SLOWEST, FAILURES };

static const struct picture {
	const char *title;
	struct {
		const char *name; /* NULL: the failures of the daemon */
		enum kind kind;
		enum metric metric;
	} figures[FIGURES];
	void (*write)(char text[static VALUE_TEXT_MAX], double value);
	double bottom; /* the value at the lower edge of a logarithmic scale; 0: the scale is linear */
	double top;    /* the least value at the upper edge */
} pictures[] = {
	{ "Connections", { { "open", OPEN, 0 }, { "pending", GAUGE, METRIC_PENDING } }, write_number, 0, 4 },
	{ "New connections", { { "a second", RATE, METRIC_ACCEPTED }, { NULL, FAILURES, 0 } }, write_number, 0, 1 },
	{ "Traffic", { { "to clients", BITS, METRIC_BYTES + RELAY_DOWNSTREAM }, { "from clients", BITS, METRIC_BYTES + RELAY_UPSTREAM } },
	  write_bits, 0, 1e6 },
	{ "Round trips to clients",
	  { { "half of them", HALF, METRIC_ROUND_TRIP_SECONDS }, { "99 % of them", SLOWEST, METRIC_ROUND_TRIP_SECONDS } },
	  write_time, 500, 1e5 },
	{ "Servers answer within",
	  { { "half of them", HALF, METRIC_CONNECT_SECONDS }, { "99 % of them", SLOWEST, METRIC_CONNECT_SECONDS } }, write_time, 500, 1e5 },
};

static void write_value(const struct picture *picture, char text[static VALUE_TEXT_MAX], double value)
{
	if (isnan(value))
		strcpy(text, "–");
	else
		picture->write(text, value);
}

/* The values of one line of a picture. */
struct curve {
	double now, peak; /* NAN: there is none */
	double values[COLUMNS]; /* @count of them; NAN: a gap */
	size_t count;
};

static double value_of(const struct picture *picture, unsigned figure, const struct status *status, const struct sample *from,
		       const struct sample *to)
{
	const enum metric metric = picture->figures[figure].metric;

	switch (picture->figures[figure].kind) {
	case OPEN:
		return (double)metrics_sessions(&to->sum);
	case GAUGE:
		return (double)to->sum.values[metric];
	case RATE:
		return status_rate(from, to, metric, 1);
	case BITS:
		return status_rate(from, to, metric, 1) * 8;
	case HALF:
		return time_of(from, to, metric, 0.5);
	case SLOWEST:
		return time_of(from, to, metric, 0.99);
	case FAILURES:
		break;
	}
	return status_rate(from, to, status->program->failures.metric, status->program->failures.count);
}

static const char *name_of(const struct picture *picture, unsigned figure, const struct status *status)
{
	return picture->figures[figure].name ? picture->figures[figure].name : status->program->failures.figure;
}

static void read_curve(struct curve *curve, const struct status *status, const struct picture *picture, unsigned figure)
{
	curve->count = 0;
	curve->now = curve->peak = status->before ? value_of(picture, figure, status, status->before, &status->latest) : NAN;
	for (size_t i = 1; i < status->history_count; i++) {
		double value = value_of(picture, figure, status, &status->history[i - 1], &status->history[i]);

		curve->values[curve->count++] = value;
		curve->peak = fmax(curve->peak, value);
	}
}

/* Returns the next of 1, 2, 5, 10, 20 … times a power of ten that isn't below @value. */
static double round_up(double value)
{
	static const double steps[] = { 1, 2, 5 };
	double power = pow(10, floor(log10(value)));

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i] * power >= value * 0.9999)
			return steps[i] * power;
	return 10 * power;
}

/* Returns the vertical place of @value where the upper edge has the value @top. */
static double height_of(const struct picture *picture, double value, double top)
{
	double part = picture->bottom ? log(fmax(value, picture->bottom) / picture->bottom) / log(top / picture->bottom) :
					value / top;

	return PICTURE_HEIGHT * (1 - fmin(part, 1));
}

static double left_edge(const struct curve *curve, size_t i)
{
	return (double)(COLUMNS - curve->count + i) * COLUMN_WIDTH;
}

/* Writes the line of @curve, with gaps where nothing is known. @area: writes the area below it instead */
static void write_curve(FILE *out, const struct picture *picture, const struct curve *curve, double top, unsigned which,
			bool area)
{
	bool drawn = false;
	double x = 0;

	fprintf(out, "<path class=\"%s f%u\" d=\"", area ? "area" : "line", which);
	for (size_t i = 0; i < curve->count; i++) {
		bool known = !isnan(curve->values[i]);

		if (drawn && !known && area)
			fprintf(out, "V%d", PICTURE_HEIGHT);
		x = left_edge(curve, i);
		if (known && !drawn && area)
			fprintf(out, "M%.0f %dV%.1f", x, PICTURE_HEIGHT, height_of(picture, curve->values[i], top));
		else if (known)
			fprintf(out, "%s%.0f %.1f", drawn ? "L" : "M", x, height_of(picture, curve->values[i], top));
		if (known)
			fprintf(out, "H%.0f", x + COLUMN_WIDTH);
		drawn = known;
	}
	if (drawn && area)
		fprintf(out, "V%d", PICTURE_HEIGHT);
	fputs("\"/>", out);
}

/* Writes transparent columns, whose titles tell the time and the values. */
static void write_columns(FILE *out, const struct status *status, const struct picture *picture,
			  const struct curve curves[static FIGURES])
{
	for (size_t i = 0; i < curves[0].count; i++) {
		char values[FIGURES][VALUE_TEXT_MAX], text[8];
		time_t then = status->now - (time_t)((status->latest.at_ms - status->history[i + 1].at_ms) / 1000);
		struct tm utc;

		gmtime_r(&then, &utc);
		strftime(text, sizeof(text), "%H:%M", &utc);
		for (unsigned f = 0; f < FIGURES; f++)
			write_value(picture, values[f], curves[f].values[i]);
		fprintf(out, "<rect x=\"%.0f\"><title>%s UTC\n%s: %s\n%s: %s</title></rect>", left_edge(&curves[0], i), text,
			name_of(picture, 0, status), values[0], name_of(picture, 1, status), values[1]);
	}
}

static void write_picture(FILE *out, const struct status *status, const struct picture *picture)
{
	struct curve curves[FIGURES];
	char text[VALUE_TEXT_MAX], peak[VALUE_TEXT_MAX];
	double top = picture->top;

	fprintf(out, "<section><h2>%s</h2><p class=\"figures\">", picture->title);
	for (unsigned f = 0; f < FIGURES; f++) {
		read_curve(&curves[f], status, picture, f);
		top = fmax(top, curves[f].peak);
		write_value(picture, text, curves[f].now);
		write_value(picture, peak, curves[f].peak);
		fprintf(out, "<span class=\"f%u\"><b>%s</b> %s <small>peak %s</small></span>", f, text, name_of(picture, f, status), peak);
	}
	top = round_up(top);
	write_value(picture, text, picture->bottom);
	write_value(picture, peak, top);
	fprintf(out, "</p><p class=\"scale\">%s to %s%s</p><div class=\"plot\">"
		"<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s in the last hour\">"
		"<path class=\"grid\" d=\"M0 .5H%d M0 %dH%d\"/>",
		picture->bottom ? text : "0", peak, picture->bottom ? ", logarithmic" : "",
		PICTURE_WIDTH, PICTURE_HEIGHT, picture->title, PICTURE_WIDTH, PICTURE_HEIGHT / 2, PICTURE_WIDTH);
	write_curve(out, picture, &curves[0], top, 0, true);
	for (unsigned f = 0; f < FIGURES; f++)
		write_curve(out, picture, &curves[f], top, f, false);
	write_columns(out, status, picture, curves);
	fputs("</svg></div><p class=\"axis\"><span>1 hour ago</span><span>30 min</span><span>now</span></p></section>\n", out);
}

/* ----- bars: subflows and outcomes of the last hour ----- */

static void begin_bars(FILE *out, const char *title)
{
	fprintf(out, "<section><h2>%s</h2><table class=\"bars\">\n", title);
}

/* Writes nothing for 0. @of: the sum of all bars */
static void write_bar(FILE *out, const char *name, uint64_t value, uint64_t of)
{
	double percent = of ? (double)value * 100 / (double)of : 0;

	if (!value)
		return;
	fprintf(out, "<tr><th scope=\"row\">%s</th><td>%llu</td><td>%.*f %%</td>"
		"<td><svg aria-hidden=\"true\"><rect width=\"%.2f%%\" height=\"100%%\"/></svg></td></tr>\n",
		name, (unsigned long long)value, percent < 9.95 ? 1 : 0, percent, percent);
}

static void end_bars(FILE *out, uint64_t sum)
{
	fprintf(out, "</table>%s</section>\n", sum ? "" : "<p class=\"none\">none</p>");
}

/* Returns by how much a counter has grown in the last hour. */
static uint64_t added(const struct status *status, unsigned metric)
{
	return status->latest.sum.values[metric] - (status->history_count ? status->history[0].sum.values[metric] : 0);
}

/* A client's Multipath TCP connection has a subflow on each network that it uses. */
static void write_networks(FILE *out, const struct status *status)
{
	static const char *const names[METRICS_SUBFLOW_BUCKETS] = {
		"1 subflow", "2 subflows", "3 subflows", "4 subflows", "5 to 8 subflows", "more subflows",
	};
	uint64_t sum = 0;

	for (unsigned i = 0; i < RECORD_TRANSPORT_COUNT; i++)
		sum += added(status, METRIC_TRANSPORT + i);
	begin_bars(out, "Last hour: clients' networks (subflows)");
	for (unsigned i = 0; i < METRICS_SUBFLOW_BUCKETS; i++)
		write_bar(out, names[i], added(status, METRIC_SUBFLOWS + i), sum);
	write_bar(out, "fell back to TCP", added(status, METRIC_TRANSPORT + RECORD_FALLBACK), sum);
	write_bar(out, "TCP alone", added(status, METRIC_TRANSPORT + RECORD_TCP), sum);
	end_bars(out, sum);
}

static void write_outcomes(FILE *out, const struct status *status)
{
	uint64_t sum = 0;

	for (unsigned i = 1; i < OUTCOME_COUNT; i++)
		sum += added(status, METRIC_ENDED + i);
	begin_bars(out, "Last hour: how connections ended");
	for (unsigned i = 1; i < OUTCOME_COUNT; i++)
		write_bar(out, outcome_text((enum outcome)i), added(status, METRIC_ENDED + i), sum);
	end_bars(out, sum);
}

/* ----- the page ----- */

static void html_heading(FILE *out, const char *text, bool first)
{
	(void)first;
	fputs("<section><h2>", out);
	html_text(out, text);
	fputs("</h2>\n<table>\n", out);
}

static void html_row(FILE *out, const char *name, const char *value, bool first)
{
	(void)first;
	fputs("<tr><th scope=\"row\">", out);
	html_text(out, name);
	fputs("</th><td>", out);
	html_text(out, value);
	fputs("</td></tr>\n", out);
}

static void html_end(FILE *out)
{
	fputs("</table></section>\n", out);
}

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<meta http-equiv=\"refresh\" content=\"10\">\n<style>\n"
	":root { color-scheme: light dark; --page: #f3f6fa; --card: #fff; --text: #1b2733; --dim: #54616e;\n"
	"  --rule: #dce3ea; --f0: #1769aa; --f1: #c2601f; --good: #1f7a43; --bad: #b3372b }\n"
	"@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --card: #161d26; --text: #e3eaf1;\n"
	"  --dim: #a3b0bc; --rule: #2a3541; --f0: #4ea1e0; --f1: #e08a4a; --good: #4fb878; --bad: #f0857a } }\n"
	"body { margin: 0 auto; max-width: 76rem; padding: 1rem; background: var(--page); color: var(--text);\n"
	"  font: 15px/1.45 system-ui, sans-serif; font-variant-numeric: tabular-nums }\n"
	"header { margin: .3rem 0 1rem } h1 { display: inline-block; font-size: 1.4rem; margin: 0 1rem .3rem 0 }\n"
	"header span { display: inline-block; margin: 0 1.2rem .2rem 0; color: var(--dim) }\n"
	"header span::before { content: \"\\25cf\\a0\" } .good::before { color: var(--good) } .bad::before { color: var(--bad) }\n"
	"body > h2 { margin: 1.6rem 0 .6rem }\n"
	"main, .tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1rem }\n"
	".tables { display: block; columns: 27rem; column-gap: 1rem } .tables section { break-inside: avoid; margin-bottom: 1rem }\n"
	"section { background: var(--card); border: 1px solid var(--rule); border-radius: .6rem; padding: .8rem 1rem; min-width: 0 }\n"
	"h2 { font-size: 1rem } section h2 { margin: 0 } small, .axis, .scale, .none, footer { color: var(--dim); font-size: .8rem }\n"
	".figures { margin: .2rem 0 0; display: flex; flex-wrap: wrap; gap: 0 1.5rem; align-items: baseline }\n"
	".figures span { color: var(--dim) } .figures b { font-size: 1.5rem } .figures .f0 b { color: var(--f0) }\n"
	".figures .f1 b { color: var(--f1); font-size: 1.1rem } small { margin-left: .3em; white-space: nowrap }\n"
	".scale { text-align: right; margin: 0 }\n"
	".plot svg { display: block; width: 100%; height: 8rem; border-bottom: 1px solid var(--dim) }\n"
	".grid { stroke: var(--rule) } path { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; stroke-linejoin: round }\n"
	".grid { stroke-width: 1 } .area { fill: var(--f0); opacity: .18 } .line.f0 { stroke: var(--f0) } .line.f1 { stroke: var(--f1) }\n"
	".plot rect { y: 0; width: 6px; height: 120px; fill: transparent } .plot rect:hover { fill: var(--dim); opacity: .35 }\n"
	".axis { display: flex; justify-content: space-between; margin: .2rem 0 0 }\n"
	"table { border-collapse: collapse; width: 100%; margin-top: .3rem }\n"
	"th, td { text-align: left; vertical-align: top; padding: .25em 0; border-top: 1px solid var(--rule); overflow-wrap: anywhere }\n"
	"tr:first-child > * { border-top: 0 } th { width: 50%; padding-right: 1em; font-weight: normal; color: var(--dim) }\n"
	".bars th { width: auto; overflow-wrap: break-word } .bars td { width: 1%; text-align: right; padding-left: 1em; white-space: nowrap }\n"
	".bars td:last-child { width: 33% } .bars svg { width: 100%; height: .7em } .bars rect { fill: var(--f0) }\n"
	"footer { margin: 1rem 0 } a { color: var(--f0) }\n"
	"</style>\n";

static void write_header(FILE *out, const struct status *status)
{
	fprintf(out, "<title>%s</title>\n</head>\n<body>\n<header><h1>%s %s: %s</h1>\n", status->program->name,
		status->program->name, PACKAGE_VERSION, status->draining ? "draining" : "serving");
	if (status->program->write_marks)
		status->program->write_marks(out, status);
	if (status->notice_count)
		fprintf(out, "<span class=\"bad\">warnings and errors: %zu, at the end of the page</span>\n", status->notice_count);
	fputs("</header>\n", out);
}

void status_write_html(FILE *out, const struct status *status)
{
	static const struct status_layout layout = { html_heading, html_row, html_end };

	fputs(head, out);
	write_header(out, status);
	fputs("<main>\n", out);
	for (size_t i = 0; i < sizeof(pictures) / sizeof(pictures[0]); i++)
		write_picture(out, status, &pictures[i]);
	write_networks(out, status);
	write_outcomes(out, status);
	fputs("</main>\n<h2>All figures</h2>\n<div class=\"tables\">\n", out);
	status_write_tables(out, status, &layout);
	fputs("</div>\n<footer><a href=\"/metrics\">metrics</a> for Prometheus, <a href=\"/status\">status</a> as text; "
	      "times are UTC</footer>\n</body>\n</html>\n", out);
}
