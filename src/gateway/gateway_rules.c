/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway_rules.c - diverts clients' connections to the gateway: tables of nftables, policy rules, a route
 *
 * A client's SYN passes these chains, in "forward" for the LAN and in "output" for this host's own programs:
 *
 *     other programs'   NAT, the firewall: a connection that they forbid or redirect is never converted
 *     40  convertgw          marks it (low bit) if it may be converted; the urgent pointer says whether a rule of the operator's matches
 *     41  convertgw_syns_N   marked: into a netfilter queue, where it waits for the judge and the dialler (hold_rules.c)
 *     42  convertgw_syns_N   refused by the server: a reset, or an ICMP message
 *     43  convertgw          it came out as it was, or never went in: it loses mark and urgent pointer, and is routed
 *
 * A SYN whose server has answered doesn't come out. The gateway sends it anew from a raw socket with both bits (gateway_rights.c), a
 * policy rule routes it to "lo" (gateway_policies.c), and there TPROXY hands it to the listener, whichever mark it has by then. Other
 * gateways divert the LAN's own SYN, in "prerouting". We don't, since:
 *
 *     - Firewalls drop new connections in "input" unless they come from "lo".
 *     - With br_netfilter (Docker, Kubernetes), chains see a bridge's packet before the bridge does, and the socket that TPROXY has
 *       assigned is lost on the way up.
 *     - In "forward" the kernel has decided already which packets are for this host, and NAT which go elsewhere.
 *
 * Later packets of a converted connection have the low bit in their conntrack mark, and get it as their own in "prerouting" or "output".
 * Connections that aren't tracked are known by the gateway's transparent socket.
 *
 * The tables belong to sockets of this process (flags owner): no other program changes them, "nft flush ruleset" included, and the kernel
 * removes them when the process ends or is killed. So they also tell that there is a gateway on this host. Without them no packet has the
 * mark, and the policy rules and the route are harmless; the next start replaces these. The table of hold has the one rule that
 * libnftables can't write on kernels without CONFIG_NFT_QUEUE.
 *
 * The table convertgw_require belongs to no process, so that it holds without a gateway, too (gateway_rules.h).
 */
#include "config.h"

#include "gateway/gateway_rules.h"

#include "daemon/log.h"

#include <errno.h>
#include <net/if.h>
#include <nftables/libnftables.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE "convertgw"
#define TABLE_REQUIRE "convertgw_require"
/* Removes that table, if it is there: a killed process may have left it. */
#define NO_REQUIREMENTS "table inet " TABLE_REQUIRE "\ndelete table inet " TABLE_REQUIRE "\n"

/*
 * Private networks, and networks of providers: RFC 1918, 6598, 3927, 4193, 2544, which proxies answer DNS with; NAT64, RFC 6052 and 8215,
 * whose translator the converter may lack. They are routed unless a rule names them.
 */
#define PRIVATE_V4 "10.0.0.0/8, 100.64.0.0/10, 169.254.0.0/16, 172.16.0.0/12, 192.168.0.0/16, 198.18.0.0/15"
#define PRIVATE_V6 "64:ff9b::/96, 64:ff9b:1::/48, fc00::/7, fe80::/10"

#define SERVED_MAX (2 * GATEWAY_INTERFACES_MAX)

/* Whose connections may be open: the clients of the settings in force, and of earlier ones. */
struct served {
	char lan[SERVED_MAX][IFNAMSIZ]; /* those of the settings in force first */
	size_t lan_count;
	bool host;
};

struct gateway_rules {
	struct nft_ctx *nft;
	struct hold_rules *syns;
	struct served served;
};

/* ----- the clients ----- */

static bool serves(const struct served *served, const char *device)
{
	for (size_t i = 0; i < served->lan_count; i++)
		if (strcmp(served->lan[i], device) == 0)
			return true;
	return false;
}

/* Adds the clients of @settings to those of earlier ones. If there are too many interfaces, we forget the earliest. */
static struct served served_with(const struct served *earlier, const struct gateway_settings *settings)
{
	struct served served = { .lan_count = settings->lan_count, .host = settings->host || earlier->host };

