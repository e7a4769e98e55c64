/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway_judge.c - the judge of a gateway: the packet's own destination is the server
 *
 * netfilter applies the operator's rules first, so that connections that they route never come here (gateway_rules.c). The judge looks at
 * this host's routes, which those rules can't see: a connection into the LAN or a VPN is converted only if a rule names it. The kernel
 * routes a SYN that the judge doesn't withhold. So each session had a withheld SYN. The judge resets any other connection to the listener:
 * it comes from this host itself.
 */
#include "config.h"

#include "gateway/gateway.h"

#include "common/clock.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "gateway/gateway_rules.h"
#include "hold/syn_packet.h"
#include "host/lookup.h"
#include "relay/relay.h"

#include <errno.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define WAYS 64u       /* remembered answers about devices */
#define WAY_SECONDS 10 /* for so long; routes change */

#define DESCRIPTORS_OWN 64    /* besides those of connections and pipes, which need two each */
#define DESCRIPTORS_WORKER 16

static bool has_descriptors(const struct serve_context *context)
{
	const rlim_t own = DESCRIPTORS_OWN + DESCRIPTORS_WORKER * gateway_of(context)->workers;
	struct rlimit files = { .rlim_cur = RLIM_INFINITY };

	getrlimit(RLIMIT_NOFILE, &files);
	return 2 * (limits_members(context->limits) + relay_pipes_fit(files.rlim_cur)) + own <= files.rlim_cur;
}

/* Counts the SYN. Returns NULL if it may be withheld, or why it is routed. */
static const char *find_room(struct serve_context *context, const struct judgement_case *c)
{
	const char *reason = NULL;

	if (limits_enter(context->limits, c->member, &c->client.address, LIMITS_WITHHELD) < 0)
		return "out of memory";
	if (limits_admit(context->limits, c->member) != OUTCOME_NONE) {
		reason = "the client, or all clients, have too many connections";
	} else if (!has_descriptors(context)) {
		reason = "too few open files are allowed";
		log_shortage(EMFILE, "connections are routed");
	}
	if (reason)
		limits_leave(context->limits, c->member, c->now_ms);
	return reason;
}

/*
 * Is the server of a SYN that would go back into the LAN a host there, or behind another router there? Then its way isn't the default
 * route's, which leads into the LAN as well if another host is the LAN's router to the Internet.
 */
static bool is_neighbour(const struct in6_addr *server)
{
	const union sockaddr_ip anywhere = host_way_anywhere(IN6_IS_ADDR_V4MAPPED(server) ? AF_INET : AF_INET6);
	struct host_way there, beyond;
	union sockaddr_ip to = { 0 };

	sockaddr_ip_set(&to, AF_UNSPEC, server, 0);
	host_way_ask(-1, &to, NULL, 0, &there);
	host_way_ask(-1, &anywhere, NULL, 0, &beyond);
	return beyond.error || there.index != beyond.index || memcmp(&there.gateway, &beyond.gateway, sizeof(there.gateway)) != 0;
}

/* Returns whether a device has neither Ethernet's nor PPP's headers, as VPNs' have none. */
static bool is_tunnel(unsigned device)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_ifindex = (int)device };
	const bool told = ioctl(fd, SIOCGIFNAME, &request) == 0 && ioctl(fd, SIOCGIFHWADDR, &request) == 0;

	if (fd >= 0)
		close(fd);
	return told && request.ifr_hwaddr.sa_family != ARPHRD_ETHER && request.ifr_hwaddr.sa_family != ARPHRD_PPP;
}

/* Is the device a tunnel without a default route, so that only some networks' or some clients' packets leave by it? */
static bool ask_elsewhere(unsigned device, int family)
{
	const union sockaddr_ip anywhere = host_way_anywhere(family);
	struct host_way usual, bound;

	if (!is_tunnel(device))
		return false;
	host_way_ask(-1, &anywhere, NULL, 0, &usual);
	host_way_ask(-1, &anywhere, NULL, device, &bound);
	return !host_way_leads(&usual, device) && !host_way_leads(&bound, device);
}

