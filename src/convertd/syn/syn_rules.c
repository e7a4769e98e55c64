/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syn_rules.c - the nftables rules that hand SYNs for our listeners to netfilter queues
 *
 * There is a table with rules for each address. It belongs to a netlink socket of this process ("flags owner",
 * Linux 5.12), so that the kernel removes it when that closes, also by SIGKILL. There is nothing to
 * clean up, and converters on one host don't meet: each table matches its own addresses only. Where a
 * service manager keeps the listening sockets for the next process, it keeps the netlink socket as
 * well: there are rules as long as somebody may answer SYNs.
 *
 * Two chains. The first hands SYNs to the queues. What comes out of one, or passes by it because it is
 * full, or because nobody has it any more, goes on to the second one. That takes the
 * timestamps out of every SYN with a Convert message that convertd hasn't marked (syn_packet_mark()):
 * rules, other than convertd, can't be late, stopped or dead, so no SYN+ACK confirms a server which nobody has reached.
 *
 * The queue rule's action comes in two forms. The queue statement (CONFIG_NFT_QUEUE) is what nft(8) would
 * write. Kernels without it may have the same as a target of iptables, which nftables can call
 * (CONFIG_NFT_COMPAT and CONFIG_NETFILTER_XT_TARGET_NFQUEUE), without a program of iptables. nft(8)
 * shows that one as a comment, and libnftables can't write it; hence libnftnl.
 *
 * SYNs are taken where they are known to be for this host, before the table "filter" has judged
 * them: what a firewall drops at the usual priority is seen here, but a SYN that is released
 * goes on to the firewall.
 */
#include "config.h"

#include "convertd/syn/syn_rules.h"

#include "common/tcp_option.h"

#include "convertd/net/syn_packet.h"

#include <convert/convert.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/x_tables.h>
#include <linux/netfilter/xt_NFQUEUE.h>
#include <linux/netfilter_ipv4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHAIN_WITHHOLD "withhold"
#define CHAIN_UNCONFIRMED "unconfirmed"

/* Revision of xt_NFQ_info_v3, since Linux 3.10. */
#define NFQUEUE_REVISION 3

/* Messages of a transaction: its begin and end, table, chains, and two rules for each address. */
#define MESSAGE_MAX 2048
#define BATCH_MAX ((2 * LISTEN_ADDRESSES_MAX + 10) * MESSAGE_MAX)

/* Where fields are in their headers (RFC 791, 8200, 9293). */
#define IP_DADDR_OFFSET 16
#define IP6_DADDR_OFFSET 24
#define TCP_DPORT_OFFSET 2
#define TCP_FLAGS_OFFSET 13
#define TCP_URGENT_OFFSET 18
#define TCP_FIN_SYN_RST_ACK 0x17
#define TCP_SYN_ONLY 0x02

/* Where fields are in a Convert message (RFC 8803 6.1). */
#define MAGIC_OFFSET 2

struct syn_rules {
	struct mnl_socket *netlink;
	uint32_t sequence;
	char table[48];
};

/* A transaction on its way into @buf. */
struct transaction {
	struct syn_rules *rules;
	struct mnl_nlmsg_batch *batch;
	bool compat; /* the target of iptables in place of the queue statement */
	bool failed; /* out of memory */
	unsigned acks; /* how many messages the kernel answers */
};

static void add_expr(struct transaction *t, struct nftnl_rule *rule, struct nftnl_expr *expr)
{
	if (expr)
		nftnl_rule_add_expr(rule, expr);
	else
		t->failed = true;
}

static struct nftnl_expr *new_expr(struct transaction *t, const char *name)
{
	struct nftnl_expr *expr = nftnl_expr_alloc(name);

	t->failed |= !expr;
	return expr;
}

