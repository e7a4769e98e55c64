/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold_rules.c - installs the nftables rules that put SYNs to our listeners, or marked ones, into netfilter queues
 *
 * A table has rules for each address, and lasts as long as its netlink socket (nft.c). Converters on one host don't
 * interfere: each table matches its own addresses only. If a service manager keeps the listening sockets for the next
 * process, it keeps the netlink socket as well: there are rules as long as some process may answer SYNs.
 *
 * Two chains have hooks. The first puts SYNs into the queues. SYNs that come out of a queue, or pass by it because it
 * is full or has no owner, go on to the second chain. That removes the timestamps from every SYN with a Convert
 * message, silent ones included, that convertd hasn't marked (syn_packet_mark()). Unlike convertd, rules can't be
 * late, stopped or dead, so no SYN+ACK confirms a server that wasn't reached.
 *
 * A third chain refuses SYNs that convertd has marked for that (syn_packet_refuse()), by a reset or an ICMP message,
 * for clients that can take no response off their streams (doc/private-tlvs.md). Kernels without
 * CONFIG_NFT_REJECT_INET do without this chain; then clients don't learn that they may rely on it.
 *
 * The queue rule's action comes in two forms. The queue statement (CONFIG_NFT_QUEUE) is the one that nft(8) would
 * write. Kernels without it may have the same action as a target of iptables, which nftables can call
 * (CONFIG_NFT_COMPAT and CONFIG_NETFILTER_XT_TARGET_NFQUEUE) without a program of iptables. nft(8) shows that one as
 * a comment.
 *
 * The chains for listeners see SYNs once they are known to be for this host, before the table "filter": so they see
 * SYNs that a firewall would drop at the usual priority, but a released SYN goes on to the firewall. The chains for
 * marked SYNs, a gateway's, are in "prerouting", "forward" and perhaps "output" (gateway_rules.c).
 */
#include "config.h"

#include "hold/hold_rules.h"

#include "common/tcp.h"

#include "hold/syn_packet.h"
#include "hold/nft.h"

#include <convert/convert.h>
#include <errno.h>
#include <linux/netfilter/x_tables.h>
#include <linux/netfilter/xt_NFQUEUE.h>
#include <linux/netfilter_ipv4.h>
#include <stdio.h>
#include <stdlib.h>

#define CHAIN_WITHHOLD "withhold"
#define CHAIN_UNCONFIRMED "unconfirmed"
#define CHAIN_REFUSE "refuse"

/* Revision of xt_NFQ_info_v3, since Linux 3.10. */
#define NFQUEUE_REVISION 3

/* The offset of the urgent pointer in a TCP header (RFC 9293), and of the magic number in a Convert message (RFC 8803 6.1). */
#define TCP_URGENT_OFFSET 18
#define MAGIC_OFFSET 2

struct hold_rules {
	struct nft_table table;
	bool own_chains; /* there are chains for this host's own packets */
};

/* "queue flags bypass to FIRST-LAST" */
static void add_queue_statement(struct nft_transaction *t, const struct hold_rules_queues *queues)
{
	nft_rule_put(t, "queue", NFT_U16(NFTNL_EXPR_QUEUE_NUM, queues->first), NFT_U16(NFTNL_EXPR_QUEUE_TOTAL, queues->count),
		     NFT_U16(NFTNL_EXPR_QUEUE_FLAGS, NFT_QUEUE_FLAG_BYPASS));
}

/* Adds a target of iptables that puts the packet into the queues, for kernels without the queue statement of nftables. */
static void add_queue_target(struct nft_transaction *t, const struct hold_rules_queues *queues)
{
	struct xt_NFQ_info_v3 *info = t->rule ? calloc(1, XT_ALIGN(sizeof(*info))) : NULL;

	if (!info) {
		t->failed = true;
		return;
	}
	info->queuenum = queues->first;
	info->queues_total = queues->count;
	info->flags = NFQ_FLAG_BYPASS;
	/* The expression owns @info from here on. */
	nft_rule_put(t, "target", NFT_DATA(NFTNL_EXPR_TG_NAME, "NFQUEUE", sizeof("NFQUEUE")), NFT_U32(NFTNL_EXPR_TG_REV, NFQUEUE_REVISION),
		     NFT_DATA(NFTNL_EXPR_TG_INFO, info, XT_ALIGN(sizeof(*info))));
}

