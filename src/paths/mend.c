/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mend.c - brings the kernel into the wanted state, once, and remembers what it made
 *
 * It reads the whole host, compares it with the wanted state, and carries out the difference. Of earlier looks it only remembers which
 * objects are ours. So the next look cures a missed change, a failed operation, a program that removed something, and a killed process.
 */
#include "config.h"

#include "paths/mend.h"

#include "common/clock.h"
#include "common/quote.h"

#include <errno.h>
#include <linux/mptcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SAID_MAX 1024
#define OTHERS_NS (20 * CLOCK_NS_PER_S)

void paths_say(const char *format, ...)
{
	char text[SAID_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "convertize: paths: %s\n", shell_printable(text));
}

/* --- messages --------------------------------------------------------------------------- */

static const char *const keepers[] = {
	[HOST_KEEPER_OURS] = "",
	[HOST_KEEPER_OTHER] = "; its endpoint is somebody else's, and left alone",
	[HOST_KEEPER_NM] = "; its endpoint is left to NetworkManager (connection.mptcp-flags)",
	[HOST_KEEPER_MPTCPD] = "; its endpoint is left to mptcpd",
};

/* Writes "wlan0 192.0.2.7". */
static void format_name(const struct host_network *network, char *out, size_t size)
{
	char address[PREFIX_STRLEN];

	snprintf(out, size, "%s %s", network->link.name, host_format_address(&network->address, address));
}

static void format_fate(const struct host_network *network, char *out, size_t size)
{
	char table[64];

	if (network->verdict != HOST_USED) {
		snprintf(out, size, "left alone: %s", host_verdict_text(network->verdict));
		return;
	}
	if (!network->table)
		snprintf(table, sizeof(table), "no table, since none of \"tables\" is free");
	else
		snprintf(table, sizeof(table), "table %u%s", network->table,
			 network->table_is_ours ? "" : ", by somebody else's rule");
	snprintf(out, size, "used%s, %s%s", network->backup ? " as a backup" : "", table, keepers[network->keeper]);
}

static const struct host_network *find_network(const struct paths_wanted *wanted, const struct host_network *like)
{
	for (size_t i = 0; i < wanted->count; i++)
		if (wanted->networks[i].link.index == like->link.index &&
		    sockaddr_ip_equal(&wanted->networks[i].address, &like->address))
			return &wanted->networks[i];
	return NULL;
}

/* Prints the verdict of each network for which it has changed. */
static void tell(const struct paths_mender *mender, const struct paths_wanted *before)
{
	char name[128], fate[256], fate_before[256];

	for (size_t i = 0; i < mender->wanted.count; i++) {
		const struct host_network *network = &mender->wanted.networks[i];
		const struct host_network *earlier = find_network(before, network);

		format_name(network, name, sizeof(name));
		format_fate(network, fate, sizeof(fate));
		fate_before[0] = '\0';
		if (earlier)
			format_fate(earlier, fate_before, sizeof(fate_before));
		if (mender->dry_run)
			printf("# %s: %s\n", shell_printable(name), fate);
		else if (strcmp(fate, fate_before) != 0)
			paths_say("%s: %s", name, fate);
	}
	for (size_t i = 0; i < before->count; i++)
		if (!find_network(&mender->wanted, &before->networks[i])) {
			format_name(&before->networks[i], name, sizeof(name));
			paths_say("%s: gone", name);
		}
}

static const char *remedy_of(const struct paths_operation *operation, int error)
{
	if (error == -EPERM)
		return "; it needs CAP_NET_ADMIN: run it as root, or as convertize-paths.service";
	if (operation->kind == PATHS_ENDPOINT_ADD && error == -EEXIST)
		return "; somebody else has added it";
	if (operation->kind == PATHS_ENDPOINT_ADD && (error == -EINVAL || error == -ERANGE || error == -ENOSPC))
		return "; MPTCP takes 8 endpoints: see ip mptcp endpoint, and leave devices out by never-device";
	if (operation->kind == PATHS_LIMIT_SET)
		return "; MPTCP's limit is 8 subflows";
	return "";
}