	memcpy(served.lan, settings->lan, sizeof(settings->lan));
	for (size_t i = 0; i < earlier->lan_count && served.lan_count < SERVED_MAX; i++)
		if (!serves(&served, earlier->lan[i]))
			memcpy(served.lan[served.lan_count++], earlier->lan[i], IFNAMSIZ);
	return served;
}

/* ----- the text of the rules ----- */

static bool is_pattern(const char *device)
{
	return strchr(device, '*') != NULL;
}

/*
 * Writes a rule for packets from interfaces ("iifname"), or to them: one for all names, and one for each pattern, which older versions of
 * nft(8) take in no set.
 */
static void put_interfaces_rule(FILE *out, const char (*names)[IFNAMSIZ], size_t count, const char *end, const char *rule)
{
	bool any = false;

	for (size_t i = 0; i < count; i++)
		if (!is_pattern(names[i])) {
			fprintf(out, "%s%s \"%s\"", any ? "" : end, any ? "," : " {", names[i]);
			any = true;
		}
	if (any)
		fprintf(out, " } %s\n", rule);
	for (size_t i = 0; i < count; i++)
		if (is_pattern(names[i]))
			fprintf(out, "  %s \"%s\" %s\n", end, names[i], rule);
}

static void put_lan_rule(FILE *out, const struct gateway_settings *settings, const char *end, const char *rule)
{
	put_interfaces_rule(out, settings->lan, settings->lan_count, end, rule);
}

