/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway_rules.c - diverts clients' connections to the gateway: tables of nftables, a policy rule, a route
 *
 * A SYN of a client passes three steps, in this order (prerouting for the LAN, output for this host's own programs):
 *
 *     -152  table convertgw         marks it if the operator's rules have it converted: what they don't is never touched again
 *     -151  table convertgw_syns_N  marked: into a netfilter queue, where it waits for the judge and the dialler (hold_rules.c)
 *     -149  table convertgw         released with hold's verdict in its urgent pointer: to the gateway's listener (TPROXY, and a policy rule
 *                                   that routes marked packets to this host). As it came: the mark is removed, and it is routed.
 *
 * Later packets of a converted connection find the gateway's transparent socket. Those of this host's programs are recognised by a bit of
 * the conntrack mark, since no socket can be looked up in output.
 *
 * Both tables belong to sockets of this process (flags owner): no other program changes them, "nft flush ruleset" included, and the kernel
 * removes them when the process ends or is killed. The policy rule and the route, without which no packet has the mark, are harmless then;
 * the next start replaces them. The table of hold has the one rule that libnftables can't write on kernels without CONFIG_NFT_QUEUE.
 *
 * The table convertgw_require is another matter: it is there to hold while the gateway isn't (gateway_rules.h).
 */
#include "config.h"

#include "gateway/gateway_rules.h"

#include "common/netlink.h"
#include "daemon/log.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <nftables/libnftables.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE "convertgw"
#define TABLE_REQUIRE "convertgw_require"

/* The protocol number of our policy rules and routes, by which we find what a killed process has left. */
#define PROTOCOL_OURS 89
#define RULE_PRIORITY 90 /* before those of all other programs, behind the table "local" */
#define RULES_MAX 32     /* policy rules that earlier processes have left */

/* Private networks, and networks of providers: RFC 1918, 6598, 3927, 4193. They are routed unless a rule names them. */
#define PRIVATE_V4 "10.0.0.0/8, 100.64.0.0/10, 169.254.0.0/16, 172.16.0.0/12, 192.168.0.0/16"
#define PRIVATE_V6 "fc00::/7, fe80::/10"

struct gateway_rules {
	struct nft_ctx *nft;
	struct hold_rules *syns;
	struct hold_rules_marked marked;
	uint32_t mark;
	unsigned table;
	bool requires; /* there is the table convertgw_require */
};

/* ----- the text of the rules ----- */


static void put_interfaces(FILE *out, const struct gateway_settings *settings)
{
	fputs("iifname {", out);
	for (size_t i = 0; i < settings->lan_count; i++)
		fprintf(out, "%s \"%s\"", i ? "," : "", settings->lan[i]);
	fputs(" } ", out);
}

/* Returns "ip" or "ip6"; NULL for all addresses. */
static const char *family_of(const struct prefix *prefix)
{
	if (!prefix->length)
		return NULL;
	return IN6_IS_ADDR_V4MAPPED(&prefix->address) && prefix->length >= 96 ? "ip" : "ip6";
}

/* Writes "ip saddr PREFIX", or daddr; nothing for all addresses. */
static void put_prefix(FILE *out, const char *end, const struct prefix *prefix)
{
	char text[PREFIX_STRLEN];

	if (prefix->length)
		fprintf(out, "%s %s %s ", family_of(prefix), end, prefix_format(prefix, text));
}

/* Writes the conditions of an operator's rule. */
static void put_conditions(FILE *out, const struct gateway_rule *rule)
{
	const struct prefix_rule *to = &rule->destination;

	if (rule->device[0])
		fprintf(out, "iifname \"%s\" ", rule->device);
	put_prefix(out, "saddr", &rule->client);
	put_prefix(out, "daddr", &to->prefix);
	if (to->port_first > 0 || to->port_last < UINT16_MAX)
		fprintf(out, "tcp dport %u-%u ", to->port_first, to->port_last);
	if (rule->has_mark)
		fprintf(out, "meta mark & 0x%x == 0x%x ", rule->mark_mask, rule->mark & rule->mark_mask);
}

/* Writes a rule. One that names a DSCP but no address is written for each family. */
static void put_rule(FILE *out, const struct gateway_rule *rule, const char *verdict)
{
	static const char *const families[] = { "ip", "ip6" };
	const char *client = family_of(&rule->client), *only = client ? client : family_of(&rule->destination.prefix);

	for (size_t i = 0; i < (rule->has_dscp ? 2 : 1); i++) {
		if (rule->has_dscp && only && strcmp(only, families[i]) != 0)
			continue;
		fputs("  ", out);
		if (rule->has_dscp)
			fprintf(out, "%s dscp %u ", families[i], rule->dscp);
		put_conditions(out, rule);
		fprintf(out, "%s\n", verdict);
	}
}

/* Writes the chain that says which SYNs are converted. The first rule that matches decides. */
static void put_choice(FILE *out, const struct gateway_settings *settings)
{
	fprintf(out,
		" chain take { meta mark set meta mark | 0x%x; }\n"
		" chain choose {\n"
		"  fib daddr type { local, broadcast, multicast, anycast, blackhole, unreachable, prohibit } return\n"
		"  ct status dnat return\n"
		"  ip6 daddr fe80::/10 return\n",
		gateway_divert_mark(settings));
	for (size_t i = 0; i < settings->rule_count; i++)
		put_rule(out, &settings->rules[i], settings->rules[i].way == GATEWAY_ROUTE ? "return" : "goto take");
	fputs("  ip daddr { " PRIVATE_V4 " } return\n"
	      "  ip6 daddr { " PRIVATE_V6 " } return\n"
	      "  tcp dport { 53, 853 } return\n"
	      "  goto take\n }\n",
	      out);
}

/* The conditions of a SYN that may be converted: hold's verdicts have urgent pointers, and a client's own Multipath TCP stays its own. */
#define NEW_SYN "tcp flags & (fin|syn|rst|ack) == syn tcp urgptr 0 tcp option 30 missing "

static void put_lan(FILE *out, const struct gateway_settings *settings, uint32_t mark)
{
	fputs(" chain choose_lan {\n  type filter hook prerouting priority -152; policy accept;\n", out);
	if (settings->lan_count) {
		fputs("  ", out);
		put_interfaces(out, settings);
		fputs(NEW_SYN "jump choose\n", out);
	}
	fputs(" }\n chain divert {\n  type filter hook prerouting priority -149; policy accept;\n", out);
	if (settings->lan_count) {
		fputs("  ", out);
		put_interfaces(out, settings);
		fprintf(out, "tcp flags & (fin|syn|rst|ack) == syn meta mark & 0x%x == 0x%x tcp urgptr 0 meta mark set meta mark & 0x%x accept\n",
			mark, mark, ~mark);
	}
	fprintf(out, "  tcp flags & (fin|syn|rst|ack) == syn meta mark & 0x%x == 0x%x meta nfproto ipv4 tproxy ip to 127.0.0.1:%u accept\n", mark,
		mark, settings->port);
	fprintf(out, "  tcp flags & (fin|syn|rst|ack) == syn meta mark & 0x%x == 0x%x meta nfproto ipv6 tproxy ip6 to [::1]:%u accept\n", mark,
		mark, settings->port);
	if (settings->lan_count) {
		fputs("  ", out);
		put_interfaces(out, settings);
		fprintf(out, "meta l4proto tcp socket transparent 1 meta mark set meta mark | 0x%x accept\n", mark);
	}
	fputs(" }\n", out);
}

static void put_host(FILE *out, const struct gateway_settings *settings, uint32_t mark, uint32_t own)
{
	/* Chains of the type "route": the kernel routes a packet anew where they change its mark. */
	fputs(" chain choose_host {\n  type route hook output priority -152; policy accept;\n", out);
	if (settings->host)
		fprintf(out, "  meta mark & 0x%x != 0x%x oifname != \"lo\" " NEW_SYN "jump choose\n", own, own);
	fputs(" }\n chain divert_host {\n  type route hook output priority -149; policy accept;\n", out);
	if (settings->host)
		fprintf(out,
			"  tcp flags & (fin|syn|rst|ack) == syn meta mark & 0x%x == 0x%x tcp urgptr 0 meta mark set meta mark & 0x%x accept\n"
			"  tcp flags & (fin|syn|rst|ack) == syn meta mark & 0x%x == 0x%x ct mark set ct mark | 0x%x accept\n"
			"  meta l4proto tcp ct direction original ct mark & 0x%x == 0x%x meta mark set meta mark | 0x%x\n",
			mark, mark, ~mark, mark, mark, mark, mark, mark, mark);
	fputs(" }\n", out);
}

static void put_quic(FILE *out, const struct gateway_settings *settings)
{
	/* Port unreachable: a browser takes it for a server without HTTP/3, and uses TCP at once. */
	fputs(" chain quic_lan {\n  type filter hook forward priority -1; policy accept;\n", out);
	if (settings->refuse_quic && settings->lan_count) {
		fputs("  ", out);
		put_interfaces(out, settings);
		fputs("udp dport 443 reject with icmpx port-unreachable\n", out);
	}
	fputs(" }\n chain quic_host {\n  type filter hook output priority -1; policy accept;\n", out);
	if (settings->refuse_quic && settings->host)
		fputs("  oifname != \"lo\" udp dport 443 reject with icmpx port-unreachable\n", out);
	fputs(" }\n", out);
}

static bool has_requirements(const struct gateway_settings *settings)
{
	for (size_t i = 0; i < settings->rule_count; i++)
		if (settings->rules[i].way == GATEWAY_REQUIRE)
			return true;
	return false;
}

/* Writes the table that refuses what must go through the converter, wherever it would go past it. */
static void put_requirements(FILE *out, const struct gateway_settings *settings, uint32_t own)
{
	static const struct {
		const char *name, *hook;
	} chains[] = { { "lan", "forward" }, { "host", "output" } };

	fputs("table inet " TABLE_REQUIRE "\nflush table inet " TABLE_REQUIRE "\ntable inet " TABLE_REQUIRE " {\n", out);
	for (size_t i = 0; i < 2; i++) {
		fprintf(out, " chain %s {\n  type filter hook %s priority -1; policy accept;\n", chains[i].name, chains[i].hook);
		if (i)
			fprintf(out, "  meta mark & 0x%x == 0x%x accept\n  oifname \"lo\" accept\n", own, own);
		for (size_t r = 0; r < settings->rule_count && (i == 0 || settings->host); r++)
			put_rule(out, &settings->rules[r],
				 settings->rules[r].way == GATEWAY_REQUIRE ? "meta l4proto tcp reject with icmpx admin-prohibited" : "accept");
		fputs(" }\n", out);
	}
	fputs("}\n", out);
}

/* Returns the commands that put the rules of @settings in place of the present ones, to be freed; NULL without memory. */
static char *commands(const struct gateway_settings *settings, bool had_requirements)
{
	const uint32_t mark = gateway_divert_mark(settings), own = gateway_own_mark(settings);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	fputs("table inet " TABLE " { flags owner; }\nflush table inet " TABLE "\ntable inet " TABLE " {\n flags owner;\n", out);
	put_choice(out, settings);
	put_lan(out, settings, mark);
	put_host(out, settings, mark, own);
	put_quic(out, settings);
	fputs("}\n", out);
	if (has_requirements(settings))
		put_requirements(out, settings, own);
	else if (had_requirements)
		fputs("delete table inet " TABLE_REQUIRE "\n", out);
	return fclose(out) == 0 ? text : NULL;
}

static const struct place nowhere;

/* Has libnftables carry the commands out, all or none. Returns false after adding the error. */
static bool run(struct nft_ctx *nft, const char *text, struct problems *problems)
{
	char first[160];

	if (nft_run_cmd_from_buffer(nft, text) == 0)
		return true;
	snprintf(first, sizeof(first), "%s", nft_ctx_get_error_buffer(nft));
	first[strcspn(first, "\n")] = '\0';
	log_debug("nftables refused:\n%s\n%s", text, nft_ctx_get_error_buffer(nft));
	if (strstr(first, "Operation not permitted"))
		problems_add(problems, &nowhere, "nftables: %s; start it as root or with CAP_NET_ADMIN, and only once on a host", first);
	else
		problems_add(problems, &nowhere, "nftables: %s; the kernel needs CONFIG_NFT_TPROXY, NFT_SOCKET, NFT_FIB_INET, NFT_CT and NFT_REJECT",
			     first);
	return false;
}

/* ----- the policy rule and the route ----- */

static struct nlmsghdr *begin_request(struct netlink *netlink, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(netlink->buf);

	request->nlmsg_type = type;
	request->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	return request;
}

static int put_route(struct netlink *netlink, uint8_t family, unsigned table, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *request = begin_request(netlink, type, flags);
	struct rtmsg *route = mnl_nlmsg_put_extra_header(request, sizeof(*route));

	route->rtm_family = family;
	route->rtm_protocol = PROTOCOL_OURS;
	route->rtm_scope = RT_SCOPE_HOST;
	route->rtm_type = RTN_LOCAL;
	mnl_attr_put_u32(request, RTA_OIF, if_nametoindex("lo"));
	mnl_attr_put_u32(request, RTA_TABLE, table);
	return netlink_ask(netlink, NULL, NULL);
}

static int put_policy(struct netlink *netlink, uint8_t family, uint32_t mark, unsigned table)
{
	struct nlmsghdr *request = begin_request(netlink, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL);
	struct fib_rule_hdr *rule = mnl_nlmsg_put_extra_header(request, sizeof(*rule));

	rule->family = family;
	rule->action = FR_ACT_TO_TBL;
	mnl_attr_put_u32(request, FRA_TABLE, table);
	mnl_attr_put_u32(request, FRA_PRIORITY, RULE_PRIORITY);
	mnl_attr_put_u32(request, FRA_FWMARK, mark);
	mnl_attr_put_u32(request, FRA_FWMASK, mark);
	mnl_attr_put_u8(request, FRA_PROTOCOL, PROTOCOL_OURS);
	return netlink_ask(netlink, NULL, NULL);
}

/* Policy rules of ours, as the kernel lists them. */
struct leftovers {
	size_t count;
	struct {
		uint8_t family;
		uint32_t mark, table;
	} rules[RULES_MAX];
};

static int note_leftover(const struct nlmsghdr *message, void *arg)
{
	const struct fib_rule_hdr *header = mnl_nlmsg_get_payload(message);
	struct leftovers *found = arg;
	uint32_t mark = 0, table = header->table;
	const struct nlattr *attr;
	bool ours = false;

	mnl_attr_for_each(attr, message, sizeof(*header)) {
		if (mnl_attr_get_type(attr) == FRA_PROTOCOL)
			ours = mnl_attr_get_payload_len(attr) == 1 && mnl_attr_get_u8(attr) == PROTOCOL_OURS;
		else if (mnl_attr_get_type(attr) == FRA_FWMARK)
			mark = netlink_read_u32(attr);
		else if (mnl_attr_get_type(attr) == FRA_TABLE)
			table = netlink_read_u32(attr);
	}
	if (ours && found->count < RULES_MAX) {
		found->rules[found->count].family = header->family;
		found->rules[found->count].mark = mark;
		found->rules[found->count++].table = table;
	}
	return MNL_CB_OK;
}

/* Removes our policy rules and routes, whoever has left them. */
static void remove_policies(struct netlink *netlink)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct leftovers found = { 0 };

	for (size_t i = 0; i < 2; i++)
		netlink_dump(netlink, RTM_GETRULE, families[i], note_leftover, &found);
	for (size_t i = 0; i < found.count; i++) {
		struct nlmsghdr *request = begin_request(netlink, RTM_DELRULE, 0);
		struct fib_rule_hdr *rule = mnl_nlmsg_put_extra_header(request, sizeof(*rule));

		rule->family = found.rules[i].family;
		rule->action = FR_ACT_TO_TBL;
		mnl_attr_put_u32(request, FRA_TABLE, found.rules[i].table);
		mnl_attr_put_u32(request, FRA_PRIORITY, RULE_PRIORITY);
		mnl_attr_put_u32(request, FRA_FWMARK, found.rules[i].mark);
		mnl_attr_put_u32(request, FRA_FWMASK, found.rules[i].mark);
		mnl_attr_put_u8(request, FRA_PROTOCOL, PROTOCOL_OURS);
		netlink_ask(netlink, NULL, NULL);
		put_route(netlink, found.rules[i].family, found.rules[i].table, RTM_DELROUTE, 0);
	}
}