/* "register 1 is @data", or isn't it. */
static void add_comparison(struct transaction *t, struct nftnl_rule *rule, enum nft_cmp_ops op,
			   const void *data, size_t len)
{
	struct nftnl_expr *expr = new_expr(t, "cmp");

	if (!expr)
		return;
	nftnl_expr_set_u32(expr, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_CMP_OP, op);
	nftnl_expr_set(expr, NFTNL_EXPR_CMP_DATA, data, (uint32_t)len);
	add_expr(t, rule, expr);
}

static void add_cmp(struct transaction *t, struct nftnl_rule *rule, const void *data, size_t len)
{
	add_comparison(t, rule, NFT_CMP_EQ, data, len);
}

static void add_meta(struct transaction *t, struct nftnl_rule *rule, enum nft_meta_keys key,
		     const void *data, size_t len)
{
	struct nftnl_expr *expr = new_expr(t, "meta");

	if (!expr)
		return;
	nftnl_expr_set_u32(expr, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_META_DREG, NFT_REG_1);
	add_expr(t, rule, expr);
	add_cmp(t, rule, data, len);
}

static void load_payload(struct transaction *t, struct nftnl_rule *rule,
			 enum nft_payload_bases base, uint32_t offset, size_t len)
{
	struct nftnl_expr *expr = new_expr(t, "payload");

	if (!expr)
		return;
	nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_LEN, (uint32_t)len);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
	add_expr(t, rule, expr);
}

/* "tcp flags & (fin | syn | rst | ack) == syn" */
static void add_syn(struct transaction *t, struct nftnl_rule *rule)
{
	static const uint8_t mask = TCP_FIN_SYN_RST_ACK, xor = 0, syn = TCP_SYN_ONLY;
	struct nftnl_expr *expr = new_expr(t, "bitwise");

	load_payload(t, rule, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS_OFFSET, sizeof(mask));
	if (!expr)
		return;
	nftnl_expr_set_u32(expr, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_BITWISE_LEN, sizeof(mask));
	nftnl_expr_set(expr, NFTNL_EXPR_BITWISE_MASK, &mask, sizeof(mask));
	nftnl_expr_set(expr, NFTNL_EXPR_BITWISE_XOR, &xor, sizeof(xor));
	add_expr(t, rule, expr);
	add_cmp(t, rule, &syn, sizeof(syn));
}

/* Matches what goes to one of the converter's addresses; :: stands for all of both families. */
static void add_address(struct transaction *t, struct nftnl_rule *rule,
			const struct listen_address *listen)
{
	static const uint8_t ipv4 = NFPROTO_IPV4, ipv6 = NFPROTO_IPV6;
	const union sockaddr_ip *address = &listen->address;
	uint8_t device[IFNAMSIZ] = { 0 };

	if (listen->device[0]) {
		memcpy(device, listen->device, strlen(listen->device));
		add_meta(t, rule, NFT_META_IIFNAME, device, sizeof(device));
	}
	if (address->sa.sa_family == AF_INET) {
		add_meta(t, rule, NFT_META_NFPROTO, &ipv4, sizeof(ipv4));
		if (address->in.sin_addr.s_addr == htonl(INADDR_ANY))
			return;
		load_payload(t, rule, NFT_PAYLOAD_NETWORK_HEADER, IP_DADDR_OFFSET,
			     sizeof(address->in.sin_addr));
		add_cmp(t, rule, &address->in.sin_addr, sizeof(address->in.sin_addr));
	} else if (!IN6_IS_ADDR_UNSPECIFIED(&address->in6.sin6_addr)) {
		add_meta(t, rule, NFT_META_NFPROTO, &ipv6, sizeof(ipv6));
		load_payload(t, rule, NFT_PAYLOAD_NETWORK_HEADER, IP6_DADDR_OFFSET,
			     sizeof(address->in6.sin6_addr));
		add_cmp(t, rule, &address->in6.sin6_addr, sizeof(address->in6.sin6_addr));
	}
}