static void tell_failure(struct paths_mender *mender, const char *command, const struct paths_operation *operation, int error)
{
	char text[sizeof(mender->problem)];

	snprintf(text, sizeof(text), "%s: %s%s", command, strerror(-error), remedy_of(operation, error));
	if (strcmp(text, mender->problem) != 0)
		paths_say("%s", text);
	memcpy(mender->problem, text, sizeof(text));
}

/* --- operations ------------------------------------------------------------------------- */

/* Notes in the memory what the operation is about to make. */
static void remember(struct paths_mender *mender, const struct paths_operation *operation, unsigned int limit_now)
{
	struct paths_memory *memory = &mender->memory;

	if (!memory->table_first) {
		memory->table_first = mender->choice.table_first;
		memory->table_last = mender->choice.table_last;
	}
	if (operation->kind == PATHS_ENDPOINT_ADD)
		paths_memory_add(memory, &(struct paths_memory_endpoint){
						 .id = operation->endpoint.id,
						 .index = operation->endpoint.bound,
						 .address = operation->endpoint.address,
						 .since = clock_read_ns(CLOCK_REALTIME) / CLOCK_NS_PER_S,
					 });
	if (operation->kind == PATHS_LIMIT_SET) {
		if (!memory->limit_set)
			memory->limit_before = limit_now;
		memory->limit_set = operation->limit;
	}
}

static int save(struct paths_mender *mender)
{
	char path[PATHS_MEMORY_PATH_MAX];
	int ret = paths_memory_save(&mender->memory);

	if (ret < 0)
		paths_say("%s: %s; without this file, changes would outlive a kill, so none is made",
		    paths_memory_path(path), strerror(-ret));
	return ret;
}

/* Does the operations one by one, and continues after a failure. */
static int apply(struct paths_mender *mender, const struct paths_operations *operations)
{
	char command[PATHS_COMMAND_MAX];
	int failed = 0;

	for (size_t i = 0; i < operations->count; i++) {
		const struct paths_operation *operation = &operations->list[i];
		int ret = paths_kernel_apply(&mender->kernel, operation);

		paths_operation_format(operation, command);
		if (ret == 0)
			paths_say("+ %s", command);
		else
			tell_failure(mender, command, operation, ret);
		if ((operation->kind == PATHS_ENDPOINT_ADD && ret < 0) || (operation->kind == PATHS_ENDPOINT_DELETE && ret == 0))
			paths_memory_remove(&mender->memory, operation->endpoint.id);
		failed = ret < 0 ? ret : failed;
	}
	if (!failed)
		mender->problem[0] = '\0';
	return failed;
}

static void print(const struct paths_operations *operations)
{
	char command[PATHS_COMMAND_MAX];

	for (size_t i = 0; i < operations->count; i++)
		puts(paths_operation_format(&operations->list[i], command));
}

/* Saves the memory and does the operations, or with dry_run prints them. */
static int carry_out(struct paths_mender *mender, const struct paths_operations *operations, const struct host *host)
{
	int ret;

	if (mender->dry_run) {
		print(operations);
		return 0;
	}
	if (!operations->count)
		return 0;
	for (size_t i = 0; i < operations->count; i++)
		remember(mender, &operations->list[i], host->endpoints.subflow_limit);
	ret = save(mender);
	if (ret == 0)
		ret = apply(mender, operations);
	return ret;
}

static bool adds_endpoint(const struct paths_operations *operations)
{
	for (size_t i = 0; i < operations->count; i++)
		if (operations->list[i].kind == PATHS_ENDPOINT_ADD)
			return true;
	return false;
}