/* "tcp urgptr == VALUE", or != */
static void match_urgent(struct nft_transaction *t, enum nft_cmp_ops op, uint16_t value)
{
	const uint16_t urgent = htons(value);

	nft_rule_match_payload(t, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_URGENT_OFFSET, op, &urgent, sizeof(urgent));
}

/* "@ih,16,16 == NUMBER tcp urgptr != MARK reset tcp option timestamp" */
static void add_unconfirmed(struct nft_transaction *t, uint16_t number)
{
	const uint16_t magic = htons(number);

	/* Behind the TCP header; no match without data. */
	nft_rule_match_payload(t, NFT_PAYLOAD_INNER_HEADER, MAGIC_OFFSET, NFT_CMP_EQ, &magic, sizeof(magic));
	match_urgent(t, NFT_CMP_NEQ, SYN_PACKET_MARK);
	/* An exthdr expression without a register turns the option into NOPs. */
	nft_rule_put(t, "exthdr", NFT_U8(NFTNL_EXPR_EXTHDR_TYPE, TCP_KIND_TIMESTAMPS), NFT_U32(NFTNL_EXPR_EXTHDR_OP, NFT_EXTHDR_OP_TCPOPT));
}

static void begin_rule(struct nft_transaction *t, const char *chain, const struct listen_address *listen)
{
	nft_transaction_begin_rule(t, chain);
	nft_rule_match_syn(t);
	nft_rule_match_listener(t, listen);
}

/* Makes the chain to which the SYNs of all addresses go, with a rule for each way of refusing a SYN. */
static void add_refusals(struct nft_transaction *t)
{
	nft_transaction_add_chain(t, CHAIN_REFUSE, NULL);
	nft_transaction_begin_rule(t, CHAIN_REFUSE);
	match_urgent(t, NFT_CMP_EQ, SYN_PACKET_REFUSED | NATIVE_RESET);
	nft_rule_reject(t, NFT_REJECT_TCP_RST, 0);
	nft_transaction_end_rule(t);
	for (uint8_t code = 0; code < NATIVE_CODES; code++) {
		nft_transaction_begin_rule(t, CHAIN_REFUSE);
		match_urgent(t, NFT_CMP_EQ, SYN_PACKET_REFUSED | code);
		nft_rule_reject(t, NFT_REJECT_ICMP_UNREACH, code);
		nft_transaction_end_rule(t);
	}
}

/* Features that the kernel may lack. */
struct forms {
	bool compat;  /* the target of iptables in place of the queue statement */
	bool refuses; /* the chain that refuses SYNs */
};

static void add_rules(struct nft_transaction *t, const struct listen_address *listen,
		      const struct hold_rules_queues *queues, const struct forms *forms)
{
	static const uint16_t magics[] = { CONVERT_MAGIC, CONVERT_MAGIC_SILENT };

	if (queues) {
		begin_rule(t, CHAIN_WITHHOLD, listen);
		(forms->compat ? add_queue_target : add_queue_statement)(t, queues);
		nft_transaction_end_rule(t);
	}
	if (forms->refuses) {
		begin_rule(t, CHAIN_UNCONFIRMED, listen);
		nft_rule_jump(t, CHAIN_REFUSE);
		nft_transaction_end_rule(t);
	}
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		begin_rule(t, CHAIN_UNCONFIRMED, listen);
		add_unconfirmed(t, magics[i]);
		nft_transaction_end_rule(t);
	}
}

static int transact(struct hold_rules *rules, const struct listen_address *listen, size_t count,
		    const struct hold_rules_queues *queues, const struct forms *forms)
{
	static const struct nft_hook first = { NF_INET_LOCAL_IN, NF_IP_PRI_MANGLE }, second = { NF_INET_LOCAL_IN, NF_IP_PRI_MANGLE + 1 };
	struct nft_transaction t;

	nft_transaction_begin(&t, &rules->table, 2 + (2 + NATIVE_CODES) + 4 * count);
	nft_transaction_add_chain(&t, CHAIN_WITHHOLD, &first);
	nft_transaction_add_chain(&t, CHAIN_UNCONFIRMED, &second);
	if (forms->refuses)
		add_refusals(&t);
	for (size_t i = 0; i < count; i++)
		add_rules(&t, &listen[i], queues, forms);
	return nft_transaction_commit(&t);
}

static void add_marked_rule(struct nft_transaction *t, const char *chain, const struct hold_rules_marked *marked)
{
	nft_transaction_begin_rule(t, chain);
	nft_rule_match_syn(t);
	nft_rule_match_mark(t, marked->mark, marked->mask);
}

