/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warden_policy.c - decides which calls the main process carries out for the serving process (no I/O)
 *
 * The main process (the warden) has the rights and reads no byte of a client; the serving process asks it for calls
 * that need rights. An attacker in the serving process may send any call, so we compare each call with the needs of
 * the settings: of those in force, and of those read last, since during a reload the serving process acts on either, or both.
 * The warden has read both from their files by itself.
 */
#include "config.h"

#include "convertd/process/warden.h"

#include "convertd/config/convertd_settings.h"

#include <assert.h>
#include <string.h>

static_assert(SETTINGS_WORKERS_MAX <= WARDEN_QUEUES_MAX, "a queue for each worker");

void warden_grant_init(struct warden_grant *grant, const struct convertd_settings *settings,
		       const struct listen_address *units, size_t units_count)
{
	memset(grant, 0, sizeof(*grant));
	memcpy(grant->listen, settings->listen, settings->listen_count * sizeof(grant->listen[0]));
	grant->listen_count = settings->listen_count;
	for (size_t i = 0; i < units_count && i < LISTEN_ADDRESSES_MAX; i++)
		grant->listen[grant->listen_count++] = units[i];
	for (size_t i = 0; i < settings->metrics_count; i++)
		if (!settings->metrics[i].path[0])
			grant->metrics[grant->metrics_count++] = settings->metrics[i].address;
	memcpy(grant->congestion[0], settings->congestion_client, CONGESTION_NAME_MAX);
	memcpy(grant->congestion[1], settings->congestion_server, CONGESTION_NAME_MAX);
	grant->withhold = settings->hold_syn != SETTINGS_HOLD_OFF;
	grant->transparent = settings->sources.preserve;
}

static bool listens_at(const struct warden_grant *grant, const struct listen_address *where)
{
	for (size_t i = 0; i < grant->listen_count; i++)
		if (listen_address_equal(&grant->listen[i], where))
			return true;
	return false;
}

static bool binds_to(const struct warden_grant *grant, const union sockaddr_ip *address)
{
	for (size_t i = 0; i < grant->listen_count; i++)
		if (sockaddr_ip_equal(&grant->listen[i].address, address))
			return true;
	for (size_t i = 0; i < grant->metrics_count; i++)
		if (sockaddr_ip_equal(&grant->metrics[i], address))
			return true;
	return false;
}

static bool grants(const struct warden_grant *grant, const struct warden_call *call)
{
	switch ((enum warden_call_kind)call->kind) {
	case WARDEN_CALL_QUEUES:
	case WARDEN_CALL_QUEUE:
	case WARDEN_CALL_VERDICTS:
		return grant->withhold || !call->count;
	case WARDEN_CALL_BIND:
		return binds_to(grant, &call->listen[0].address);
	case WARDEN_CALL_TRANSPARENT:
		return grant->transparent;
	case WARDEN_CALL_CONGESTION:
		return strcmp(call->congestion, grant->congestion[0]) == 0 ||
		       strcmp(call->congestion, grant->congestion[1]) == 0;
	case WARDEN_CALL_IN_FORCE:
	case WARDEN_CALL_NOTICE:
	case WARDEN_CALL_LEAVE:
		return true;
	case WARDEN_CALL_RULES: /* allows_rules() */
	case WARDEN_CALL_KIND_COUNT:
		break;
	}
	return false;
}

/*
 * During a reload the rules are for the listeners of both settings. Even if SYNs are no longer withheld, the serving process needs the
 * rules that keep SYN+ACKs from confirming data, without queues.
 */
static bool allows_rules(const struct warden_policy *policy, const struct warden_call *call)
{
	if (call->queues && !policy->in_force.withhold && !policy->latest.withhold)
		return false;
	for (uint32_t i = 0; i < call->count; i++)
		if (!listens_at(&policy->in_force, &call->listen[i]) && !listens_at(&policy->latest, &call->listen[i]))
			return false;
	return true;
}

bool warden_policy_allows(const struct warden_policy *policy, const struct warden_call *call)
{
	if (call->kind == WARDEN_CALL_RULES)
		return allows_rules(policy, call);
	return grants(&policy->in_force, call) || grants(&policy->latest, call);
}

/* Tells whether a packet to @destination and @port reaches @listen; "::" stands for all addresses of both families. */
static bool covers(const struct listen_address *listen, const struct in6_addr *destination, uint16_t port)
{
	struct in6_addr address = sockaddr_ip_in6(&listen->address);
	bool v4 = IN6_IS_ADDR_V4MAPPED(destination);

	if (sockaddr_ip_port(&listen->address) != port)
		return false;
	if (listen->address.sa.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&address))
		return true;
	if (listen->address.sa.sa_family == AF_INET &&
	    listen->address.in.sin_addr.s_addr == htonl(INADDR_ANY))
		return v4;
	return IN6_ARE_ADDR_EQUAL(&address, destination);
}

static bool reaches(const struct warden_grant *grant, const struct in6_addr *destination, uint16_t port)
{
	for (size_t i = 0; i < grant->listen_count; i++)
		if (covers(&grant->listen[i], destination, port))
			return true;
	return false;
}

bool warden_policy_allows_syn(const struct warden_policy *policy, const struct in6_addr *destination,
			      uint16_t port)
{
	return reaches(&policy->in_force, destination, port) ||
	       reaches(&policy->latest, destination, port);
}
