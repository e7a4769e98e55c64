/* SPDX-License-Identifier: BSD-3-Clause */
/* converter_status.c - the parts of the status that only a converter has: cookie demand, errors, named clients, families (no I/O) */
#include "config.h"

#include "convertd/process/converter.h"

#include "convertd/policy/cookies.h"
#include "convertd/policy/families.h"
#include "observe/monitor.h"

/* While no client comes, nothing else notices that cookies are no longer demanded. */
static void tick(void *demand)
{
	demand_in_force(demand);
}

/* ----- for people ----- */

static void tell_now(struct status_sink *sink, const struct status *status)
{
	struct demand_facts demand;

	demand_read(status->own, &demand);
	status_row_of(sink, "addresses not proved", demand.unproven, demand.most);
	status_row(sink, "cookies demanded automatically", "%s, %llu times since the start", demand.in_force ? "now" : "no",
		   (unsigned long long)demand.begun);
}

static void tell_errors(struct status_sink *sink, const struct status *status)
{
	bool any = false;

	for (unsigned i = 0; i < METRICS_ERRORS; i++) {
		uint64_t count = status->latest.sum.values[METRIC_ERRORS + i];

		if (!count)
			continue;
		if (!any)
			status_heading(sink, "Errors sent to clients");
		any = true;
		status_row_of(sink, convert_error_name(metrics_error_code(i)), count, 0);
	}
}

/* Writes the connections of clients whose cookies have names. */
static void tell_clients(struct status_sink *sink)
{
	const struct cookies_client *first = cookies_clients();

	if (first)
		status_heading(sink, "Connections of clients with names");
	for (const struct cookies_client *client = first; client; client = client->next)
		status_row_of(sink, client->name, atomic_load_explicit(&client->connections, memory_order_relaxed), 0);
}

static const char *family_text(enum family family)
{
	static const char *const texts[] = {
		[FAMILY_UNKNOWN] = "no server has answered yet",
		[FAMILY_WORKS] = "servers answer",
		[FAMILY_DOUBTED] = "several servers were silent, others are tested",
		[FAMILY_SILENT] = "no server answers; clients are told to connect directly",
	};

	return families_is_routed(family) ? texts[families_state(family)] : "no route; clients are told to connect directly";
}

/* Writes which address families work. */
static void tell_network(struct status_sink *sink)
{
	status_heading(sink, "Network");
	for (int i = 0; i < FAMILY_COUNT; i++)
		status_row(sink, families_name((enum family)i), "%s", family_text((enum family)i));
}

static void tell_tables(struct status_sink *sink, const struct status *status)
{
	tell_errors(sink, status);
	tell_clients(sink);
	status_tell_syns(sink, status);
	tell_network(sink);
}

static void write_marks(FILE *out, const struct status *status)
{
	(void)status;
	for (int i = 0; i < FAMILY_COUNT; i++) {
		const enum family_state state = families_state((enum family)i);
		const char *mark = state == FAMILY_WORKS ? "good" : state == FAMILY_SILENT ? "bad" : "";

		fprintf(out, "<span class=\"%s\">%s: %s</span>\n", families_is_routed((enum family)i) ? mark : "",
			families_name((enum family)i), family_text((enum family)i));
	}
}

/* ----- for Prometheus ----- */

static void write_demand(FILE *out, const struct status *status)
{
	struct demand_facts demand;

	demand_read(status->own, &demand);
	status_write_value(out, status, "unproven_clients", "gauge",
			   "Clients that haven't proved their addresses: SYNs that are withheld, and connections without a third ACK or a "
			   "valid cookie.", demand.unproven);
	status_write_value(out, status, "max_unproven_clients", "gauge",
			   "The number of unproven clients from which cookies are demanded (--cookie-demand); 0: never.", demand.most);
	status_write_value(out, status, "cookies_demanded", "gauge", "1 while requests in SYNs need a cookie for that reason.",
			   demand.in_force);
	status_write_value(out, status, "cookie_demands_total", "counter", "How often convertd began to demand cookies.", (double)demand.begun);
}

static void write_network(FILE *out)
{
	static const char works[] = "convertd_family_works";

	metrics_write_head(out, works, "gauge",
			   "0 if there is no route to servers of this address family, or none answers.");
	for (int i = 0; i < FAMILY_COUNT; i++)
		fprintf(out, "%s{family=\"%s\"} %d\n", works, families_name((enum family)i),
			families_is_routed((enum family)i) && families_state((enum family)i) != FAMILY_SILENT);
}

/* Writes the connections of clients whose cookies have names, which the operator chooses. */
static void write_clients(FILE *out)
{
	static const char name[] = "convertd_client_connections_total";

	metrics_write_head(out, name, "counter", "Connections granted to clients whose cookies have names.");
	for (const struct cookies_client *client = cookies_clients(); client; client = client->next)
		fprintf(out, "%s{client=\"%s\"} %llu\n", name, client->name,
			(unsigned long long)atomic_load_explicit(&client->connections, memory_order_relaxed));
}

static void write_metrics(FILE *out, const struct status *status)
{
	write_demand(out, status);
	write_clients(out);
	write_network(out);
}

const struct status_program converter_status = {
	.name = "convertd",
	.title = "Converter",
	.failures = { "errors sent", "errors a second", METRIC_ERRORS, METRICS_ERRORS },
	.tick = tick,
	.write_marks = write_marks,
	.tell_now = tell_now,
	.tell_tables = tell_tables,
	.write_metrics = write_metrics,
};