static void add_queues(struct transaction *t, struct nftnl_rule *rule,
		       const struct syn_rules_queues *queues)
{
	struct nftnl_expr *expr = new_expr(t, t->compat ? "target" : "queue");
	struct xt_NFQ_info_v3 *info;

	if (!expr)
		return;
	if (t->compat) {
		info = calloc(1, XT_ALIGN(sizeof(*info)));
		t->failed |= !info;
		if (info) {
			info->queuenum = queues->first;
			info->queues_total = queues->count;
			info->flags = NFQ_FLAG_BYPASS;
			nftnl_expr_set_str(expr, NFTNL_EXPR_TG_NAME, "NFQUEUE");
			nftnl_expr_set_u32(expr, NFTNL_EXPR_TG_REV, NFQUEUE_REVISION);
			/* Owned by the expression from here on. */
			nftnl_expr_set(expr, NFTNL_EXPR_TG_INFO, info,
				       XT_ALIGN(sizeof(*info)));
		}
	} else {
		nftnl_expr_set_u16(expr, NFTNL_EXPR_QUEUE_NUM, queues->first);
		nftnl_expr_set_u16(expr, NFTNL_EXPR_QUEUE_TOTAL, queues->count);
		nftnl_expr_set_u16(expr, NFTNL_EXPR_QUEUE_FLAGS, NFT_QUEUE_FLAG_BYPASS);
	}
	add_expr(t, rule, expr);
}

/* "@ih,16,16 == 0x2263 tcp urgptr != MARK reset tcp option timestamp" */
static void add_unconfirmed(struct transaction *t, struct nftnl_rule *rule)
{
	const uint16_t magic = htons(CONVERT_MAGIC), mark = htons(SYN_PACKET_MARK);
	struct nftnl_expr *expr = new_expr(t, "exthdr");

	/* Behind the TCP header; no match where there is no data. */
	load_payload(t, rule, NFT_PAYLOAD_INNER_HEADER, MAGIC_OFFSET, sizeof(magic));
	add_cmp(t, rule, &magic, sizeof(magic));
	load_payload(t, rule, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_URGENT_OFFSET, sizeof(mark));
	add_comparison(t, rule, NFT_CMP_NEQ, &mark, sizeof(mark));
	if (!expr)
		return;
	/* Without registers: turn the option into NOPs. */
	nftnl_expr_set_u8(expr, NFTNL_EXPR_EXTHDR_TYPE, TCP_KIND_TIMESTAMPS);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_EXTHDR_OP, NFT_EXTHDR_OP_TCPOPT);
	add_expr(t, rule, expr);
}

static struct nlmsghdr *start_message(struct transaction *t, uint16_t type, uint16_t flags)
{
	t->acks++;
	return nftnl_nlmsg_build_hdr(mnl_nlmsg_batch_current(t->batch), type, NFPROTO_INET,
				     flags | NLM_F_ACK, t->rules->sequence++);
}

static void put_table(struct transaction *t)
{
	struct nftnl_table *table = nftnl_table_alloc();

	if (!table) {
		t->failed = true;
		return;
	}
	nftnl_table_set_str(table, NFTNL_TABLE_NAME, t->rules->table);
	nftnl_table_set_u32(table, NFTNL_TABLE_FLAGS, NFT_TABLE_F_OWNER);
	nftnl_table_nlmsg_build_payload(start_message(t, NFT_MSG_NEWTABLE, NLM_F_CREATE), table);
	mnl_nlmsg_batch_next(t->batch);
	nftnl_table_free(table);
}

static void put_chain(struct transaction *t, const char *name, int priority)
{
	struct nftnl_chain *chain = nftnl_chain_alloc();

	if (!chain) {
		t->failed = true;
		return;
	}
	nftnl_chain_set_str(chain, NFTNL_CHAIN_TABLE, t->rules->table);
	nftnl_chain_set_str(chain, NFTNL_CHAIN_NAME, name);
	nftnl_chain_set_str(chain, NFTNL_CHAIN_TYPE, "filter");
	nftnl_chain_set_u32(chain, NFTNL_CHAIN_HOOKNUM, NF_INET_LOCAL_IN);
	nftnl_chain_set_s32(chain, NFTNL_CHAIN_PRIO, priority);
	nftnl_chain_nlmsg_build_payload(start_message(t, NFT_MSG_NEWCHAIN, NLM_F_CREATE), chain);
	mnl_nlmsg_batch_next(t->batch);
	nftnl_chain_free(chain);
}

