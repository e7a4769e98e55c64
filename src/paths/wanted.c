/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wanted.c - computes the endpoints, rules and tables that should exist, from the host's state and the user's choice
 *
 * We use one address of each family on each device: a second one would be a second path over the same network (host/judge.c). That
 * address gets an endpoint, from which Linux opens subflows; rules, "from ADDRESS lookup TABLE", for packets from the address; and a
 * table for the device, with its default route and the networks on its link.
 */
#include "config.h"

#include "paths/outage.h"
#include "paths/plan.h"

#include "common/problems.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the user's choice ------------------------------------------------------------------ */

/* The kernel's own tables (RT_TABLE_COMPAT to RT_TABLE_LOCAL), which we never use. */
#define KERNEL_TABLE_FIRST 252
#define KERNEL_TABLE_LAST 255

#define PATTERN_MAX 64 /* room for a pattern with brackets, for a name of IF_NAMESIZE - 1 bytes */

/* Rejects names that no device can have. A pattern without special characters is a name. */
static bool check_list(const char *option, const char *list, char problem[static PATHS_PROBLEM_MAX])
{
	char pattern[PATTERN_MAX], quote[PROBLEM_QUOTE_MAX];
	const char *found;
	size_t len;

	while ((found = name_list_next(&list, &len))) {
		snprintf(pattern, sizeof(pattern), "%.*s", (int)(len < PATTERN_MAX ? len : PATTERN_MAX - 1), found);
		if (len >= PATTERN_MAX || (len >= IF_NAMESIZE && !name_is_pattern(pattern))) {
			snprintf(problem, PATHS_PROBLEM_MAX,
				 "%s: %s is longer than a device's name, %d characters; \"ip link\" shows the names",
				 option, problems_quote(pattern, quote), IF_NAMESIZE - 1);
			return false;
		}
		if (strchr(pattern, '/')) {
			snprintf(problem, PATHS_PROBLEM_MAX, "%s: %s isn't a device's name; \"ip link\" shows the names",
				 option, problems_quote(pattern, quote));
			return false;
		}
	}
	return true;
}

static bool read_number(const char **text, uint32_t *out)
{
	char *end;
	unsigned long value;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	value = strtoul(*text, &end, 10);
	if (errno || value == 0 || value > UINT32_MAX)
		return false;
	*text = end;
	*out = (uint32_t)value;
	return true;
}

static bool read_tables(struct paths_choice *out, const char *text, char problem[static PATHS_PROBLEM_MAX])
{
	char quote[PROBLEM_QUOTE_MAX];
	const char *at = text;

	if (!read_number(&at, &out->table_first) || *at++ != '-' || !read_number(&at, &out->table_last) || *at ||
	    out->table_last < out->table_first) {
		snprintf(problem, PATHS_PROBLEM_MAX, "tables: %s isn't a range of routing tables; write it as in %d-%d",
			 problems_quote(text, quote), PATHS_TABLE_FIRST, PATHS_TABLE_LAST);
		return false;
	}
	if (out->table_first <= KERNEL_TABLE_LAST && out->table_last >= KERNEL_TABLE_FIRST) {
		snprintf(problem, PATHS_PROBLEM_MAX,
			 "tables: %s has tables that are the kernel's, %d to %d; choose a range without them",
			 problems_quote(text, quote), KERNEL_TABLE_FIRST, KERNEL_TABLE_LAST);
		return false;
	}
	return true;
}

/* Reads the list of CONVERT_PATHS. */
static bool read_paths(struct paths_choice *out, const char *text, char problem[static PATHS_PROBLEM_MAX])
{
	char copy[PATHS_PROBLEM_MAX * 4], quote[PROBLEM_QUOTE_MAX], *rest;
	const char *wrong = NULL;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *one = strtok_r(copy, ", \t\n", &rest); one && !wrong; one = strtok_r(NULL, ", \t\n", &rest)) {
		wrong = path_preferences_add(&out->paths, one);
		if (wrong)
			snprintf(problem, PATHS_PROBLEM_MAX, "paths: %s %s", problems_quote(one, quote), wrong);
	}
	out->policy.paths = &out->paths;
	return !wrong;
}

