/* SPDX-License-Identifier: BSD-3-Clause */
/* status_command.c - "convertize status" and "convertize top": looks twice for one answer, or again and again */
#include "config.h"

#include "convertize/status/status.h"

#include "common/columns.h"
#include "convertize/check/check.h"
#include "convertize/options/conf.h"
#include "convertize/run/launch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RATE_MS 300 /* between the two looks of one answer */
#define WATCH_MS 1000

static struct settings settings;
static struct status_parts parts;
static struct status_sockets earlier;
static struct traffic traffic;
static struct quotas quotas;

static void on_address(const union sockaddr_ip *address, const char *name, void *arg)
{
	(void)name;
	(void)arg;
	if (parts.converter_count < STATUS_CONVERTERS_MAX)
		parts.converters[parts.converter_count++] = *address;
}

static void on_unresolved(const char *name, const char *reason, void *arg)
{
	(void)arg;
	fprintf(stderr, "convertize: %s can't be resolved: %s\n", name, reason);
}

/* Reads the sockets, and keeps those of the look before. Returns 0 or -errno. */
static int look(void)
{
	struct status_sockets before = earlier;

	earlier = parts.sockets;
	parts.sockets = before;
	return status_sockets_read(&parts.sockets);
}

/* Reads the service's sums, and adds what the devices have counted since it wrote them. */
static void find_traffic(struct status_view *out)
{
	const struct traffic_choice choice = { .quotas = &quotas };

	out->traffic_error = traffic_load(&traffic);
	out->today = traffic_today();
	out->quotas = &quotas;
	if (out->traffic_error == 0 && *traffic.boot && traffic_look(&traffic, &choice, NULL) == 0)
		out->traffic = &traffic;
}

/* Makes the view of the last look. Returns false if memory runs out. */
static bool find(struct status_view *out)
{
	status_homes_read(&parts);
	if (!status_owners_find(&parts))
		return false;
	status_notes_read(&parts, &settings);
	if (!status_join(out, &parts, earlier.read ? &earlier : NULL))
		return false;
	find_traffic(out);
	return true;
}

static bool wants_colours(void)
{
	const char *term = getenv("TERM"), *without = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 && (!without || !*without);
}

static void draw(FILE *out, unsigned int width, void *arg)
{
	struct status_view view;
	int ret = look();

	(void)arg;
	if (ret < 0)
		fprintf(out, "connections can't be read: %s\n", strerror(-ret));
	else if (find(&view)) {
		status_print(out, &view, width ? width : COLUMNS_USUAL, wants_colours());
		status_view_fini(&view);
	}
}

static int show_once(bool json)
{
	unsigned int width = columns_of(stdout);
	struct status_view view;
	int ret = look();

	if (ret == 0) {
		poll(NULL, 0, RATE_MS);
		ret = look();
	}
	if (ret < 0 || !find(&view)) {
		fprintf(stderr, "convertize: connections can't be read: %s\n", strerror(ret < 0 ? -ret : ENOMEM));
		return STATUS_FAILED;
	}
	if (json)
		status_print_json(stdout, &view);
	else
		status_print(stdout, &view, width ? width : COLUMNS_USUAL, wants_colours());
	status_view_fini(&view);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : STATUS_FAILED;
}

int status(struct options *options)
{
	static struct conf_files files; /* messages name them */
	const bool watch = options->watch || options->command == COMMAND_TOP;
	char problem[QUOTA_PROBLEM_MAX];

	if (!conf_load(&files, options, false) || !launch_read_settings(&settings, options, false))
		return STATUS_USAGE;
	if (!quotas_read(&quotas, getenv(option_table[OPTION_QUOTA].variable), problem)) {
		fprintf(stderr, "convertize: %s\n", problem);
		return STATUS_USAGE;
	}
	parts.user = geteuid();
	parts.all = parts.user == 0;
	if (settings.enabled)
		converter_addresses(&settings, on_address, on_unresolved, NULL);
	if (!watch || options->json || !isatty(STDOUT_FILENO))
		return show_once(options->json);
	screen_run(draw, NULL, WATCH_MS);
	return EXIT_SUCCESS;
}