/* Removes all rules of a chain. */
static void empty_chain(struct transaction *t, const char *name)
{
	struct nftnl_rule *rule = nftnl_rule_alloc();

	if (!rule) {
		t->failed = true;
		return;
	}
	nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, t->rules->table);
	nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, name);
	nftnl_rule_nlmsg_build_payload(start_message(t, NFT_MSG_DELRULE, 0), rule);
	mnl_nlmsg_batch_next(t->batch);
	nftnl_rule_free(rule);
}

/* @queues: for the first chain; NULL: it is the other one's rule */
static void put_rule(struct transaction *t, const struct listen_address *listen,
		     const struct syn_rules_queues *queues)
{
	static const uint8_t tcp = IPPROTO_TCP;
	struct nftnl_rule *rule = nftnl_rule_alloc();
	uint16_t port = htons(sockaddr_ip_port(&listen->address));

	if (!rule) {
		t->failed = true;
		return;
	}
	nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, t->rules->table);
	nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN,
			   queues ? CHAIN_WITHHOLD : CHAIN_UNCONFIRMED);
	add_meta(t, rule, NFT_META_L4PROTO, &tcp, sizeof(tcp));
	load_payload(t, rule, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_DPORT_OFFSET, sizeof(port));
	add_cmp(t, rule, &port, sizeof(port));
	add_syn(t, rule);
	add_address(t, rule, listen);
	if (queues)
		add_queues(t, rule, queues);
	else
		add_unconfirmed(t, rule);
	nftnl_rule_nlmsg_build_payload(
		start_message(t, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND), rule);
	mnl_nlmsg_batch_next(t->batch);
	nftnl_rule_free(rule);
}

static void put_all(struct transaction *t, const struct listen_address *listen, size_t count,
		    const struct syn_rules_queues *queues)
{
	nftnl_batch_begin(mnl_nlmsg_batch_current(t->batch), t->rules->sequence++);
	mnl_nlmsg_batch_next(t->batch);
	/*
	 * Table and chains may be there already, also from another process. They stay: where a hook goes,
	 * the kernel drops all packets in the queues of the namespace.
	 */
	put_table(t);
	put_chain(t, CHAIN_WITHHOLD, NF_IP_PRI_MANGLE);
	put_chain(t, CHAIN_UNCONFIRMED, NF_IP_PRI_MANGLE + 1);
	empty_chain(t, CHAIN_WITHHOLD);
	empty_chain(t, CHAIN_UNCONFIRMED);
	for (size_t i = 0; i < count; i++) {
		if (queues)
			put_rule(t, &listen[i], queues);
		put_rule(t, &listen[i], NULL);
	}
	nftnl_batch_end(mnl_nlmsg_batch_current(t->batch), t->rules->sequence++);
	mnl_nlmsg_batch_next(t->batch);
}

/* The kernel answers within the call that sends. Returns 0, or the first error that it tells. */
static int read_answers(const struct transaction *t)
{
	int fd = mnl_socket_get_fd(t->rules->netlink), error = 0;
	unsigned answers = 0;
	char reply[8192] __attribute__((aligned(NLMSG_ALIGNTO)));

	while (answers < t->acks) {
		ssize_t received = recv(fd, reply, sizeof(reply), MSG_DONTWAIT);
		const struct nlmsghdr *header = (const struct nlmsghdr *)reply;
		int left = (int)received;

		if (received < 0)
			return error ? error : -errno;
		for (; mnl_nlmsg_ok(header, left); header = mnl_nlmsg_next(header, &left)) {
			if (header->nlmsg_type != NLMSG_ERROR)
				continue;
			answers++;
			if (!error)
				error = ((const struct nlmsgerr *)mnl_nlmsg_get_payload(header))
						->error;
		}
	}
	return error;
}

