/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nft.c - changes a table of nftables that belongs to a netlink socket, by transactions and the expressions of its rules
 *
 * The table has "flags owner" (Linux 5.12): no other program can change it, and the kernel removes it when the last
 * descriptor of its socket is closed, by nft_table_fini() or by the end of a killed process. So there is nothing to
 * clean up.
 *
 * A transaction is one message with several in it, from BATCH_BEGIN to BATCH_END. The kernel makes all of the changes
 * at once, or none, so that each packet meets either the old rules or the new ones. It answers each change by an
 * acknowledgement or an error, within the call that sends.
 *
 * A step without memory sets @failed and does nothing else: then nothing is sent.
 */
#include "config.h"

#include "hold/nft.h"

#include <errno.h>
#include <fcntl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The most bytes of a message: a rule of 14 expressions takes some 800. */
#define MESSAGE_MAX 2048

/* Tells whether this is the descriptor of a table's socket, made by any process. */
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

int nft_table_init(struct nft_table *table, int kept)
{
	*table = (struct nft_table){ .netlink = open_netlink(kept), .sequence = 1 };
	return table->netlink ? 0 : -errno;
}

void nft_table_fini(struct nft_table *table)
{
	mnl_socket_close(table->netlink);
}

static struct nlmsghdr *start_message(struct nft_transaction *t, uint16_t type, uint16_t flags)
{
	t->acks++;
	return nftnl_nlmsg_build_hdr(mnl_nlmsg_batch_current(t->batch), type, NFPROTO_INET,
				     flags | NLM_F_ACK, t->table->sequence++);
}

static void put_table(struct nft_transaction *t)
{
	struct nftnl_table *table = nftnl_table_alloc();

	if (!table) {
		t->failed = true;
		return;
	}
	nftnl_table_set_str(table, NFTNL_TABLE_NAME, t->table->name);
	nftnl_table_set_u32(table, NFTNL_TABLE_FLAGS, NFT_TABLE_F_OWNER);
	nftnl_table_nlmsg_build_payload(start_message(t, NFT_MSG_NEWTABLE, NLM_F_CREATE), table);
	mnl_nlmsg_batch_next(t->batch);
	nftnl_table_free(table);
}

void nft_transaction_begin(struct nft_transaction *t, struct nft_table *table, size_t calls)
{
	/* A chain takes two messages. The begin, the end and the table take one each. */
	size_t size = (2 * calls + 3) * MESSAGE_MAX;

	*t = (struct nft_transaction){ .table = table, .buf = malloc(size + MESSAGE_MAX) };
	if (t->buf)
		t->batch = mnl_nlmsg_batch_start(t->buf, size);
	t->failed = !t->batch;
	if (t->failed)
		return;
	nftnl_batch_begin(mnl_nlmsg_batch_current(t->batch), table->sequence++);
	mnl_nlmsg_batch_next(t->batch);
	put_table(t);
}

/* Removes all rules of a chain. */
static void empty_chain(struct nft_transaction *t, const char *name)
{
	struct nftnl_rule *rule = nftnl_rule_alloc();

	if (!rule) {
		t->failed = true;
		return;
	}
	nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, t->table->name);
	nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, name);
	nftnl_rule_nlmsg_build_payload(start_message(t, NFT_MSG_DELRULE, 0), rule);
	mnl_nlmsg_batch_next(t->batch);
	nftnl_rule_free(rule);
}

void nft_transaction_add_chain(struct nft_transaction *t, const char *name, const struct nft_hook *hook)
{
	struct nftnl_chain *chain = t->failed ? NULL : nftnl_chain_alloc();

	if (!chain) {
		t->failed = true;
		return;
	}
	nftnl_chain_set_str(chain, NFTNL_CHAIN_TABLE, t->table->name);
	nftnl_chain_set_str(chain, NFTNL_CHAIN_NAME, name);
	if (hook) {
		nftnl_chain_set_str(chain, NFTNL_CHAIN_TYPE, "filter");
		nftnl_chain_set_u32(chain, NFTNL_CHAIN_HOOKNUM, hook->number);
		nftnl_chain_set_s32(chain, NFTNL_CHAIN_PRIO, hook->priority);
	}
	nftnl_chain_nlmsg_build_payload(start_message(t, NFT_MSG_NEWCHAIN, NLM_F_CREATE), chain);
	mnl_nlmsg_batch_next(t->batch);
	nftnl_chain_free(chain);
	empty_chain(t, name);
}

