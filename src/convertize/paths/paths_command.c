/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths_command.c - "convertize paths": finds all facts of each network, or runs the path manager
 *
 * src/host decides which addresses are networks. The path manager uses the same code, so both always see the same networks. A network
 * works if a converter answers over it. We ask all converters over all networks at once, with sockets bound to address and device, as
 * the kernel binds subflows (check/converter_probe.c).
 */
#include "config.h"

#include "convertize/paths/paths_command.h"

#include "client/paths.h"
#include "common/os.h"
#include "convertize/check/check.h"
#include "convertize/options/command_line.h"
#include "convertize/run/launch.h"
#include "convertize/status/status.h"
#include "host/lookup.h"
#include "paths/plan.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MS 2000 /* a path that takes longer for an answer is of no use */

/* Adds up the connections to converters over the row's network. */
static void find_subflows(struct paths_row *row, const struct status_sockets *sockets, const struct check_addresses *converters)
{
	for (size_t i = 0; i < sockets->count; i++) {
		const struct status_socket *socket = &sockets->list[i];
		union sockaddr_ip local = socket->local;
		bool known = false;

		sockaddr_ip_set_port(&local, 0);
		for (size_t j = 0; j < converters->count; j++)
			known = known || sockaddr_ip_equal(&socket->peer, &converters->list[j]);
		if (!known || socket->mptcp || !socket->established || !sockaddr_ip_equal(&local, &row->network.address))
			continue;
		row->subflows.received += socket->received;
		row->subflows.sent += socket->sent;
		if (row->subflows.count++ == 0 || socket->heard_ms < row->subflows.heard_ms)
			row->subflows.heard_ms = socket->heard_ms;
	}
}

/* --- each network ----------------------------------------------------------------------- */

/* Is it a device of a mobile network, by its kind or by its driver (DEVTYPE=wwan)? */
static bool is_mobile(const struct host_link *link)
{
	char path[64 + IF_NAMESIZE], line[64];
	FILE *file;
	bool mobile = strcmp(link->kind, "wwan") == 0 || strcmp(link->kind, "rmnet") == 0;

	snprintf(path, sizeof(path), "/sys/class/net/%s/uevent", link->name);
	file = fopen(path, "re");
	while (file && !mobile && fgets(line, sizeof(line), file))
		mobile = strcmp(line, "DEVTYPE=wwan\n") == 0;
	if (file)
		fclose(file);
	return mobile;
}

static void find_metered(struct paths_row *row, const struct host_managers *others)
{
	const struct host_nm_device *nm = host_nm_of(others, row->network.link.name);

	if (nm && nm->metered != HOST_METERED_UNKNOWN) {
		row->metered = nm->metered;
		row->metered_by = PATHS_BY_NETWORK_MANAGER;
	} else if (is_mobile(&row->network.link)) {
		row->metered = HOST_METERED_GUESSED_YES;
		row->metered_by = PATHS_BY_KIND;
	}
}

/* Finds the kernel's route for packets from the address to the first converter of its family, or else the default route. */
static void find_way(struct paths_row *row, const struct check_addresses *converters)
{
	const union sockaddr_ip *address = &row->network.address;
	const struct in6_addr from = sockaddr_ip_in6(address);
	union sockaddr_ip to = host_way_anywhere(address->sa.sa_family);
	struct host_way way;

	for (size_t i = converters->count; i-- > 0;)
		if (sockaddr_ip_is_v4(&converters->list[i]) == sockaddr_ip_is_v4(address))
			to = converters->list[i];
	host_way_ask(-1, &to, &from, 0, &way);
	if (!way.error) {
		row->way_table = way.table;
		row->way_index = way.index;
	}
}

static void fill_row(struct paths_row *row, const struct host_network *network, const struct host *host,
		     const struct paths_memory *memory)
{
	const struct mptcp_endpoint *endpoint = host_endpoint_of(host, &network->address);
	const struct paths_memory_endpoint *remembered = endpoint ? paths_memory_find(memory, endpoint) : NULL;

	row->network = *network;
	if (endpoint) {
		row->has_endpoint = true;
		row->endpoint = *endpoint;
	}
	if (remembered)
		row->since = remembered->since;
	find_metered(row, &host->managers);
}

/* --- knowledge of programs ----------------------------------------------------------------- */

/* Does the kernel choose this network for unbound sockets? The cache keeps that path's facts without an address. */
static bool is_usual(const struct paths_row *row, const union sockaddr_ip *converter)
{
	struct host_way way;

	host_way_ask(-1, converter, NULL, 0, &way);
	return !way.error && way.index == row->network.link.index;
}

