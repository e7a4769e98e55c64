/* SPDX-License-Identifier: BSD-3-Clause */
/* status_print.c - prints the connections of "convertize status", for people or as a JSON object */
#include "config.h"

#include "convertize/status/status.h"

#include "common/columns.h"
#include "common/quote.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define INDENT 4
#define BOLD "\x1b[1m"
#define YELLOW "\x1b[33m"
#define PLAIN "\x1b[0m"

#define FLOW_WIDTH 72 /* of a network's line with all numbers below each other */
#define CLIENT_MAX 192

struct page {
	FILE *out;
	struct status_style style;
};

/* Writes a line, broken where need be, in a colour. */
__attribute__((format(printf, 4, 5)))
static void put_line(const struct page *page, const char *colour, unsigned int indent, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	if (page->style.colours && colour)
		fputs(colour, page->out);
	fprintf(page->out, "%*s", (int)indent, "");
	columns_wrap(page->out, text ? text : "", page->style.width, indent, INDENT, "");
	if (page->style.colours && colour)
		fputs(PLAIN, page->out);
	free(text);
}

static const char *user_name(uid_t uid)
{
	static char number[16];
	const struct passwd *user = getpwuid(uid);

	snprintf(number, sizeof(number), "%u", (unsigned int)uid);
	return user ? user->pw_name : number;
}

/* Returns the seconds since the note was left. */
static int64_t age_of(const struct note *note)
{
	int64_t ms = cache_now() - note->noted;

	return ms > 0 ? ms / 1000 : 0;
}

static void put_flow(const struct page *page, const struct status_flow *flow)
{
	char in[AMOUNT_MAX], in_rate[AMOUNT_MAX], out[AMOUNT_MAX], out_rate[AMOUNT_MAX];

	put_line(page, NULL, INDENT, page->style.width < FLOW_WIDTH ? "%s  in %s %s/s  out %s %s/s" : "%-15s  in %9s %9s/s  out %9s %9s/s",
		 flow->device, amount_of_bytes(flow->received, in),
		 amount_of_bytes(flow->received_rate, in_rate), amount_of_bytes(flow->sent, out), amount_of_bytes(flow->sent_rate, out_rate));
}

/* Writes for whom a gateway has made the connection: a program of this host, or another host. */
static const char *client_text(const struct status_connection *connection, char buf[static CLIENT_MAX])
{
	const struct status_owner *owner = connection->client_owner;
	char address[SOCKADDR_STRLEN];

	buf[0] = '\0';
	if (owner)
		snprintf(buf, CLIENT_MAX, " for %s[%d] of %s", owner->program, (int)owner->pid, user_name(connection->client->uid));
	else if (connection->note && connection->note->client.sa.sa_family)
		snprintf(buf, CLIENT_MAX, " for %s", sockaddr_ip_format(&connection->note->client, address));
	return buf;
}

static void put_connection(const struct page *page, const struct status_connection *connection)
{
	const struct note *note = connection->note;
	char to[SOCKADDR_STRLEN], by[SOCKADDR_STRLEN], client[CLIENT_MAX], age[AMOUNT_MAX], began[STATUS_BEGAN_MAX];
	const bool moved = note && note->flags & (NOTE_MOVED | NOTE_PLACED) && !(note->flags & NOTE_ORDERED);

	client_text(connection, client);
	put_line(page, BOLD, 0, "%s[%d] of %s%s to %s%s%s", connection->owner ? connection->owner->program : "?",
		 connection->owner ? (int)connection->owner->pid : 0,
		 user_name(connection->socket->uid), client,
		 note ? sockaddr_ip_format(&note->server, to) : "an unknown server", connection->direct ? "" : ", by ",
		 connection->direct ? "" : sockaddr_ip_format(&connection->socket->peer, by));
	for (size_t i = 0; i < connection->flow_count; i++)
		put_flow(page, &connection->flows[i]);
	if (!connection->flow_count)
		put_line(page, YELLOW, INDENT, "no network carries it now");
	if (connection->outlived)
		put_line(page, YELLOW, INDENT, "has outlived the network on which it began");
	put_line(page, moved ? YELLOW : NULL, INDENT, "%s%s%s", note ? amount_of_time(age_of(note), age) : "", note ? ": " : "",
		 status_began(connection, began));
}