/* Routes marked packets to this host. IPv6 may be off. Returns 0 or -errno. */
static int route_marked(uint32_t mark, unsigned table)
{
	struct netlink *netlink = malloc(sizeof(*netlink));
	int error = netlink ? netlink_open(netlink, NETLINK_ROUTE) : -ENOMEM;

	if (error) {
		free(netlink);
		return error;
	}
	remove_policies(netlink);
	if (mark) {
		error = put_route(netlink, AF_INET, table, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
		if (!error)
			error = put_policy(netlink, AF_INET, mark, table);
		if (put_route(netlink, AF_INET6, table, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE) == 0)
			put_policy(netlink, AF_INET6, mark, table);
	}
	netlink_close(netlink);
	free(netlink);
	return error;
}

/* ----- all together ----- */

static bool create(struct gateway_rules **out, struct problems *problems)
{
	struct gateway_rules *rules = calloc(1, sizeof(*rules));
	int error = rules ? hold_rules_create(&rules->syns, "convertgw", -1) : -ENOMEM;

	if (rules && !error)
		rules->nft = nft_ctx_new(NFT_CTX_DEFAULT);
	if (!error && rules->nft) {
		nft_ctx_buffer_error(rules->nft);
		*out = rules;
		return true;
	}
	problems_add(problems, &nowhere, "nftables can't be used: %s; start it as root or with CAP_NET_ADMIN", strerror(error ? -error : ENOMEM));
	free(rules);
	return false;
}

/* Installs everything but the table that makes SYNs candidates. Returns false after adding the error. */
static bool prepare(struct gateway_rules *rules, const struct gateway_settings *settings, const struct hold_rules_queues *queues,
		    bool *refuses, struct problems *problems)
{
	int error;

	rules->marked = (struct hold_rules_marked){ gateway_divert_mark(settings), settings->host };
	error = hold_rules_install_marked(rules->syns, &rules->marked, queues, refuses);
	if (error)
		problems_add(problems, &nowhere, "nftables' rules for SYNs: %s; the kernel needs nft_queue, or nft_compat and xt_NFQUEUE, and "
			     "this process CAP_NET_ADMIN", strerror(-error));
	if (error || (rules->mark == rules->marked.mark && rules->table == settings->table))
		return !error;
	error = route_marked(rules->marked.mark, settings->table);
	if (error)
		problems_add(problems, &nowhere, "the policy rule for marked packets: %s; the kernel needs CONFIG_IP_MULTIPLE_TABLES",
			     strerror(-error));
	rules->mark = rules->marked.mark;
	rules->table = settings->table;
	return !error;
}

bool gateway_rules_install(struct gateway_rules **at, const struct gateway_settings *settings, const struct hold_rules_queues *queues,
			   bool *refuses, struct problems *problems)
{
	const bool first = !*at;
	char *text;
	bool done;

	if (first && !create(at, problems))
		return false;
	text = commands(settings, (*at)->requires);
	done = text && prepare(*at, settings, queues, refuses, problems) && run((*at)->nft, text, problems);
	if (!text)
		problems_add(problems, &nowhere, "out of memory");
	free(text);
	if (done)
		(*at)->requires = has_requirements(settings);
	else if (first) {
		gateway_rules_remove(*at);
		*at = NULL;
	}
	return done;
}

void gateway_rules_stop_diverting(struct gateway_rules *rules)
{
	struct problems ignored = { 0 };

	run(rules->nft, "flush chain inet " TABLE " choose_lan\nflush chain inet " TABLE " choose_host\n", &ignored);
}

void gateway_rules_remove(struct gateway_rules *rules)
{
	struct problems ignored = { 0 };

	if (!rules)
		return;
	if (rules->requires)
		run(rules->nft, "delete table inet " TABLE_REQUIRE "\n", &ignored);
	nft_ctx_free(rules->nft);
	hold_rules_destroy(rules->syns);
	route_marked(0, 0);
	free(rules);
}