/*
 * Looks for other managers. If NetworkManager doesn't answer, we don't know which networks its user forbids, or keeps for backup. So its
 * earlier answer still counts, we add and change no endpoint, and the next look asks again.
 */
static void ask_others(struct paths_mender *mender)
{
	const int before = mender->others_error;

	mender->others_error = host_managers_read(&mender->others);
	mender->others_at = mender->others_error ? 0 : clock_ns();
	if (mender->others_error && !before)
		paths_say("NetworkManager runs, but nmcli doesn't tell its settings: %s; no endpoint is made until it does; see "
			  "nmcli device show", strerror(-mender->others_error));
}

static void leave_to_next_look(struct paths_operations *operations)
{
	size_t left = 0;

	for (size_t i = 0; i < operations->count; i++)
		if (operations->list[i].kind != PATHS_ENDPOINT_ADD && operations->list[i].kind != PATHS_ENDPOINT_CHANGE)
			operations->list[left++] = operations->list[i];
	operations->count = left;
}

static int find_wanted(struct paths_mender *mender, struct host *host)
{
	struct paths_wanted found;
	int ret;

	host->managers = mender->others;
	ret = paths_wanted_find(&found, host, &mender->choice, &mender->memory);
	if (ret < 0)
		return ret;
	paths_wanted_fini(&mender->wanted);
	mender->wanted = found;
	return 0;
}

/*
 * Keeps the endpoint of a network or address that is gone as long as some connection has no established subflow from another address. If the
 * kernel has more subflows than fit, deletes these endpoints at once.
 */
static void keep_needed(struct paths_mender *mender, const struct host *host, struct paths_operations *operations)
{
	static struct paths_subflows subflows;
	struct paths_wanted *wanted = &mender->wanted;
	union sockaddr_ip going[HOST_ENDPOINTS_USED_MAX];
	bool needed[HOST_ENDPOINTS_USED_MAX];
	size_t count = 0;

	mender->is_due = false;
	for (size_t i = 0; i < operations->count && count < HOST_ENDPOINTS_USED_MAX; i++)
		if (operations->list[i].kind == PATHS_ENDPOINT_DELETE &&
		    paths_wanted_is_outage(wanted, &operations->list[i].endpoint.address))
			going[count++] = operations->list[i].endpoint.address;
	if (!count || !wanted->may_keep || paths_kernel_subflows(&subflows) < 0 || subflows.more)
		return;
	paths_needed_find(&subflows, going, count, needed);
	for (size_t i = 0; i < count; i++)
		if (needed[i])
			wanted->needed[wanted->needed_count++] = going[i];
	if (wanted->needed_count)
		paths_difference_find(operations, wanted, host, &mender->choice, &mender->memory);
}

int paths_host_read(struct host *out, struct paths_memory *memory)
{
	int ret = host_read(out, NULL);

	if (ret < 0)
		return ret;
	if (paths_memory_load(memory) < 0)
		memset(memory, 0, sizeof(*memory));
	paths_memory_mark(memory, &out->endpoints);
	host_managers_read(&out->managers);
	return 0;
}

static int read_host(struct paths_mender *mender, struct host *host)
{
	int ret = host_read(host, &mender->kernel.route);

	/* after an error we don't know our endpoints, and must not forget them; without MPTCP (-ENOENT) there are only routes and rules */
	if (ret == 0 && host->endpoints_error < 0 && host->endpoints_error != -ENOENT) {
		ret = host->endpoints_error;
		host_fini(host);
	}
	if (ret < 0)
		paths_say("links, addresses, routes and endpoints can't be read: %s", strerror(-ret));
	else
		paths_memory_mark(&mender->memory, &host->endpoints);
	return ret;
}

/* Reads the host, and finds the operations. host_fini() frees @host in any case. */
static int find_difference(struct paths_mender *mender, struct host *host, struct paths_operations *out)
{
	int ret = read_host(mender, host);

	if (ret == 0)
		ret = find_wanted(mender, host);
	if (ret == 0)
		paths_difference_find(out, &mender->wanted, host, &mender->choice, &mender->memory);
	return ret;
}