/* Finds the cache's entry about the path to the first converter that has one. */
static void find_learned(struct paths_row *row, const struct check_addresses *converters, const struct cache *cache)
{
	struct in6_addr own = sockaddr_ip_in6(&row->network.address);

	for (size_t i = 0; i < converters->count && !*row->learned_of; i++) {
		const union sockaddr_ip *converter = &converters->list[i];

		if (sockaddr_ip_is_v4(&row->network.address) != sockaddr_ip_is_v4(converter) || row->use == PATH_USE_NEVER)
			continue;
		if (cache_converter_get(cache, converter, is_usual(row, converter) ? 0 : path_fingerprint(&own), CACHE_PATH, cache_now(),
					&row->learned))
			sockaddr_ip_format(converter, row->learned_of);
	}
}

static void find_knowledge(struct paths_view *view, const struct check_addresses *converters, const struct settings *settings)
{
	struct cache_place place;
	struct cache cache;

	view->wishes = settings->paths;
	check_cache_open(&cache, settings, &place);
	for (size_t i = 0; i < view->count; i++) {
		struct paths_row *row = &view->rows[i];
		struct in6_addr own = sockaddr_ip_in6(&row->network.address);

		row->use = path_preferences_of(&settings->paths, row->network.link.name, &own, &row->preference);
		find_learned(row, converters, &cache);
	}
	cache_close(&cache);
}

/* --- asking ----------------------------------------------------------------------------- */

/* Asks all converters over all networks of their family, and keeps the answers in the rows. */
static void ask(struct paths_view *view, const struct check_addresses *converters, const struct settings *settings)
{
	size_t most = view->count * converters->count, count = 0;
	struct probe_request *requests = calloc(most + 1, sizeof(*requests));
	struct probe_result *results = calloc(most + 1, sizeof(*results));
	struct paths_row **rows = calloc(most + 1, sizeof(*rows)); /* that the requests are about */

	for (size_t i = 0; requests && results && rows && i < most; i++) {
		struct paths_row *row = &view->rows[i / converters->count];
		const union sockaddr_ip *converter = &converters->list[i % converters->count];

		if (sockaddr_ip_is_v4(&row->network.address) != sockaddr_ip_is_v4(converter))
			continue;
		rows[count] = row;
		requests[count++] = (struct probe_request){
			.converter = *converter,
			.from = row->network.address,
			.device = row->network.link.name,
			.in_syn = true,
			.cookie = { settings->cookie, settings->cookie_len },
			.timeout_ms = settings->timeout_ms < ANSWER_MS ? settings->timeout_ms : ANSWER_MS,
		};
	}
	if (count)
		probe_run_all(requests, results, count);
	for (size_t i = 0; i < count; i++) {
		bool works = results[i].outcome == PROBE_ANSWERED;

		/* keep the first answer, or else the first failure */
		if (rows[i]->works == PATHS_WORKS_YES || (rows[i]->works == PATHS_WORKS_NO && !works))
			continue;
		rows[i]->works = works ? PATHS_WORKS_YES : PATHS_WORKS_NO;
		probe_copy(&rows[i]->probe, &results[i]);
		sockaddr_ip_format(&requests[i].converter, rows[i]->converter);
	}
	free(requests);
	free(results);
	free(rows);
}

/* --- all of it -------------------------------------------------------------------------- */

static int read_host(struct paths_view *out, const struct paths_choice *choice)
{
	struct paths_memory memory;
	int ret = paths_host_read(&out->host, &memory);

	if (ret < 0)
		return ret;
	ret = paths_wanted_find(&out->wanted, &out->host, choice, &memory);
	out->rows = calloc(out->wanted.count + 1, sizeof(*out->rows));
	for (size_t i = 0; out->rows && i < out->wanted.count; i++)
		if (out->wanted.networks[i].has_route)
			fill_row(&out->rows[out->count++], &out->wanted.networks[i], &out->host, &memory);
	return out->rows ? ret : -ENOMEM;
}

