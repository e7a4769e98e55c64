/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_list.c - the paths that a connection can begin on: networks, each with a converter; and the network of a direct connection
 */
#include "config.h"

#include "host/survey.h"

#include "client/converters.h"
#include "client/paths.h"
#include "client/settings.h"
#include "host/host_model.h"

#include <errno.h>
#include <string.h>

#define CONVERTERS_LISTED 4

/* Returns this user's settings for networks. */
static struct network_policy policy_of(const struct settings *settings)
{
	return (struct network_policy){ .paths = host_preferences(settings), .beside_vpn = settings->beside_vpn, .any_kind = true };
}

static size_t networks_find(const struct settings *settings, const union sockaddr_ip *to, struct network out[NETWORKS_MAX])
{
	const struct network_policy policy = policy_of(settings);

	return networks_to(to, &policy, out);
}

static void list_add(struct path_list *list, const struct settings *settings, int converter,
		     const union sockaddr_ip *addr, const struct network *network)
{
	struct path path = { .id.converter = converter, .preference = network ? network->preference : PATH_PREFERENCE_NONE };

	if (list->count == PATHS_MAX || (network && network->unused))
		return;
	if (network ? network->use == PATH_USE_NEVER : network_usual_is_never(host_preferences(settings), addr)) {
		list->forbidden = !list->count;
		return;
	}
	path.backup = network && (network->backup || network->use == PATH_USE_BACKUP);
	strcpy(list->names[list->count], network ? network->name : "the usual path");
	if (network && !network->usual) {
		path.id.source = network->source;
		path.device = network->device;
		path.bind_device = network->bind_device;
	}
	path.facts = paths_facts(&path.id);
	list->forbidden = false;
	list->addrs[list->count] = *addr;
	list->paths[list->count++] = path;
}

/* The networks that lead to the converters of an address family. We ask the kernel once. */
struct family {
	bool asked;
	struct network networks[NETWORKS_MAX];
	size_t count;
};

/* Only the usual path leads to a converter on this host. */
static bool is_loopback(const union sockaddr_ip *address)
{
	const struct in6_addr in6 = sockaddr_ip_in6(address);

	return IN6_IS_ADDR_LOOPBACK(&in6) || (IN6_IS_ADDR_V4MAPPED(&in6) && in6.s6_addr[12] == 127);
}

static const struct family *family_of(struct family families[2], const struct settings *settings, int converter)
{
	static const struct family none;
	const union sockaddr_ip *address = converters_address(converter);
	struct family *family = &families[sockaddr_ip_is_v4(address)];

	if (is_loopback(address))
		return &none;
	if (!family->asked)
		family->count = networks_find(settings, address, family->networks);
	family->asked = true;
	return family;
}

void path_list_make(struct path_list *list, const struct settings *settings, const struct converters_query *query)
{
	struct converters_query next_query = *query;
	union sockaddr_ip addrs[CONVERTERS_LISTED];
	struct family families[2] = { { .asked = false } };
	int converters[CONVERTERS_LISTED], count = 0;

	list->count = 0;
	list->forbidden = false;
	next_query.may_resolve = false;
	while (count < CONVERTERS_LISTED) {
		enum policy_verdict verdict = POLICY_CONVERT;
		const char *reason;

		converters[count] = converters_choose(settings, &next_query, &addrs[count], &verdict, &reason);
		if (converters[count] < 0)
			break;
		next_query.tried |= 1u << converters[count++];
	}
	for (int usual = 1; usual >= 0; usual--)
		for (int c = 0; c < count; c++) {
			const struct family *family = family_of(families, settings, converters[c]);
			bool known = false;

			for (size_t i = 0; i < family->count; i++) {
				known |= family->networks[i].usual;
				if (family->networks[i].usual == (usual != 0))
					list_add(list, settings, converters[c], &addrs[c], &family->networks[i]);
			}
			if (usual && !known) /* netlink is forbidden, or the route has no device of ours */
				list_add(list, settings, converters[c], &addrs[c], NULL);
		}
}