/*
 * Does what ask_elsewhere() does, and remembers the answer for WAY_SECONDS. A place holds 32 bits of the device and the family, 31 of the time
 * in seconds, and the answer.
 */
static bool leads_elsewhere(unsigned device, bool v4)
{
	static _Atomic uint64_t ways[WAYS];
	const uint32_t key = device << 1 | v4, now = (uint32_t)clock_seconds();
	const uint64_t known = atomic_load(&ways[key % WAYS]);
	bool elsewhere;

	if (known >> 32 == key && now - ((uint32_t)known >> 1) < WAY_SECONDS)
		return known & 1;
	elsewhere = ask_elsewhere(device, v4 ? AF_INET : AF_INET6);
	atomic_store(&ways[key % WAYS], (uint64_t)key << 32 | (now << 1 | elsewhere));
	return elsewhere;
}

/* Returns why this host's routes keep a connection that no rule names from being converted; NULL: they don't. */
static const char *why_elsewhere(const struct judgement_case *c)
{
	if (!c->out || c->urgent == GATEWAY_RULES_NAMED)
		return NULL;
	if (c->in == c->out && is_neighbour(&c->flow->destination))
		return "the server is in the client's network";
	return leads_elsewhere(c->out, IN6_IS_ADDR_V4MAPPED(&c->flow->destination)) ? "this host's routes lead it into a tunnel" : NULL;
}

static const char *why_routed(struct serve_context *context, const struct judgement_case *c)
{
	const char *elsewhere = why_elsewhere(c);

	if (c->mptcp)
		return "the client speaks Multipath TCP itself";
	if (elsewhere)
		return elsewhere;
	return c->place == JUDGEMENT_SYN ? find_room(context, c) : NULL;
}

static void judge_syn(struct serve_context *context, const struct judgement_case *c, struct serve_verdict *verdict)
{
	const char *reason = why_routed(context, c);

	*verdict = (struct serve_verdict){ .action = REQUEST_WAIT };
	if (reason) {
		gateway_count_routed(gateway_of(context), reason);
		return;
	}
	*verdict = (struct serve_verdict){
		.action = REQUEST_CONNECT, .reply = JUDGEMENT_SILENT, .silent = true, .blind = true, .proven = true, .withhold = true,
		.hold_ms = context->settings->connect_ms,
	};
	sockaddr_ip_set(&verdict->server, AF_UNSPEC, &c->flow->destination, c->flow->destination_port);
}

static void judge(struct serve_context *context, const struct judgement_case *c, struct serve_verdict *verdict, struct serve_answer *answer)
{
	(void)answer;
	if (c->place != JUDGEMENT_STREAM) {
		judge_syn(context, c, verdict);
		return;
	}
	*verdict = (struct serve_verdict){ .action = REQUEST_RESET, .silent = true, .blind = true, .reply = JUDGEMENT_SILENT };
	if (!c->grant)
		return;
	verdict->action = REQUEST_CONNECT;
	verdict->server = c->grant->server;
	verdict->by_grant = true;
	verdict->grant = c->grant;
}

/* A gateway writes nothing of its own into a connection. */
static void refused(struct serve_context *context, bool responds, const struct serve_refusal *refusal, struct serve_answer *answer)
{
	(void)context, (void)responds;
	answer->reason = refusal->reason ? refusal->reason : "the server can't be reached";
	answer->outcome = OUTCOME_SERVER_UNREACHABLE;
	answer->len = 0;
}

static int start(struct serve_context *context, void *arg)
{
	struct gateway *gateway = arg;

	context->daemon = gateway;
	context->log_limits = monitor_log_limits(gateway->monitor);
	context->metrics = monitor_add_metrics(gateway->monitor);
	return context->metrics ? 0 : -ENOMEM;
}

struct serve_plugs gateway_plugs(struct gateway *gateway)
{
	return (struct serve_plugs){
		.judge = judge,
		.refused = refused,
		.dial = gateway_dialler,
		.start = start,
		.arg = gateway,
		.no_request = true,
	};
}