static int transact_marked(struct hold_rules *rules, const struct hold_rules_marked *marked, const struct hold_rules_queues *queues,
			   const struct forms *forms)
{
	static const struct {
		const char *withhold, *refuse;
		struct nft_hook queue, reject;
	} ways[] = {
		{ CHAIN_WITHHOLD "_early", CHAIN_REFUSE "_early", { NF_INET_PRE_ROUTING, HOLD_RULES_MARKED_PRIORITY },
		  { NF_INET_PRE_ROUTING, HOLD_RULES_MARKED_PRIORITY + 1 } },
		{ CHAIN_WITHHOLD, CHAIN_REFUSE "_forwarded", { NF_INET_FORWARD, HOLD_RULES_MARKED_PRIORITY },
		  { NF_INET_FORWARD, HOLD_RULES_MARKED_PRIORITY + 1 } },
		{ CHAIN_WITHHOLD "_own", CHAIN_REFUSE "_own", { NF_INET_LOCAL_OUT, HOLD_RULES_MARKED_PRIORITY },
		  { NF_INET_LOCAL_OUT, HOLD_RULES_MARKED_PRIORITY + 1 } },
	};
	struct nft_transaction t;

	nft_transaction_begin(&t, &rules->table, (2 + NATIVE_CODES) + 3 * 4);
	if (forms->refuses)
		add_refusals(&t);
	rules->own_chains |= marked->own_syns;
	/* The last one only if somebody wants it, as chains take time for each packet. */
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) - !rules->own_chains; i++) {
		nft_transaction_add_chain(&t, ways[i].withhold, &ways[i].queue);
		if (queues && (ways[i].queue.number != NF_INET_LOCAL_OUT || marked->own_syns)) {
			add_marked_rule(&t, ways[i].withhold, marked);
			(forms->compat ? add_queue_target : add_queue_statement)(&t, queues);
			nft_transaction_end_rule(&t);
		}
		nft_transaction_add_chain(&t, ways[i].refuse, &ways[i].reject);
		if (forms->refuses) {
			add_marked_rule(&t, ways[i].refuse, marked);
			nft_rule_jump(&t, CHAIN_REFUSE);
			nft_transaction_end_rule(&t);
		}
	}
	return nft_transaction_commit(&t);
}

/* Rules for SYNs to our listeners, or for marked SYNs. */
static int install(struct hold_rules *rules, const struct listen_address *listen, size_t count, const struct hold_rules_marked *marked,
		   const struct hold_rules_queues *queues, bool *refuses)
{
	/* The kernel doesn't say which of the expressions it lacks. */
	static const struct forms forms[] = { { false, true }, { true, true }, { false, false }, { true, false } };
	int error = -ENOENT;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && (error == -ENOENT || error == -EOPNOTSUPP); i++) {
		error = marked ? transact_marked(rules, marked, queues, &forms[i]) : transact(rules, listen, count, queues, &forms[i]);
		*refuses = !error && forms[i].refuses;
	}
	return error;
}

int hold_rules_install(struct hold_rules *rules, const struct listen_address *listen, size_t count,
		      const struct hold_rules_queues *queues, bool *refuses)
{
	return install(rules, listen, count, NULL, queues, refuses);
}

int hold_rules_install_marked(struct hold_rules *rules, const struct hold_rules_marked *marked, const struct hold_rules_queues *queues,
			      bool *refuses)
{
	return install(rules, NULL, 0, marked, queues, refuses);
}

int hold_rules_create(struct hold_rules **out, const char *program, int kept)
{
	struct hold_rules *rules = calloc(1, sizeof(*rules));
	int error = rules ? nft_table_init(&rules->table, kept) : -ENOMEM;

	if (error) {
		free(rules);
		return error;
	}
	/* Containers may have the same process ids: the socket's port is the namespace's own. */
	snprintf(rules->table.name, sizeof(rules->table.name), "%s_syns_%u", program,
		 mnl_socket_get_portid(rules->table.netlink));
	*out = rules;
	return 0;
}

int hold_rules_fd(const struct hold_rules *rules)
{
	return mnl_socket_get_fd(rules->table.netlink);
}

void hold_rules_destroy(struct hold_rules *rules)
{
	if (!rules)
		return;
	nft_table_fini(&rules->table);
	free(rules);
}