int path_list_choose(struct path_list *list, const struct settings *settings, const struct converters_query *query)
{
	int best;

	path_list_make(list, settings, query);
	best = paths_best(list->paths, list->count, 0);
	return best >= 0 && path_has_failed(list->paths[best].facts.state) && !host_preferences(settings)->count ? -1 : best;
}

/* Has path @i failed, and would we have chosen it instead of @best otherwise? For @best itself: has it failed? */
static bool is_missed(const struct path_list *list, size_t i, size_t best)
{
	const bool first = i < best;
	struct path both[2] = { list->paths[first ? i : best], list->paths[first ? best : i] };

	if (path_is_sound(list->paths[i].facts.state))
		return false;
	if (i == best)
		return true;
	both[!first].facts.state = CACHE_PATH_WORKS;
	return paths_best(both, 2, 0) == !first;
}

int path_list_missed(const struct path_list *list, int best)
{
	for (size_t i = 0; i < list->count; i++)
		if (is_missed(list, i, (size_t)best) && paths_is_trial_due(&list->paths[i].id))
			return (int)i;
	return -1;
}

bool path_list_is_forbidden(const struct settings *settings, const struct converters_query *query)
{
	struct path_list list;

	if (!path_preferences_forbid(host_preferences(settings)))
		return false;
	path_list_make(&list, settings, query);
	return list.forbidden;
}

const char *path_list_policy_breach(const struct settings *settings, const union sockaddr_ip *to)
{
	const struct network_policy policy = policy_of(settings);
	const enum policy_breach breach = networks_policy_breach(&policy, to);

	return breach ? policy_breach_text(breach) : NULL;
}

uint32_t path_list_on_one_device(const struct path_list *list, const struct path *own, uint32_t among)
{
	uint32_t found = 0;
	int device = -1;

	for (size_t i = 0; i < list->count; i++) {
		if (!(among >> i & 1) || list->paths[i].device == own->device)
			continue;
		if (device >= 0 && list->paths[i].device != device)
			return 0;
		device = list->paths[i].device;
		found |= 1u << i;
	}
	return found;
}

int path_list_elsewhere(struct path_list *list, const struct settings *settings, const struct converters_query *query,
			const struct path *own)
{
	uint32_t sound = 0;
	int best;

	path_list_make(list, settings, query);
	best = paths_best(list->paths, list->count, 0);
	if (best < 0 || path_has_failed(list->paths[best].facts.state))
		return -1;
	if (path_works(list->paths[best].facts.state))
		return best;
	for (size_t i = 0; i < list->count; i++)
		if (!path_has_failed(list->paths[i].facts.state))
			sound |= 1u << i;
	return paths_best(list->paths, list->count, ~path_list_on_one_device(list, own, sound));
}

bool error_means_no_path(int error)
{
	static const int errors[] = { ENETUNREACH, EHOSTUNREACH, EACCES, ENETDOWN, EHOSTDOWN, ENONET };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (error == errors[i])
			return true;
	return false;
}

int path_list_refused(struct path_list *list, const struct settings *settings, const struct converters_query *query,
		      const struct path_id *own, enum cache_path how)
{
	uint32_t skip = 0;
	int best;

	if (how == CACHE_PATH_SILENT)
		paths_note_failure(own, how);
	path_list_make(list, settings, query);
	for (size_t i = 0; i < list->count; i++)
		if (list->paths[i].id.converter == own->converter && IN6_ARE_ADDR_EQUAL(&list->paths[i].id.source, &own->source))
			skip |= 1u << i;
	best = paths_best(list->paths, list->count, skip);
	if (best >= 0 && path_has_failed(list->paths[best].facts.state))
		best = -1;
	if (how != CACHE_PATH_SILENT && best >= 0)
		paths_note_failure(own, how);
	return best;
}

const char *path_complaint(const struct path_id *id)
{
	switch (paths_facts_kept(id).state) {
	case CACHE_PATH_DATALESS:
		return "loses SYNs with data";
	case CACHE_PATH_LOSES:
		return "loses packets";
	case CACHE_PATH_REFUSES:
		return "refuses";
	default:
		return "is silent";
	}
}