/* Writes the path service's sums of today: all bytes of the devices, as a provider bills them. */
static void put_today(const struct page *page, const struct status_view *view)
{
	char in[AMOUNT_MAX], out[AMOUNT_MAX], text[QUOTA_TEXT_MAX];
	uint64_t outlived;

	if (!view->traffic) {
		put_line(page, NULL, 0, "today's sums of each network: %s", view->traffic_error ?
			 "root may read them; systemctl status convertize-paths shows quotas" :
			 "convertize paths --manage counts them; connections that have ended are in none of the above");
		return;
	}
	put_line(page, BOLD, 0, "Today, all traffic of each network");
	for (size_t i = 0; i < view->traffic->record_count; i++) {
		const struct traffic_record *record = &view->traffic->records[i];

		if (record->date == view->today)
			put_line(page, NULL, INDENT, "%-15s  in %9s %11s  out %9s", record->device, amount_of_bytes(record->received, in), "",
				 amount_of_bytes(record->sent, out));
	}
	outlived = traffic_outlived(view->traffic, view->today);
	if (outlived)
		put_line(page, NULL, INDENT, "%" PRIu64 " connection%s outlived the network on which %s began", outlived,
			 outlived == 1 ? " has" : "s have", outlived == 1 ? "it" : "they");
	for (size_t i = 0; view->quotas && i < view->quotas->count; i++) {
		const struct quota *quota = &view->quotas->list[i];
		const uint64_t used = quota_used(quota, view->traffic, view->today);

		put_line(page, quota_judge(quota, used) ? YELLOW : NULL, INDENT, "%-15s  %s", quota->device, quota_text(quota, used, text));
	}
}

static void put_sums(const struct page *page, const struct status_view *view)
{
	if (view->sum_count)
		put_line(page, BOLD, 0, "All open converted connections");
	for (size_t i = 0; i < view->sum_count; i++)
		put_flow(page, &view->sums[i]);
	put_today(page, view);
}

void status_print(FILE *out, const struct status_view *view, const struct status_style *style)
{
	const struct page page = { out, *style };
	const size_t direct = view->count - view->converted;

	put_line(&page, NULL, 0, "%zu connection%s converted, %zu known to go directly; %s", view->converted,
		 view->converted == 1 ? "" : "s", direct,
		 view->all ? "of all users" : "only yours: root sees all");
	if (view->outlived)
		put_line(&page, NULL, 0, "%zu of them %s outlived the network on which %s began", view->outlived,
			 view->outlived == 1 ? "has" : "have", view->outlived == 1 ? "it" : "they");
	if (style->sums_first)
		put_sums(&page, view);
	for (size_t i = 0; i < view->count; i++)
		put_connection(&page, &view->list[i]);
	if (!style->sums_first)
		put_sums(&page, view);
}

/* --- JSON ------------------------------------------------------------------------------- */

static void put_address(FILE *out, const char *name, const union sockaddr_ip *address)
{
	char text[SOCKADDR_STRLEN];

	json_member(out, name, address && address->sa.sa_family ? sockaddr_ip_format(address, text) : NULL);
}

/* Writes the first member of an object in an array: the name of a device. */
static void begin_device(FILE *out, const char *separator, const char *device)
{
	fprintf(out, "%s{\"device\": ", separator);
	json_string(out, device);
}

/* Writes an array of the flows. */
static void put_flows(FILE *out, const struct status_flow *flows, size_t count)
{
	fputs("\"networks\": [", out);
	for (size_t i = 0; i < count; i++) {
		begin_device(out, i ? ", " : "", flows[i].device);
		fprintf(out, ", \"subflows\": %zu, \"received\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"received_rate\": %" PRIu64
			", \"sent_rate\": %" PRIu64 "}", flows[i].subflows, flows[i].received, flows[i].sent, flows[i].received_rate, flows[i].sent_rate);
	}
	fputc(']', out);
}