void nft_transaction_begin_rule(struct nft_transaction *t, const char *chain)
{
	t->rule = t->failed ? NULL : nftnl_rule_alloc();
	if (!t->rule) {
		t->failed = true;
		return;
	}
	nftnl_rule_set_str(t->rule, NFTNL_RULE_TABLE, t->table->name);
	nftnl_rule_set_str(t->rule, NFTNL_RULE_CHAIN, chain);
}

void nft_transaction_end_rule(struct nft_transaction *t)
{
	if (!t->rule)
		return;
	nftnl_rule_nlmsg_build_payload(
		start_message(t, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND), t->rule);
	mnl_nlmsg_batch_next(t->batch);
	nftnl_rule_free(t->rule);
	t->rule = NULL;
}

/* Reads the kernel's answers, which it has given within the call that sends. Returns 0, or the first error. */
static int read_answers(const struct nft_transaction *t)
{
	int fd = mnl_socket_get_fd(t->table->netlink), error = 0;
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

static int send_batch(struct nft_transaction *t)
{
	nftnl_batch_end(mnl_nlmsg_batch_current(t->batch), t->table->sequence++);
	mnl_nlmsg_batch_next(t->batch);
	if (mnl_socket_sendto(t->table->netlink, mnl_nlmsg_batch_head(t->batch),
			      mnl_nlmsg_batch_size(t->batch)) < 0)
		return -errno;
	return read_answers(t);
}

int nft_transaction_commit(struct nft_transaction *t)
{
	int error = t->failed ? -ENOMEM : send_batch(t);

	if (t->batch)
		mnl_nlmsg_batch_stop(t->batch);
	free(t->buf);
	return error;
}

/* ----- the expressions of a rule of nftables ----- */

/* Offsets of fields in their headers (RFC 791, 8200, 9293). */
#define IP_DADDR_OFFSET 16
#define IP6_DADDR_OFFSET 24
#define TCP_DPORT_OFFSET 2
#define TCP_FLAGS_OFFSET 13
#define TCP_FIN_SYN_RST_ACK 0x17
#define TCP_SYN_ONLY 0x02

void nft_rule_put_all(struct nft_transaction *t, const char *type, const struct nft_attribute *attributes, size_t count)
{
	struct nftnl_expr *expr = t->rule ? nftnl_expr_alloc(type) : NULL;

	if (!expr) {
		t->failed = true;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const struct nft_attribute *a = &attributes[i];

		if (a->data)
			nftnl_expr_set(expr, a->type, a->data, a->len);
		else if (a->len == sizeof(uint8_t))
			nftnl_expr_set_u8(expr, a->type, (uint8_t)a->value);
		else if (a->len == sizeof(uint16_t))
			nftnl_expr_set_u16(expr, a->type, (uint16_t)a->value);
		else
			nftnl_expr_set_u32(expr, a->type, a->value);
	}
	nftnl_rule_add_expr(t->rule, expr);
}

/* Loads a fact that the kernel knows about the packet into register 1. */
static void load_meta(struct nft_transaction *t, enum nft_meta_keys key)
{
	nft_rule_put(t, "meta", NFT_U32(NFTNL_EXPR_META_KEY, key), NFT_U32(NFTNL_EXPR_META_DREG, NFT_REG_1));
}

/* Loads a field of a header; the rule ends if the packet has no such field. */
static void load_payload(struct nft_transaction *t, enum nft_payload_bases base, uint32_t offset, size_t len)
{
	nft_rule_put(t, "payload", NFT_U32(NFTNL_EXPR_PAYLOAD_BASE, base), NFT_U32(NFTNL_EXPR_PAYLOAD_OFFSET, offset),
		     NFT_U32(NFTNL_EXPR_PAYLOAD_LEN, len), NFT_U32(NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1));
}

/* Clears all bits of register 1 outside the @len bytes at @mask, 4 at most. */
static void mask(struct nft_transaction *t, const void *mask, size_t len)
{
	static const uint32_t xor = 0;

	nft_rule_put(t, "bitwise", NFT_U32(NFTNL_EXPR_BITWISE_SREG, NFT_REG_1), NFT_U32(NFTNL_EXPR_BITWISE_DREG, NFT_REG_1),
		     NFT_U32(NFTNL_EXPR_BITWISE_LEN, len), NFT_DATA(NFTNL_EXPR_BITWISE_MASK, mask, len),
		     NFT_DATA(NFTNL_EXPR_BITWISE_XOR, &xor, len));
}

/* Continues the rule only if register 1 compares to @data by @op. */
static void compare(struct nft_transaction *t, enum nft_cmp_ops op, const void *data, size_t len)
{
	nft_rule_put(t, "cmp", NFT_U32(NFTNL_EXPR_CMP_SREG, NFT_REG_1), NFT_U32(NFTNL_EXPR_CMP_OP, op),
		     NFT_DATA(NFTNL_EXPR_CMP_DATA, data, len));
}

static void match_meta(struct nft_transaction *t, enum nft_meta_keys key, const void *data, size_t len)
{
	load_meta(t, key);
	compare(t, NFT_CMP_EQ, data, len);
}

void nft_rule_match_payload(struct nft_transaction *t, enum nft_payload_bases base, uint32_t offset, enum nft_cmp_ops op,
			    const void *data, size_t len)
{
	load_payload(t, base, offset, len);
	compare(t, op, data, len);
}

void nft_rule_match_mark(struct nft_transaction *t, uint32_t mark, uint32_t bits)
{
	load_meta(t, NFT_META_MARK);
	mask(t, &bits, sizeof(bits));
	compare(t, NFT_CMP_EQ, &mark, sizeof(mark));
}

void nft_rule_match_syn(struct nft_transaction *t)
{
	static const uint8_t tcp = IPPROTO_TCP, flags = TCP_FIN_SYN_RST_ACK, syn = TCP_SYN_ONLY;

	match_meta(t, NFT_META_L4PROTO, &tcp, sizeof(tcp));
	load_payload(t, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS_OFFSET, sizeof(flags));
	mask(t, &flags, sizeof(flags));
	compare(t, NFT_CMP_EQ, &syn, sizeof(syn));
}

void nft_rule_match_listener(struct nft_transaction *t, const struct listen_address *listen)
{
	static const uint8_t ipv4 = NFPROTO_IPV4, ipv6 = NFPROTO_IPV6;
	const union sockaddr_ip *address = &listen->address;
	const struct in_addr *in = &address->in.sin_addr;
	const struct in6_addr *in6 = &address->in6.sin6_addr;
	const uint16_t port = htons(sockaddr_ip_port(address));
	uint8_t device[IFNAMSIZ] = { 0 };

	nft_rule_match_payload(t, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_DPORT_OFFSET, NFT_CMP_EQ, &port, sizeof(port));
	if (listen->device[0]) {
		memcpy(device, listen->device, strlen(listen->device));
		match_meta(t, NFT_META_IIFNAME, device, sizeof(device));
	}
	if (address->sa.sa_family == AF_INET) {
		match_meta(t, NFT_META_NFPROTO, &ipv4, sizeof(ipv4));
		if (in->s_addr != htonl(INADDR_ANY))
			nft_rule_match_payload(t, NFT_PAYLOAD_NETWORK_HEADER, IP_DADDR_OFFSET, NFT_CMP_EQ, in, sizeof(*in));
	} else if (!IN6_IS_ADDR_UNSPECIFIED(in6)) {
		match_meta(t, NFT_META_NFPROTO, &ipv6, sizeof(ipv6));
		nft_rule_match_payload(t, NFT_PAYLOAD_NETWORK_HEADER, IP6_DADDR_OFFSET, NFT_CMP_EQ, in6, sizeof(*in6));
	}
}

void nft_rule_jump(struct nft_transaction *t, const char *chain)
{
	nft_rule_put(t, "immediate", NFT_U32(NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT), NFT_U32(NFTNL_EXPR_IMM_VERDICT, (uint32_t)NFT_JUMP),
		     NFT_DATA(NFTNL_EXPR_IMM_CHAIN, chain, strlen(chain) + 1));
}

void nft_rule_reject(struct nft_transaction *t, enum nft_reject_types type, uint8_t code)
{
	nft_rule_put(t, "reject", NFT_U32(NFTNL_EXPR_REJECT_TYPE, type), NFT_U8(NFTNL_EXPR_REJECT_CODE, code));
}