/* --- direct connections --- */

/* The state of a network, by the converters that answer over it. */
struct known {
	bool works, silent;
};

/* @source: ::: the usual network */
static struct known known_of(const struct in6_addr *source)
{
	struct known known = { .works = false };

	for (int i = 0; i < converters_count(); i++) {
		const struct path_id id = { .converter = i, .source = *source };
		const enum cache_path state = paths_facts(&id).state;

		known.works |= path_works(state);
		known.silent |= state == CACHE_PATH_SILENT;
	}
	return known;
}

/* Are the converters silent on the usual path, while one has answered on the path from @network? */
static bool is_known_better(const struct network *network)
{
	const struct known usual = known_of(&in6addr_any);

	return usual.silent && !usual.works && known_of(&network->source).works;
}

/* Do we know that the usual path to a converter is silent? Makes no system call. */
static bool is_silent(void)
{
	for (int i = 0; i < converters_count(); i++)
		if (paths_facts_usual(i).state == CACHE_PATH_SILENT)
			return true;
	return false;
}

/* Binds @fd to the network of @device, or with 0 to one that we know to be better than the usual one. Returns false if there is none. */
static bool bind_to_better(int fd, const struct settings *settings, const union sockaddr_ip *server, int device, char name[IF_NAMESIZE])
{
	struct network networks[NETWORKS_MAX];
	size_t count = networks_find(settings, server, networks);

	for (size_t i = 0; i < count; i++) {
		const struct network *network = &networks[i];

		if (network->usual || (device ? network->device != device : !is_known_better(network)) || network->use == PATH_USE_NEVER ||
		    !network_bind(fd, &network->source, network->bind_device ? network->device : 0))
			continue;
		strcpy(name, network->name);
		return true;
	}
	return false;
}

/* Finds the best network that the user excludes less than the usual one, @networks[0]. Returns that if there is none. */
static const struct network *find_allowed(const struct network networks[], size_t count)
{
	const struct network *best = networks;

	for (const struct network *network = networks + 1; network < networks + count; network++) {
		const struct known known = known_of(&network->source);

		/* a network for backup is better than one that doesn't work */
		if (network->use >= networks->use || (networks->use == PATH_USE_BACKUP && known.silent && !known.works))
			continue;
		if (network->use < best->use || (network->use == best->use && network->preference < best->preference))
			best = network;
	}
	return best;
}

/*
 * If the user excludes the usual network (=never, =backup), binds @fd to the best one that is excluded less. Returns 1; 0 if nothing had to
 * be done; or -ENETUNREACH if =never leaves none.
 */
static int bind_to_allowed(int fd, const struct settings *settings, const union sockaddr_ip *server, char name[IF_NAMESIZE])
{
	struct network networks[NETWORKS_MAX];
	const struct in6_addr source = network_source(fd);
	const struct network *best;
	size_t count;

	if (!path_preferences_restrict(host_preferences(settings)) || !IN6_IS_ADDR_UNSPECIFIED(&source))
		return 0;
	count = networks_find(settings, server, networks);
	if (!count && network_usual_is_never(host_preferences(settings), server))
		return -ENETUNREACH;
	if (!count || !networks->usual || networks->use == PATH_USE_ORDERED)
		return 0;
	best = find_allowed(networks, count);
	if (best == networks || !network_bind(fd, &best->source, best->bind_device ? best->device : 0))
		return networks->use == PATH_USE_NEVER ? -ENETUNREACH : 0;
	strcpy(name, best->name);
	return 1;
}

int path_direct_take(int fd, const struct settings *settings, const union sockaddr_ip *server, bool moved, int device, struct path_direct *taken)
{
	const bool silent = is_silent();

	if ((moved || silent) && bind_to_better(fd, settings, server, moved ? device : 0, taken->name)) {
		taken->why = silent ? "is silent" : "doesn't work";
		return 1;
	}
	taken->why = "is not to be used";
	return bind_to_allowed(fd, settings, server, taken->name);
}