static void put_object(FILE *out, const struct status_connection *connection)
{
	static const struct {
		unsigned int flag;
		const char *name;
	} names[] = { { NOTE_SYN_DATA, "syn-data" }, { NOTE_EARLY_DATA, "early-data" }, { NOTE_SILENT, "silent" },
		      { NOTE_PLACED, "other-network" }, { NOTE_ORDERED, "ordered" }, { NOTE_MOVED, "anew" } };
	const struct note *note = connection->note;
	const char *separator = "";

	fprintf(out, "{\"pid\": %d", connection->owner ? (int)connection->owner->pid : 0);
	json_member(out, "program", connection->owner ? connection->owner->program : NULL);
	json_member(out, "user", user_name(connection->socket->uid));
	put_address(out, "client", note ? &note->client : NULL);
	json_member(out, "client_program", connection->client_owner ? connection->client_owner->program : NULL);
	json_member(out, "client_user", connection->client ? user_name(connection->client->uid) : NULL);
	json_member_number(out, "client_pid", connection->client_owner, connection->client_owner ? connection->client_owner->pid : 0);
	put_address(out, "server", note ? &note->server : NULL);
	put_address(out, "converter", connection->direct ? NULL : &connection->socket->peer);
	json_member(out, "direct", connection->direct ? note->reason : NULL);
	json_member_bool(out, "mptcp", connection->socket->mptcp);
	json_member_bool(out, "outlived", connection->outlived);
	json_member_number(out, "age_s", note, note ? age_of(note) : 0);
	json_member_number(out, "connect_ms", note, note ? note->connect_ms : 0);
	fputs(", \"began\": [", out);
	for (size_t i = 0; note && i < sizeof(names) / sizeof(names[0]); i++)
		if (note->flags & names[i].flag) {
			fprintf(out, "%s\"%s\"", separator, names[i].name);
			separator = ", ";
		}
	fputs("], ", out);
	put_flows(out, connection->flows, connection->flow_count);
	fputc('}', out);
}

/* Writes "today": null, or an array of the devices with their bytes; the connections that have outlived a network today; and the quotas. */
static void put_traffic(FILE *out, const struct status_view *view)
{
	static const char *const states[] = { [QUOTA_FREE] = "free", [QUOTA_NEAR] = "near", [QUOTA_BACKUP] = "backup", [QUOTA_NEVER] = "never" };
	const char *separator = "";

	fputs(",\n \"today\": ", out);
	if (!view->traffic) {
		fputs("null, \"outlived_today\": null, \"quotas\": []", out);
		return;
	}
	fputc('[', out);
	for (size_t i = 0; i < view->traffic->record_count; i++) {
		const struct traffic_record *record = &view->traffic->records[i];

		if (record->date != view->today)
			continue;
		begin_device(out, separator, record->device);
		fprintf(out, ", \"received\": %" PRIu64 ", \"sent\": %" PRIu64 "}", record->received, record->sent);
		separator = ", ";
	}
	fprintf(out, "], \"outlived_today\": %" PRIu64 ", \"quotas\": [", traffic_outlived(view->traffic, view->today));
	for (size_t i = 0; view->quotas && i < view->quotas->count; i++) {
		const struct quota *quota = &view->quotas->list[i];
		const uint64_t used = quota_used(quota, view->traffic, view->today);

		begin_device(out, i ? ", " : "", quota->device);
		json_member(out, "period", quota->period == QUOTA_DAY ? "day" : "month");
		json_member(out, "state", states[quota_judge(quota, used)]);
		fprintf(out, ", \"bytes\": %" PRIu64 ", \"limit\": %" PRIu64 ", \"used\": %" PRIu64 "}", quota->bytes, quota->limit, used);
	}
	fputc(']', out);
}

void status_print_json(FILE *out, const struct status_view *view)
{
	fprintf(out, "{\"users\": \"%s\", \"interval_ms\": %" PRId64 ", \"outlived\": %zu, \"connections\": [", view->all ? "all" : "own",
		view->interval_ms, view->outlived);
	for (size_t i = 0; i < view->count; i++) {
		fputs(i ? ",\n " : "\n ", out);
		put_object(out, &view->list[i]);
	}
	fputs("],\n ", out);
	put_flows(out, view->sums, view->sum_count);
	put_traffic(out, view);
	fputs("}\n", out);
}
