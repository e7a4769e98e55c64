/* SPDX-License-Identifier: BSD-3-Clause */
/* nft_rule.c - what a rule of nftables matches and does, expression by expression */
#include "config.h"

#include "convertd/syn/nft_rule.h"

#include <linux/netfilter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

/* Where fields are in their headers (RFC 791, 8200, 9293). */
#define IP_DADDR_OFFSET 16
#define IP6_DADDR_OFFSET 24
#define TCP_DPORT_OFFSET 2
#define TCP_FLAGS_OFFSET 13
#define TCP_FIN_SYN_RST_ACK 0x17
#define TCP_SYN_ONLY 0x02

struct nftnl_expr *nft_rule_new_expr(struct nft_transaction *t, const char *type)
{
	struct nftnl_expr *expr = t->rule ? nftnl_expr_alloc(type) : NULL;

	t->failed |= !expr;
	return expr;
}

void nft_rule_add(struct nft_transaction *t, struct nftnl_expr *expr)
{
	if (expr)
		nftnl_rule_add_expr(t->rule, expr);
}

void nft_rule_compare(struct nft_transaction *t, enum nft_cmp_ops op, const void *data, size_t len)
{
	struct nftnl_expr *expr = nft_rule_new_expr(t, "cmp");

	if (!expr)
		return;
	nftnl_expr_set_u32(expr, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_CMP_OP, op);
	nftnl_expr_set(expr, NFTNL_EXPR_CMP_DATA, data, (uint32_t)len);
	nft_rule_add(t, expr);
}

/* Matches packets about which the kernel knows that. */
static void match_meta(struct nft_transaction *t, enum nft_meta_keys key, const void *data, size_t len)
{
	struct nftnl_expr *expr = nft_rule_new_expr(t, "meta");

	if (!expr)
		return;
	nftnl_expr_set_u32(expr, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_META_DREG, NFT_REG_1);
	nft_rule_add(t, expr);
	nft_rule_compare(t, NFT_CMP_EQ, data, len);
}

void nft_rule_load_payload(struct nft_transaction *t, enum nft_payload_bases base, uint32_t offset,
			   size_t len)
{
	struct nftnl_expr *expr = nft_rule_new_expr(t, "payload");

	if (!expr)
		return;
	nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_LEN, (uint32_t)len);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
	nft_rule_add(t, expr);
}

void nft_rule_load_tcp_option(struct nft_transaction *t, uint8_t kind, uint32_t offset)
{
	struct nftnl_expr *expr = nft_rule_new_expr(t, "exthdr");

	if (!expr)
		return;
	nftnl_expr_set_u8(expr, NFTNL_EXPR_EXTHDR_TYPE, kind);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_EXTHDR_OP, NFT_EXTHDR_OP_TCPOPT);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_EXTHDR_OFFSET, offset);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_EXTHDR_LEN, 1);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_EXTHDR_DREG, NFT_REG_1);
	nft_rule_add(t, expr);
}

void nft_rule_mask_byte(struct nft_transaction *t, uint8_t mask)
{
	static const uint8_t xor = 0;
	struct nftnl_expr *expr = nft_rule_new_expr(t, "bitwise");

	if (!expr)
		return;
	nftnl_expr_set_u32(expr, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_BITWISE_LEN, sizeof(mask));
	nftnl_expr_set(expr, NFTNL_EXPR_BITWISE_MASK, &mask, sizeof(mask));
	nftnl_expr_set(expr, NFTNL_EXPR_BITWISE_XOR, &xor, sizeof(xor));
	nft_rule_add(t, expr);
}

void nft_rule_match_tcp(struct nft_transaction *t)
{
	static const uint8_t tcp = IPPROTO_TCP;

	match_meta(t, NFT_META_L4PROTO, &tcp, sizeof(tcp));
}

void nft_rule_match_syn(struct nft_transaction *t)
{
	static const uint8_t syn = TCP_SYN_ONLY;

	nft_rule_load_payload(t, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS_OFFSET, sizeof(syn));
	nft_rule_mask_byte(t, TCP_FIN_SYN_RST_ACK);
	nft_rule_compare(t, NFT_CMP_EQ, &syn, sizeof(syn));
}

void nft_rule_match_address(struct nft_transaction *t, const struct listen_address *listen)
{
	static const uint8_t ipv4 = NFPROTO_IPV4, ipv6 = NFPROTO_IPV6;
	const union sockaddr_ip *address = &listen->address;
	uint8_t device[IFNAMSIZ] = { 0 };

	if (listen->device[0]) {
		memcpy(device, listen->device, strlen(listen->device));
		match_meta(t, NFT_META_IIFNAME, device, sizeof(device));
	}
	if (address->sa.sa_family == AF_INET) {
		match_meta(t, NFT_META_NFPROTO, &ipv4, sizeof(ipv4));
		if (address->in.sin_addr.s_addr == htonl(INADDR_ANY))
			return;
		nft_rule_load_payload(t, NFT_PAYLOAD_NETWORK_HEADER, IP_DADDR_OFFSET,
				      sizeof(address->in.sin_addr));
		nft_rule_compare(t, NFT_CMP_EQ, &address->in.sin_addr,
				 sizeof(address->in.sin_addr));
	} else if (!IN6_IS_ADDR_UNSPECIFIED(&address->in6.sin6_addr)) {
		match_meta(t, NFT_META_NFPROTO, &ipv6, sizeof(ipv6));
		nft_rule_load_payload(t, NFT_PAYLOAD_NETWORK_HEADER, IP6_DADDR_OFFSET,
				      sizeof(address->in6.sin6_addr));
		nft_rule_compare(t, NFT_CMP_EQ, &address->in6.sin6_addr,
				 sizeof(address->in6.sin6_addr));
	}
}

void nft_rule_match_port(struct nft_transaction *t, const struct listen_address *listen)
{
	const uint16_t port = htons(sockaddr_ip_port(&listen->address));

	nft_rule_load_payload(t, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_DPORT_OFFSET, sizeof(port));
	nft_rule_compare(t, NFT_CMP_EQ, &port, sizeof(port));
}

static void add_verdict(struct nft_transaction *t, int verdict, const char *chain)
{
	struct nftnl_expr *expr = nft_rule_new_expr(t, "immediate");

	if (!expr)
		return;
	nftnl_expr_set_u32(expr, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(expr, NFTNL_EXPR_IMM_VERDICT, (uint32_t)verdict);
	if (chain)
		nftnl_expr_set_str(expr, NFTNL_EXPR_IMM_CHAIN, chain);
	nft_rule_add(t, expr);
}

void nft_rule_accept(struct nft_transaction *t)
{
	add_verdict(t, NF_ACCEPT, NULL);
}

static void add_reject(struct nft_transaction *t, enum nft_reject_types type, uint8_t code)
{
	struct nftnl_expr *expr = nft_rule_new_expr(t, "reject");

	if (!expr)
		return;
	nftnl_expr_set_u32(expr, NFTNL_EXPR_REJECT_TYPE, type);
	nftnl_expr_set_u8(expr, NFTNL_EXPR_REJECT_CODE, code);
	nft_rule_add(t, expr);
}

void nft_rule_reject_by_reset(struct nft_transaction *t)
{
	add_reject(t, NFT_REJECT_TCP_RST, 0);
}

void nft_rule_reject_by_icmp(struct nft_transaction *t, uint8_t code)
{
	add_reject(t, NFT_REJECT_ICMP_UNREACH, code);
}

void nft_rule_jump(struct nft_transaction *t, const char *chain)
{
	add_verdict(t, NFT_JUMP, chain);
}