/* Rejects a device for which "paths" contradicts the list. */
static bool check_agreement(const struct paths_choice *choice, const char *option, const char *list, enum path_use use,
			    char problem[static PATHS_PROBLEM_MAX])
{
	for (size_t i = 0; i < choice->paths.count; i++) {
		const struct path_wish *wish = &choice->paths.wishes[i];
		const char *name = path_use_name(wish->use);

		if (!*wish->device || wish->use == use || !name_list_has(list, wish->device))
			continue;
		snprintf(problem, PATHS_PROBLEM_MAX, "%s: it names %s, and paths has %s%s%s; keep one: paths also governs programs",
			 option, wish->device, wish->device, *name ? "=" : "", name);
		return false;
	}
	return true;
}

bool paths_choice_read(struct paths_choice *out, const struct paths_texts *texts, char problem[static PATHS_PROBLEM_MAX])
{
	const char *device = texts->device, *beside_vpn = texts->beside_vpn;
	char quote[PROBLEM_QUOTE_MAX];

	*out = (struct paths_choice){
		.policy = { .device = device && *device ? device : NULL, .never = texts->never, .backup = texts->backup,
			  .beside_vpn = beside_vpn && strcmp(beside_vpn, "1") == 0 },
		.table_first = PATHS_TABLE_FIRST,
		.table_last = PATHS_TABLE_LAST,
	};
	if (beside_vpn && strcmp(beside_vpn, "1") != 0 && strcmp(beside_vpn, "0") != 0) {
		snprintf(problem, PATHS_PROBLEM_MAX, "beside-vpn: %s is neither 0 nor 1", problems_quote(beside_vpn, quote));
		return false;
	}
	return check_list("device", device, problem) && check_list("never-device", texts->never, problem) &&
	       check_list("backup-device", texts->backup, problem) && (!texts->tables || read_tables(out, texts->tables, problem)) &&
	       (!texts->paths || read_paths(out, texts->paths, problem)) && quotas_read(&out->quotas, texts->quota, problem) &&
	       check_agreement(out, "never-device", texts->never, PATH_USE_NEVER, problem) &&
	       check_agreement(out, "backup-device", texts->backup, PATH_USE_BACKUP, problem);
}

/* --- the wanted state ------------------------------------------------------------------- */

#define LIMIT_MIN 2 /* Linux's default since 5.19: leaves room for a subflow that replaces another one */

bool paths_wanted_is_own(uint8_t protocol, uint32_t table, const struct paths_choice *choice,
			 const struct paths_memory *memory)
{
	return protocol == HOST_PROTOCOL_OURS && ((table >= choice->table_first && table <= choice->table_last) ||
						  (table >= memory->table_first && table <= memory->table_last));
}

bool paths_wanted_is_own_rule(const struct host_rule *rule, const struct paths_choice *choice, const struct paths_memory *memory)
{
	return (rule->protocol == HOST_PROTOCOL_OURS && rule->shortest) || paths_wanted_is_own(rule->protocol, rule->table, choice, memory);
}

/* --- tables ----------------------------------------------------------------------------- */

static bool is_taken(uint32_t table, unsigned int index, const struct paths_wanted *wanted, const struct host *host)
{
	for (size_t i = 0; i < wanted->count; i++)
		if (wanted->networks[i].table == table && wanted->networks[i].link.index != index)
			return true;
	return host_table_is_taken(host, table, index);
}