static int transact(struct syn_rules *rules, const struct listen_address *listen, size_t count,
		    const struct syn_rules_queues *queues, bool compat, void *buf)
{
	struct transaction t = { .rules = rules, .compat = compat };
	int error = -ENOMEM;

	t.batch = mnl_nlmsg_batch_start(buf, BATCH_MAX - MESSAGE_MAX);
	if (!t.batch)
		return -ENOMEM;
	put_all(&t, listen, count, queues);
	if (!t.failed) {
		error = mnl_socket_sendto(rules->netlink, mnl_nlmsg_batch_head(t.batch),
					  mnl_nlmsg_batch_size(t.batch)) < 0 ?
				-errno :
				read_answers(&t);
	}
	mnl_nlmsg_batch_stop(t.batch);
	return error;
}

int syn_rules_install(struct syn_rules *rules, const struct listen_address *listen, size_t count,
		      const struct syn_rules_queues *queues)
{
	void *buf = malloc(BATCH_MAX);
	int error;

	if (!buf)
		return -ENOMEM;
	error = transact(rules, listen, count, queues, false, buf);
	/* No queue statement in this kernel: the expression isn't known. */
	if (error == -ENOENT || error == -EOPNOTSUPP)
		error = transact(rules, listen, count, queues, true, buf);
	free(buf);
	return error;
}

/* Was this descriptor opened by syn_rules_create(), in whichever process? */
static bool is_netfilter(int fd)
{
	int domain = 0, protocol = -1;
	socklen_t domain_len = sizeof(domain), protocol_len = sizeof(protocol);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &protocol_len) == 0 &&
	       domain == AF_NETLINK && protocol == NETLINK_NETFILTER;
}

/* Returns NULL with errno set. */
static struct mnl_socket *take_over_netlink(int kept)
{
	int fd = fcntl(kept, F_DUPFD_CLOEXEC, 0);
	struct mnl_socket *netlink = fd < 0 ? NULL : mnl_socket_fdopen(fd);
	char unread[8192];

	if (!netlink && fd >= 0)
		close(fd);
	/* Discards answers to a process that was killed before it had read them. */
	while (netlink && recv(fd, unread, sizeof(unread), MSG_DONTWAIT) > 0)
		;
	return netlink;
}

/* Returns NULL with errno set. */
static struct mnl_socket *open_netlink(int kept)
{
	struct mnl_socket *netlink;

	if (kept >= 0 && is_netfilter(kept))
		return take_over_netlink(kept);
	netlink = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (!netlink || mnl_socket_bind(netlink, 0, MNL_SOCKET_AUTOPID) == 0)
		return netlink;
	mnl_socket_close(netlink);
	return NULL;
}

int syn_rules_create(struct syn_rules **out, int kept)
{
	struct syn_rules *rules = calloc(1, sizeof(*rules));
	int error;

	if (!rules)
		return -ENOMEM;
	rules->netlink = open_netlink(kept);
	if (!rules->netlink) {
		error = -errno;
		free(rules);
		return error;
	}
	/* Containers may have the same process ids: the socket's port is the namespace's own. */
	snprintf(rules->table, sizeof(rules->table), "convertd_syns_%u",
		 mnl_socket_get_portid(rules->netlink));
	rules->sequence = 1;
	*out = rules;
	return 0;
}

int syn_rules_fd(const struct syn_rules *rules)
{
	return mnl_socket_get_fd(rules->netlink);
}

void syn_rules_destroy(struct syn_rules *rules)
{
	if (!rules)
		return;
	mnl_socket_close(rules->netlink); /* owns the table */
	free(rules);
}