int paths_mend(struct paths_mender *mender)
{
	static struct paths_operations operations;
	struct paths_wanted before = mender->wanted;
	struct host host;
	int ret;

	mender->wanted = (struct paths_wanted){ .count = 0 };
	ret = find_difference(mender, &host, &operations);
	/* Deletions can't wait for nmcli. We ask before we add an endpoint, and now and then when there is nothing to do. */
	if (ret == 0 && (adds_endpoint(&operations) || !mender->others_at ||
			 (!operations.count && clock_ns() - mender->others_at > OTHERS_NS))) {
		ask_others(mender);
		host_fini(&host); /* it may have changed meanwhile */
		ret = find_difference(mender, &host, &operations);
	}
	if (ret == 0) {
		keep_needed(mender, &host, &operations);
		if (mender->others_error)
			leave_to_next_look(&operations);
		tell(mender, &before);
		ret = carry_out(mender, &operations, &host);
		paths_wanted_fini(&before);
	} else {
		paths_wanted_fini(&mender->wanted);
		mender->wanted = before;
	}
	if (ret == 0 && !mender->dry_run && mender->memory.table_first) {
		/* the routes in tables of an earlier choice are gone now */
		mender->memory.table_first = mender->choice.table_first;
		mender->memory.table_last = mender->choice.table_last;
		ret = save(mender);
	}
	host_fini(&host);
	return ret < 0 ? ret : mender->others_error;
}

size_t paths_managed_addresses(const struct paths_mender *mender, struct paths_managed out[static PATHS_OUTAGES_MAX])
{
	const struct host_network *found[PATHS_OUTAGES_MAX];
	size_t count = 0, at;

	for (size_t i = 0; i < mender->wanted.count && count < PATHS_OUTAGES_MAX; i++) {
		const struct host_network *network = &mender->wanted.networks[i];
		bool own = false;

		for (size_t j = 0; j < mender->memory.count; j++)
			own = own || sockaddr_ip_equal(&mender->memory.endpoint[j].address, &network->address);
		if (!own || network->verdict != HOST_USED)
			continue;
		for (at = count++; at > 0 && found[at - 1]->metric > network->metric; at--)
			found[at] = found[at - 1];
		found[at] = network;
	}
	for (size_t i = 0; i < count; i++)
		out[i] = (struct paths_managed){ found[i]->address, found[i]->link.carrier };
	for (size_t i = 0; i < mender->memory.count && count < PATHS_OUTAGES_MAX; i++) {
		const union sockaddr_ip *address = &mender->memory.endpoint[i].address;

		if (!paths_wanted_used(&mender->wanted, address) && paths_wanted_keeps(&mender->wanted, address))
			out[count++] = (struct paths_managed){ *address, false };
	}
	return count;
}

static int renew_endpoint(struct paths_mender *mender, const struct paths_memory_endpoint *known, const struct paths_renewal *renewal)
{
	const struct host_network *network = paths_wanted_used(&mender->wanted, &known->address);
	struct paths_operation operation = { .endpoint = { .address = known->address, .id = known->id, .bound = known->index } };
	int ret = 0;

	if (!network)
		return 0;
	operation.endpoint.flags = paths_endpoint_flags(network);
	operation.kind = PATHS_ENDPOINT_DELETE;
	if (renewal->remove)
		ret = paths_kernel_apply(&mender->kernel, &operation);
	operation.kind = PATHS_ENDPOINT_ADD;
	if (renewal->announce)
		operation.endpoint.flags = MPTCP_PM_ADDR_FLAG_SIGNAL;
	if ((renewal->add || renewal->announce) && ret == 0)
		ret = paths_kernel_apply(&mender->kernel, &operation);
	/* Linux sends MP_PRIO, with an acknowledgement, when the backup flag changes: so change it, and change it back */
	operation.kind = PATHS_ENDPOINT_CHANGE;
	for (int i = 0; renewal->prompt && i < 2 && ret == 0; i++) {
		operation.endpoint.flags ^= MPTCP_PM_ADDR_FLAG_BACKUP;
		ret = paths_kernel_apply(&mender->kernel, &operation);
	}
	return ret;
}