static void put_served_rule(FILE *out, const struct served *served, const char *end, const char *rule)
{
	put_interfaces_rule(out, served->lan, served->lan_count, end, rule);
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

/*
 * Writes the chain that says which SYNs are converted. The first rule that matches decides. traceroute sends SYNs with few hops left, to
 * find the routers on their way. A client in a VRF would get the listener's answers by routes outside the VRF.
 */
static void put_choice(FILE *out, const struct gateway_settings *settings)
{
	fprintf(out,
		" chain take { meta mark set meta mark | 0x%x; }\n"
		" chain take_named { tcp urgptr set 0x%x goto take; }\n"
		" chain choose {\n"
		"  ct status dnat return\n"
		"  meta iifkind \"vrf\" return\n"
		"  ip6 daddr fe80::/10 return\n"
		"  ip ttl < 32 return\n"
		"  ip6 hoplimit < 32 return\n",
		gateway_divert_mark(settings), GATEWAY_RULES_NAMED);
	for (size_t i = 0; i < settings->rule_count; i++)
		put_rule(out, &settings->rules[i], settings->rules[i].way == GATEWAY_ROUTE ? "return" : "goto take_named");
	/* From one LAN to another. A LAN's own interface may also lead to the Internet: then the judge looks at the route. */
	for (size_t i = 0; i < settings->lan_count; i++)
		for (size_t o = 0; o < settings->lan_count; o++)
			if (i != o || is_pattern(settings->lan[i]))
				fprintf(out, "  iifname \"%s\" oifname \"%s\" return\n", settings->lan[i], settings->lan[o]);
	fputs("  ip daddr { " PRIVATE_V4 " } return\n"
	      "  ip6 daddr { " PRIVATE_V6 " } return\n"
	      "  tcp dport { 53, 853 } return\n"
	      "  goto take\n }\n",
	      out);
}

#define SYN "tcp flags & (fin|syn|rst|ack) == syn "

/* The conditions of a SYN that may be converted: hold's verdicts have urgent pointers, and a client's own Multipath TCP stays its own. */
#define NEW_SYN SYN "tcp urgptr 0 tcp option 30 missing "

/*
 * The conditions of a SYN that gateway_rights.c has sent: SYN_PACKET_MARK. Its packet mark only routes it to "lo": other programs' rules
 * may set marks, save them for the connection, and restore them.
 */
#define RELEASED_SYN "tcp flags & (fin|syn|rst|ack|urg) == syn tcp urgptr 0x6c63 "

/* Writes the rules that undo put_choice() on a SYN, if the bits of its mark under @mask equal @mark. */
static void put_undo(FILE *out, uint32_t mask, uint32_t mark)
{
	fprintf(out, "  " SYN "meta mark & 0x%x == 0x%x tcp urgptr 0x%x tcp urgptr set 0\n"
		     "  " SYN "meta mark & 0x%x == 0x%x meta mark set meta mark & 0x%x ct mark set ct mark & 0x%x\n }\n",
		mask, mark, GATEWAY_RULES_NAMED, mask, mark, ~mark, ~mark);
}

static void put_lan(FILE *out, const struct gateway_settings *settings, uint32_t mark)
{
	fputs(" chain choose_lan {\n  type filter hook forward priority 40; policy accept;\n", out);
	put_lan_rule(out, settings, "iifname", NEW_SYN "jump choose");
	fputs(" }\n chain route_lan {\n  type filter hook forward priority 43; policy accept;\n", out);
	put_undo(out, mark, mark);
}

static void put_host(FILE *out, const struct gateway_settings *settings, const struct served *served, uint32_t mark, uint32_t both)
{
	const uint32_t own = both & ~mark;

	/* Each chain takes time for each packet of this host's own. An earlier configuration's stays, without rules. */
	if (settings->host) {
		fprintf(out, " chain choose_host {\n  type filter hook output priority 40; policy accept;\n"
			     "  meta mark & 0x%x != 0x%x oifname != \"lo\" ct state new " NEW_SYN "fib saddr type local jump choose\n }\n"
			     " chain route_host {\n  type filter hook output priority 43; policy accept;\n",
			own, own);
		put_undo(out, both, mark);
	}
	/* The type "route": the kernel routes a packet anew if the chain changes its mark. It is behind the chains of others that do so. */
	fprintf(out, " chain follow {\n  type route hook output priority 44; policy accept;\n"
		     "  oifname \"lo\" " RELEASED_SYN "meta mark set meta mark | 0x%x ct mark set ct mark | 0x%x accept\n", both, mark);
	if (served->host)
		fprintf(out,
			"  meta l4proto tcp ct direction original ct status seen-reply ct mark & 0x%x == 0x%x meta mark set meta mark | 0x%x\n",
			mark, mark, both);
	/*
	 * A redirect to another router in the LAN, sent for any packet to a server, would lead its converted connections past this host. Those for
	 * private networks (PRIVATE_V4 without link-local addresses and RFC 2544, and fc00::/7) are sent: the field is the packet's destination.
	 */
	put_served_rule(out, served, "oifname", "icmp type redirect @th,192,32 != { 0x0a000000-0x0affffff, 0x64400000-0x647fffff, "
		     "0xac100000-0xac1fffff, 0xc0a80000-0xc0a8ffff } drop");
	put_served_rule(out, served, "oifname", "icmpv6 type nd-redirect @th,192,8 & 0xfe != 0xfc drop");
	fputs(" }\n", out);
}

/*
 * Writes the chain by which packets reach the gateway's sockets, behind all other programs' NAT, marks, and checks of source addresses
 * (firewalld: 10), which exempt "lo" but not a packet with a socket. The SYN on "lo" has its route already: it does without the mark, which
 * a connection could inherit (tcp_fwmark_accept).
 *
 * Packets of a converted connection that has no socket are the listener's: it knows the third ACK by its SYN cookie, and resets those that
 * come too late. The rule that looks for the socket stands in front, so that there are two lookups: one may fail while another CPU turns a
 * request socket into a connection, and the listener would reset that connection.
 *
 * An untracked third ACK belongs to a request socket, which "socket transparent 1" matches and "socket wildcard 0" doesn't. A listener of
 * another program, which is transparent as well, has nothing to do with connections that are routed.
 *
 * ICMP errors about packets of these sockets name the server, whose address those packets have. They go to the sockets, since a router
 * between the client and this host may need smaller packets.
 *
 * A SYN that was sent again belongs to its socket. A new one may reuse the ports of a socket in TIME_WAIT. The kernel would find that
 * socket before it forwards the SYN, and drop the SYN. So we withhold it here. If it is to be routed, TPROXY removes that socket: the
 * kernel drops this SYN, but not the next one, which the client sends a second later.
 */
static void put_arrivals(FILE *out, const struct gateway_settings *settings, const struct served *served, uint32_t mark, uint32_t both)
{
	static const struct {
		const char *protocol, *family, *to;
	} ways[] = { { "ipv4", "ip", "127.0.0.1" }, { "ipv6", "ip6", "[::1]" } };
	char errors[160];

	fputs(" chain arrive {\n  type filter hook prerouting priority 40; policy accept;\n", out);
	put_served_rule(out, served, "iifname", "meta l4proto tcp goto keep");
	for (size_t i = 0; i < 2; i++)
		fprintf(out, "  iifname \"lo\" " RELEASED_SYN "meta nfproto %s tproxy %s to %s:%u meta mark set meta mark & 0x%x accept\n",
			ways[i].protocol, ways[i].family, ways[i].to, settings->port, ~both);
	if (served->host)
		fputs("  iifname \"lo\" meta l4proto tcp jump adopt\n", out);
	snprintf(errors, sizeof(errors), "meta l4proto { icmp, ipv6-icmp } ct state related ct mark & 0x%x == 0x%x "
					 "meta mark set meta mark & 0x%x | 0x%x", mark, mark, ~both, mark);
	put_served_rule(out, served, "iifname", errors);
	fprintf(out, " }\n chain keep {\n  " SYN "ct state { new, untracked } goto keep_syn\n  jump adopt\n"
		     "  socket transparent 1 goto keep_untracked\n }\n"
		     " chain keep_untracked {\n  socket wildcard 1 return\n  meta mark set meta mark & 0x%x | 0x%x\n }\n"
		     " chain adopt {\n  tcp flags & syn == 0 ct direction original ct mark & 0x%x == 0x%x goto adopt_ours\n }\n"
		     " chain adopt_ours {\n  socket transparent 1 meta mark set meta mark & 0x%x | 0x%x accept\n",
		~both, mark, mark, mark, ~both, mark);
	for (size_t i = 0; i < 2; i++)
		fprintf(out, "  meta l4proto tcp meta nfproto %s tproxy %s to %s:%u meta mark set meta mark & 0x%x | 0x%x accept\n",
			ways[i].protocol, ways[i].family, ways[i].to, settings->port, ~both, mark);
	fputs(" }\n chain keep_syn {\n  socket wildcard 1 return\n", out);
	put_lan_rule(out, settings, "iifname", NEW_SYN "socket transparent 1 jump choose");
	fputs(" }\n chain forget {\n  socket wildcard 1 return\n", out);
	for (size_t i = 0; i < 2; i++)
		fprintf(out, "  meta l4proto tcp socket transparent 1 meta nfproto %s tproxy %s to %s:%u meta mark set meta mark & 0x%x\n",
			ways[i].protocol, ways[i].family, ways[i].to, settings->port, ~mark);
	fputs(" }\n chain route_early {\n  type filter hook prerouting priority 43; policy accept;\n", out);
	put_served_rule(out, served, "iifname", SYN "ct state { new, untracked } jump forget");
	fputs(" }\n", out);
}

/*
 * Writes chains that keep other programs' NAT off the SYN that we send to this host itself, and drop that SYN where it would leave this
 * host: another program may have removed the policy rule.
 */
static void put_no_nat(FILE *out, uint32_t mark, uint32_t both)
{
	static const struct {
		const char *hook, *priority, *statement, *field;
	} chains[] = { { "output", "-110", "dnat", "daddr" }, { "postrouting", "90", "snat", "saddr" } };

	for (size_t i = 0; i < 2; i++) {
		fprintf(out, " chain no_%s {\n  type nat hook %s priority %s; policy accept;\n", chains[i].statement, chains[i].hook,
			chains[i].priority);
		for (size_t v6 = 0; v6 < 2; v6++)
			fprintf(out, "  oifname \"lo\" " RELEASED_SYN "%s ip%s to ip%s %s\n", chains[i].statement, v6 ? "6" : "", v6 ? "6" : "",
				chains[i].field);
		fputs(" }\n", out);
	}
	/* Removes the marks: saved as the connection's, they would route its later packets. A program's connection keeps its bit. */
	fprintf(out, " chain stay {\n  type filter hook postrouting priority -160; policy accept;\n"
		     "  oifname != \"lo\" meta mark & 0x%x == 0x%x drop\n"
		     "  oifname \"lo\" meta mark & 0x%x == 0x%x meta mark set meta mark & 0x%x\n"
		     "  oifname \"lo\" ct mark & 0x%x == 0x%x meta mark set meta mark | 0x%x\n }\n", both, both, both, both, ~both, mark, mark, mark);
}

static void put_quic(FILE *out, const struct gateway_settings *settings)
{
	/* Port unreachable: a browser takes it for a server without HTTP/3, and uses TCP at once. */
	if (settings->refuse_quic && settings->lan_count) {
		fputs(" chain quic_lan {\n  type filter hook forward priority -1; policy accept;\n", out);
		put_lan_rule(out, settings, "iifname", "udp dport 443 reject with icmpx port-unreachable");
		fputs(" }\n", out);
	}
	if (settings->refuse_quic && settings->host)
		fputs(" chain quic_host {\n  type filter hook output priority -1; policy accept;\n"
		      "  oifname != \"lo\" udp dport 443 reject with icmpx port-unreachable\n }\n", out);
}

static bool has_requirements(const struct gateway_settings *settings)
{
	for (size_t i = 0; i < settings->rule_count; i++)
		if (settings->rules[i].way == GATEWAY_REQUIRE)
			return true;
	return false;
}

/*
 * Writes the table that refuses connections that must go through the converter, where they would go past it. It accepts replies in
 * connections from outside, such as port forwards.
 */
static void put_requirements(FILE *out, const struct gateway_settings *settings, uint32_t own)
{
	fputs("table inet " TABLE_REQUIRE "\nflush table inet " TABLE_REQUIRE "\ntable inet " TABLE_REQUIRE " {\n"
	      " chain refuse {\n  ct direction reply accept\n",
	      out);
	for (size_t r = 0; r < settings->rule_count; r++)
		put_rule(out, &settings->rules[r],
			 settings->rules[r].way == GATEWAY_REQUIRE ? "meta l4proto tcp reject with icmpx admin-prohibited" : "accept");
	fputs(" }\n chain lan {\n  type filter hook forward priority 45; policy accept;\n", out);
	put_lan_rule(out, settings, "iifname", "jump refuse");
	fputs(" }\n chain host {\n  type filter hook output priority 45; policy accept;\n", out);
	if (settings->host)
		fprintf(out, "  meta mark & 0x%x != 0x%x oifname != \"lo\" jump refuse\n", own, own);
	fputs(" }\n}\n", out);
}

/* Returns the commands that put the rules of @settings in place of the present ones, to be freed; NULL without memory. */
static char *commands(const struct gateway_settings *settings, const struct served *served)
{
	const uint32_t mark = gateway_divert_mark(settings), both = settings->mark;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	fputs("table inet " TABLE " { flags owner; }\nflush table inet " TABLE "\ntable inet " TABLE " {\n flags owner;\n", out);
	put_choice(out, settings);
	put_lan(out, settings, mark);
	put_host(out, settings, served, mark, both);
	put_arrivals(out, settings, served, mark, both);
	put_no_nat(out, mark, both);
	put_quic(out, settings);
	fputs("}\n", out);
	if (has_requirements(settings))
		put_requirements(out, settings, gateway_own_mark(settings));
	else
		fputs(NO_REQUIREMENTS, out);
	return fclose(out) == 0 ? text : NULL;
}

static const struct place nowhere;

/* Carries the commands out by libnftables, all or none. Returns false after adding the error. */
static bool run(struct nft_ctx *nft, const char *text, struct problems *problems)
{
	char first[160];

	if (nft_run_cmd_from_buffer(nft, text) == 0)
		return true;
	snprintf(first, sizeof(first), "%s", nft_ctx_get_error_buffer(nft));
	first[strcspn(first, "\n")] = '\0';
	log_debug("nftables refused:\n%s\n%s", text, nft_ctx_get_error_buffer(nft));
	if (strstr(first, "Operation not permitted"))
		problems_add(problems, &nowhere, "nftables: %s; start it as root or with CAP_NET_ADMIN", first);
	else
		problems_add(problems, &nowhere, "nftables: %s; the kernel has to be Linux 5.12 or newer, with CONFIG_NF_TABLES_INET, NFT_TPROXY, "
			     "NFT_SOCKET, NFT_CT, NFT_FIB, NFT_NAT and NFT_REJECT", first);
	return false;
}

/* ----- all together ----- */

/* Claims the table, which tells other gateways that there is one. Returns false after adding the error. */
static bool claim(struct nft_ctx *nft, struct problems *problems)
{
	if (nft_run_cmd_from_buffer(nft, "list table inet " TABLE "\n") < 0)
		return run(nft, "add table inet " TABLE " { flags owner; }\n", problems);
	problems_add(problems, &nowhere, "another convertgw runs here, and has the table \"" TABLE "\" of nftables; end it first, or give this one "
					 "a network namespace of its own");
	return false;
}

/* Frees the rules' memory; the kernel removes the tables. */
static void destroy(struct gateway_rules *rules)
{
	if (rules->nft)
		nft_ctx_free(rules->nft);
	hold_rules_destroy(rules->syns);
	free(rules);
}

static struct gateway_rules *create(struct problems *problems)
{
	struct gateway_rules *rules = calloc(1, sizeof(*rules));
	int error = rules ? hold_rules_create(&rules->syns, "convertgw", -1) : -ENOMEM;

	if (!error)
		rules->nft = nft_ctx_new(NFT_CTX_DEFAULT);
	if (!error && !rules->nft)
		error = -ENOMEM;
	if (error)
		problems_add(problems, &nowhere, "no netlink socket for nftables: %s", strerror(-error));
	if (!error) {
		nft_ctx_buffer_error(rules->nft);
		nft_ctx_buffer_output(rules->nft);
		if (claim(rules->nft, problems))
			return rules;
	}
	if (rules)
		destroy(rules);
	return NULL;
}

/* Installs everything but the table that makes SYNs candidates. Returns false after adding the error. */
static bool prepare(struct gateway_rules *rules, const struct gateway_settings *settings, const struct hold_rules_queues *queues,
		    bool *refuses, struct problems *problems)
{
	const struct hold_rules_marked marked = { gateway_divert_mark(settings), settings->mark, settings->host };
	int error = hold_rules_install_marked(rules->syns, &marked, queues, refuses);

	if (error) {
		problems_add(problems, &nowhere, "nftables' rules for SYNs: %s; the kernel needs nft_queue, or nft_compat and xt_NFQUEUE",
			     strerror(-error));
		return false;
	}
	error = gateway_policies_add(settings);
	if (error)
		problems_add(problems, &nowhere, "the policy rules for marked packets: %s; the kernel needs CONFIG_IP_MULTIPLE_TABLES",
			     strerror(-error));
	return !error;
}

bool gateway_rules_install(struct gateway_rules **at, const struct gateway_settings *settings, const struct hold_rules_queues *queues,
			   bool *refuses, struct problems *problems)
{
	struct gateway_rules *rules = *at ? *at : create(problems);
	struct served served;
	char *text;
	bool done;

	if (!rules)
		return false;
	served = served_with(&rules->served, settings);
	text = commands(settings, &served);
	done = text && prepare(rules, settings, queues, refuses, problems) && run(rules->nft, text, problems);
	if (!text)
		problems_add(problems, &nowhere, "out of memory");
	free(text);
	if (done) {
		gateway_policies_keep(settings);
		rules->served = served;
		*at = rules;
	} else if (!*at) { /* leaves a killed gateway's table convertgw_require, so that it refuses on */
		gateway_policies_keep(NULL);
		destroy(rules);
	}
	return done;
}

void gateway_rules_stop_diverting(struct gateway_rules *rules)
{
	struct problems ignored = { 0 };

	run(rules->nft, "flush chain inet " TABLE " choose_lan\n", &ignored);
	run(rules->nft, "flush chain inet " TABLE " choose_host\n", &ignored); /* there is none without --host */
}

void gateway_rules_remove(struct gateway_rules *rules)
{
	struct problems ignored = { 0 };

	if (!rules)
		return;
	run(rules->nft, NO_REQUIREMENTS, &ignored);
	gateway_policies_keep(NULL);
	destroy(rules);
}