/* Returns the device's table: the one that it has, or the first free one, searching from the place of the device's index. */
static uint32_t find_table(unsigned int index, const struct paths_wanted *wanted, const struct host *host,
			   const struct paths_choice *choice)
{
	uint32_t first = choice->table_first, count = choice->table_last - first + 1, table;

	for (size_t i = 0; i < host->route_count; i++) {
		const struct host_route *route = &host->routes[i];

		if (route->protocol == HOST_PROTOCOL_OURS && route->index == index && route->table >= first &&
		    route->table <= choice->table_last && !is_taken(route->table, index, wanted, host))
			return route->table;
	}
	for (uint32_t i = 0; i < count; i++) {
		/* with 64 bits: in a range that ends with the last table number the sum may exceed 32 bits */
		table = first + (uint32_t)(((uint64_t)index + i) % count);
		if (!is_taken(table, index, wanted, host))
			return table;
	}
	return 0;
}

static const struct host_rule *find_foreign_rule(const struct host *host, const union sockaddr_ip *from,
						  const struct paths_choice *choice, const struct paths_memory *memory)
{
	for (size_t i = 0; i < host->rule_count; i++)
		if (sockaddr_ip_equal(&host->rules[i].from, from) && !paths_wanted_is_own_rule(&host->rules[i], choice, memory))
			return &host->rules[i];
	return NULL;
}

/* --- all of it -------------------------------------------------------------------------- */

/* Does this verdict mean that the network is gone by itself, or its address replaced, and not excluded by a setting? */
static bool is_outage(enum host_verdict verdict)
{
	return verdict == HOST_DOWN || verdict == HOST_NO_CARRIER || verdict == HOST_NO_ROUTE || verdict == HOST_NOT_READY ||
	       verdict == HOST_SECOND;
}

bool paths_wanted_is_outage(const struct paths_wanted *wanted, const union sockaddr_ip *address)
{
	for (size_t i = 0; i < wanted->count; i++)
		if (sockaddr_ip_equal(&wanted->networks[i].address, address))
			return is_outage(wanted->networks[i].verdict);
	return true;
}

bool paths_wanted_needs(const struct paths_wanted *wanted, const union sockaddr_ip *address)
{
	return paths_is_among(address, wanted->needed, wanted->needed_count);
}

bool paths_wanted_keeps(const struct paths_wanted *wanted, const union sockaddr_ip *address)
{
	return (wanted->keeps || paths_wanted_needs(wanted, address)) && paths_wanted_is_outage(wanted, address);
}

const struct host_network *paths_wanted_used(const struct paths_wanted *wanted, const union sockaddr_ip *address)
{
	for (size_t i = 0; i < wanted->count; i++)
		if (wanted->networks[i].verdict == HOST_USED && sockaddr_ip_equal(&wanted->networks[i].address, address))
			return &wanted->networks[i];
	return NULL;
}

/* Returns the number of used networks of the family that has more. */
static unsigned int used_count(const struct paths_wanted *wanted)
{
	unsigned int count[2] = { 0 };

	for (size_t i = 0; i < wanted->count; i++)
		if (wanted->networks[i].verdict == HOST_USED)
			count[sockaddr_ip_is_v4(&wanted->networks[i].address)]++;
	return count[0] > count[1] ? count[0] : count[1];
}

/* Does NetworkManager keep endpoints here? It has the property since 1.40, for all of its devices. */
static bool does_nm_keep(const struct host_managers *managers)
{
	for (size_t i = 0; i < managers->nm_count; i++)
		if (managers->nm[i].endpoints || managers->nm[i].disabled)
			return true;
	return false;
}

/* Adds a device to the published exclusions, unless it is there, or its name too long for a rule: then programs don't rely on it. */
static void add_exclusion(struct paths_wanted *out, const char *name, size_t len, uint32_t priority)
{
	struct host_rule *exclusion = &out->exclusions[out->exclusion_count];

	if (!len || len >= sizeof(exclusion->device) || out->exclusion_count == PATH_EXCLUSIONS_MAX)
		return;
	*exclusion = (struct host_rule){ .protocol = HOST_PROTOCOL_OURS, .priority = priority };
	memcpy(exclusion->device, name, len);
	for (size_t i = 0; i < out->exclusion_count; i++)
		if (out->exclusions[i].priority == exclusion->priority && strcmp(out->exclusions[i].device, exclusion->device) == 0)
			return;
	out->exclusion_count++;
}