int paths_renew_endpoints(struct paths_mender *mender, const struct paths_renewal *renewals, size_t count)
{
	int ret = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < mender->memory.count && ret == 0; j++)
			if (sockaddr_ip_equal(&mender->memory.endpoint[j].address, &renewals[i].local))
				ret = renew_endpoint(mender, &mender->memory.endpoint[j], &renewals[i]);
	return ret;
}

/* Reduces the wanted networks to those that carry a connection's last subflow. Returns false if there are none. */
static bool leave_needed(struct paths_mender *mender, struct host *host, const struct paths_subflows *open)
{
	union sockaddr_ip addresses[PATHS_OUTAGES_MAX];
	struct paths_managed own[PATHS_OUTAGES_MAX];
	bool needed[PATHS_OUTAGES_MAX];
	struct paths_wanted *wanted = &mender->wanted;
	size_t count, staying = 0, left = 0;
	char name[128];

	if (find_wanted(mender, host) < 0)
		return false;
	wanted->keeps = wanted->may_keep = false;
	count = paths_managed_addresses(mender, own);
	for (size_t i = 0; i < count; i++)
		addresses[i] = own[i].address;
	if (paths_needed_find(open, addresses, count, needed) == 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (needed[i])
			addresses[staying++] = addresses[i];
	for (size_t i = 0; i < wanted->count; i++) {
		if (!paths_is_among(&wanted->networks[i].address, addresses, staying))
			continue;
		format_name(&wanted->networks[i], name, sizeof(name));
		paths_say("%s: left as it is, since open connections have no other path; \"convertize paths --remove\" takes it away", name);
		wanted->networks[left++] = wanted->networks[i];
	}
	wanted->count = left;
	wanted->exclusion_count = 0;
	wanted->ends = true;
	return true;
}

int paths_unmend(struct paths_mender *mender, const struct paths_subflows *open)
{
	static struct paths_operations operations;
	struct host host;
	int ret = read_host(mender, &host);
	bool some;

	if (ret < 0)
		return ret;
	some = open && leave_needed(mender, &host, open);
	paths_difference_find(&operations, some ? &mender->wanted : NULL, &host, &mender->choice, &mender->memory);
	if (mender->dry_run)
		print(&operations);
	else
		ret = apply(mender, &operations); /* without save(): it makes nothing, and must not leave anything if the disk is full */
	if (ret == 0 && !mender->dry_run) {
		mender->memory.limit_set = mender->memory.limit_before = 0;
		if (!some)
			memset(&mender->memory, 0, sizeof(mender->memory));
		ret = save(mender);
	}
	host_fini(&host);
	return ret;
}

int paths_mender_init(struct paths_mender *mender, const struct paths_choice *choice, bool dry_run)
{
	char path[PATHS_MEMORY_PATH_MAX];
	int ret;

	memset(mender, 0, sizeof(*mender));
	mender->choice = *choice;
	mender->dry_run = dry_run;
	ret = paths_memory_load(&mender->memory);
	if (ret < 0) {
		paths_say("%s: %s; so it isn't known what an earlier run made, and nothing is changed", paths_memory_path(path), strerror(-ret));
		return ret;
	}
	ret = paths_kernel_open(&mender->kernel);
	if (ret < 0)
		paths_say("no netlink socket: %s", strerror(-ret));
	return ret;
}

void paths_mender_fini(struct paths_mender *mender)
{
	paths_kernel_close(&mender->kernel);
	paths_wanted_fini(&mender->wanted);
}
