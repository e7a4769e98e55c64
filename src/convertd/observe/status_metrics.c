/* SPDX-License-Identifier: BSD-3-Clause */
/* status_metrics.c - writes the status of the converter for Prometheus (no I/O) */
#include "config.h"

#include "convertd/observe/status.h"

static void write_value(FILE *out, const char *name, const char *type, const char *help,
			double value)
{
	metrics_write_head(out, name, type, help);
	fprintf(out, "%s %.17g\n", name, value);
}

static void write_gauge(FILE *out, const char *name, const char *help, double value)
{
	write_value(out, name, "gauge", help, value);
}

static void write_converter(FILE *out, const struct status *status)
{
	static const char build[] = "convertd_build_info", reloads[] = "convertd_reloads_total";

	metrics_write_head(out, build, "gauge", "Always 1; the version is a label.");
	fprintf(out, "%s{version=\"%s\"} 1\n", build, PACKAGE_VERSION);
	write_gauge(out, "convertd_draining",
		    "1 while it accepts nobody and waits for its connections to end.",
		    status->draining);
	metrics_write_head(out, reloads, "counter", "Configurations read again, by how that went.");
	fprintf(out, "%s{result=\"ok\"} %llu\n%s{result=\"failed\"} %llu\n", reloads,
		(unsigned long long)status->reloads, reloads,
		(unsigned long long)status->reloads_failed);
	write_gauge(out, "convertd_configured_timestamp_seconds",
		    "When the configuration in force was read.", (double)status->configured);
	write_gauge(out, "convertd_workers", "Threads that serve clients.",
		    (double)status->workers);
	write_gauge(out, "convertd_max_connections",
		    "Connections that there may be, as --max-connections or the limit of open "
		    "files has it; 0: no limit.",
		    status->max_connections);
	write_gauge(out, "convertd_max_pending_requests",
		    "Pending requests that there may be (--max-pending); 0: no limit.",
		    status->max_pending);
	write_gauge(out, "convertd_max_kernel_memory_bytes",
		    "Kernel memory that connections may hold before what stands still is ended; 0: "
		    "no limit.",
		    (double)status->max_memory);
	write_gauge(out, "convertd_unproven_clients",
		    "Clients that haven't proved their addresses: SYNs that are withheld, and "
		    "connections without a third ACK or a valid cookie.",
		    status->demand.unproven);
	write_gauge(out, "convertd_max_unproven_clients",
		    "As many have cookies demanded (--cookie-demand); 0: never.",
		    status->demand.most);
	write_gauge(out, "convertd_cookies_demanded",
		    "1 while requests in SYNs need a cookie because of these.",
		    status->demand.in_force);
	write_value(out, "convertd_cookie_demands_total", "counter",
		    "Times that cookies came to be demanded.", (double)status->demand.begun);
	write_gauge(out, "convertd_notices",
		    "Different warnings and errors since the configuration was read, 16 at most.",
		    (double)status->notice_count);
}

static void write_network(FILE *out, const struct status *status)
{
	static const char works[] = "convertd_family_works";

	metrics_write_head(out, works, "gauge",
			   "0 where there is no route to servers of this address family, or none answers.");
	for (int i = 0; i < FAMILY_COUNT; i++)
		fprintf(out, "%s{family=\"%s\"} %d\n", works, families_name((enum family)i),
			status->families[i].routed && status->families[i].state != FAMILY_SILENT);
}

/* Writes the metrics of the process under the names that all of Prometheus's own libraries use. */
static void write_process(FILE *out, const struct status *status)
{
	const struct resource_usage *process = &status->process;

	write_value(out, "process_cpu_seconds_total", "counter",
		    "Total user and system CPU time spent in seconds.", process->cpu_seconds);
	write_gauge(out, "process_start_time_seconds",
		    "Start time of the process since unix epoch in seconds.",
		    (double)status->started);
	if (process->open_files != UINT64_MAX)
		write_gauge(out, "process_open_fds", "Number of open file descriptors.",
			    (double)process->open_files);
	if (process->max_files != UINT64_MAX)
		write_gauge(out, "process_max_fds", "Maximum number of open file descriptors.",
			    (double)process->max_files);
	write_gauge(out, "process_resident_memory_bytes", "Resident memory size in bytes.",
		    (double)process->resident_bytes);
	write_gauge(out, "process_virtual_memory_bytes", "Virtual memory size in bytes.",
		    (double)process->virtual_bytes);
}

void status_write_metrics(FILE *out, const struct status *status)
{
	metrics_write(out, &status->sum);
	write_converter(out, status);
	write_network(out, status);
	write_process(out, status);
}