static int paths_look(struct paths_view *out, const struct paths_choice *choice, const struct settings *settings)
{
	struct status_sockets sockets = { .count = 0 };
	struct check_addresses converters;
	int ret;

	memset(out, 0, sizeof(*out));
	out->mptcp = sysctl_read("net.mptcp.enabled");
	ret = read_host(out, choice);
	if (ret < 0)
		return ret;
	out->is_managed = paths_memory_is_locked();
	check_addresses_find(&converters, settings);
	check_addresses_warn(&converters);
	out->converter_count = converters.count;
	status_sockets_read(&sockets);
	for (size_t i = 0; i < out->count; i++) {
		find_way(&out->rows[i], &converters);
		find_subflows(&out->rows[i], &sockets, &converters);
	}
	free(sockets.list);
	find_knowledge(out, &converters, settings);
	ask(out, &converters, settings);
	return 0;
}

static void paths_view_fini(struct paths_view *view)
{
	free(view->rows);
	view->rows = NULL;
	paths_wanted_fini(&view->wanted);
	host_fini(&view->host);
}

/* --- the command ------------------------------------------------------------------------ */

static const char *value_of(enum option_id id)
{
	return getenv(option_table[id].variable);
}

/* Returns the exit status, which tells whether a path works. */
static int status_of(const struct paths_view *view)
{
	bool asked = false;

	for (size_t i = 0; i < view->count; i++) {
		if (view->rows[i].works == PATHS_WORKS_YES)
			return EXIT_SUCCESS;
		asked = asked || view->rows[i].works != PATHS_WORKS_UNASKED;
	}
	return asked || !view->count ? STATUS_FAILED : EXIT_SUCCESS;
}

static int show(const struct options *options, const struct paths_choice *choice)
{
	static struct settings settings;
	static struct paths_view view;
	int status, error;

	if (!launch_read_settings(&settings, options, false))
		return STATUS_USAGE;
	error = -paths_look(&view, choice, &settings);
	if (error) {
		fprintf(stderr, "convertize: paths: networks can't be read: %s\n", strerror(error));
		return STATUS_FAILED;
	}
	if (options_has(options, OPTION_JSON))
		paths_print_json(stdout, &view);
	else
		paths_print(stdout, &view);
	status = status_of(&view);
	paths_view_fini(&view);
	return fflush(stdout) == 0 ? status : STATUS_FAILED;
}

/* Looks for the devices that an option names, and reports a missing one. @warning: only warn. Returns whether all are there. */
static bool check_devices(const struct options *options, enum option_id option, bool warning)
{
	const char *list = options_has(options, option) ? value_of(option) : NULL, *found;
	char name[64];
	bool all = true;
	size_t len;

	while ((found = name_list_next(&list, &len))) {
		snprintf(name, sizeof(name), "%.*s", (int)len, found);
		if (name_is_pattern(name) || if_nametoindex(name))
			continue;
		all = false;
		fprintf(stderr, "convertize: %s--%s: there is no device \"%.*s\" now; \"ip link\" shows those that there are\n",
			warning ? "warning: " : "", option_table[option].name, IF_NAMESIZE, name);
	}
	return all;
}

int paths(struct options *options)
{
	const bool manage = options_has(options, OPTION_MANAGE), once = options_has(options, OPTION_ONCE);
	const bool changes = manage || once || options_has(options, OPTION_REMOVE);
	enum paths_task task = once ? PATHS_TASK_ONCE : manage ? PATHS_TASK_MANAGE : PATHS_TASK_REMOVE;
	static struct conf_files files; /* messages name them */
	char problem[PATHS_PROBLEM_MAX];
	struct paths_choice choice;

	/* changes concern all users: then read only the administrator's file, which this user must be able to read */
	if (!conf_load(&files, options, changes))
		return STATUS_USAGE;
	if (!paths_choice_read(&choice, &(struct paths_texts){ value_of(OPTION_DEVICE), value_of(OPTION_NEVER_DEVICE),
							       value_of(OPTION_BACKUP_DEVICE), value_of(OPTION_PATHS),
							       value_of(OPTION_TABLES), value_of(OPTION_BESIDE_VPN),
							       value_of(OPTION_QUOTA) }, problem)) {
		options_explain(options, problem);
		return STATUS_USAGE;
	}
	/* A device may appear later, as a modem's does; then --manage finds it, and the words never and backup concern it. */
	check_devices(options, OPTION_NEVER_DEVICE, true);
	check_devices(options, OPTION_BACKUP_DEVICE, true);
	if (!check_devices(options, OPTION_DEVICE, manage) && !manage)
		return STATUS_USAGE;
	if (!changes)
		choice.policy.paths = NULL; /* the table shows the networks that a user excludes, too */
	return changes ? paths_manage(&choice, task, options_has(options, OPTION_DRY_RUN)) : show(options, &choice);
}