static void add_exclusions(struct paths_wanted *out, const char *list, uint32_t priority)
{
	const char *name;
	size_t len;

	while ((name = name_list_next(&list, &len)))
		add_exclusion(out, name, len, priority);
}

static void find_exclusions(struct paths_wanted *out, const struct network_policy *policy)
{
	static const struct {
		enum path_use use;
		uint32_t priority;
	} uses[] = { { PATH_USE_BACKUP, HOST_POLICY_BACKUP_PRIORITY }, { PATH_USE_NEVER, HOST_POLICY_NEVER_PRIORITY } };

	for (size_t use = 0; use < 2; use++) {
		add_exclusions(out, uses[use].use == PATH_USE_NEVER ? policy->never : policy->backup, uses[use].priority);
		for (size_t i = 0; policy->paths && i < policy->paths->count; i++)
			if (policy->paths->wishes[i].use == uses[use].use)
				add_exclusions(out, policy->paths->wishes[i].device, uses[use].priority);
	}
}

/*
 * Tells programs, which can't ask NetworkManager, which devices are metered: their endpoints are backups, and connections begin elsewhere.
 * Leaves out devices whose endpoints NetworkManager keeps: those are no backups, and programs could avoid them only without Multipath TCP.
 * Devices whose flags are "disabled" get no endpoint, but a connection may begin on them: with one network, or a VPN, there is no other.
 */
static void find_metered(struct paths_wanted *out, const struct host_managers *managers)
{
	static const struct network_policy none;

	for (size_t i = 0; i < managers->nm_count; i++) {
		const struct host_nm_device *nm = &managers->nm[i];
		uint8_t preference;
		const enum path_use use = network_policy_use(&none, nm, nm->name, &in6addr_any, &preference);

		if (use != PATH_USE_BACKUP || nm->endpoints)
			continue;
		add_exclusions(out, nm->name, HOST_POLICY_BACKUP_PRIORITY);
		add_exclusions(out, nm->name, HOST_PROGRAMS_BACKUP_PRIORITY);
	}
}

int paths_wanted_find(struct paths_wanted *out, const struct host *host, const struct paths_choice *choice,
		      const struct paths_memory *memory)
{
	const bool keeps_endpoints = !host->managers.mptcpd && !host->managers.userspace;
	unsigned int used;

	memset(out, 0, sizeof(*out));
	out->count = host_networks_find(&out->networks, host, &choice->policy);
	if (!out->networks)
		return -ENOMEM;
	for (size_t i = 0; i < out->count; i++) {
		struct host_network *network = &out->networks[i];
		const struct host_rule *rule = find_foreign_rule(host, &network->address, choice, memory);

		if (!host_network_is_routed(network))
			continue;
		network->table_is_ours = !rule;
		network->table = rule ? rule->table : find_table(network->link.index, out, host, choice);
	}
	used = used_count(out);
	out->limit = used < LIMIT_MIN ? LIMIT_MIN : used > HOST_ENDPOINTS_USED_MAX ? HOST_ENDPOINTS_USED_MAX : used;
	out->may_keep = keeps_endpoints && !host_vpn(host, &choice->policy);
	if (keeps_endpoints && !does_nm_keep(&host->managers))
		find_exclusions(out, &choice->policy);
	if (keeps_endpoints)
		find_metered(out, &host->managers);
	for (size_t i = 0; i < choice->quotas.count; i++) {
		if (choice->quota_states[i] == QUOTA_NEVER)
			add_exclusions(out, choice->quotas.list[i].device, HOST_PROGRAMS_NEVER_PRIORITY);
		if (choice->quota_states[i] == QUOTA_BACKUP)
			add_exclusions(out, choice->quotas.list[i].device, HOST_PROGRAMS_BACKUP_PRIORITY);
	}
	out->keeps = out->may_keep && !used;
	return 0;
}

void paths_wanted_fini(struct paths_wanted *wanted)
{
	free(wanted->networks);
	wanted->networks = NULL;
	wanted->count = 0;
}
