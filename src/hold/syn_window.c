/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syn_window.c - corrects the window of MPTCP SYNs before the kernel misreads it
 *
 * The problem. The window in a SYN is in bytes; window scaling begins with the segments after it (RFC 7323 2.2). When
 * an MPTCP SYN carries data, Linux (6.18) initialises the connection-level send window from that SYN as if its window
 * were scaled already: with a scale of 10, 64240 bytes become 65 MB. MPTCP's flow control is off until so much has
 * been sent. The faster path overruns the client's buffer, the client drops the bytes without room, and a download
 * over two paths is slower than over one. Uploads and single paths don't suffer.
 *
 * The cure. nftables rules shift the window right by the scale in the same SYN, so that the kernel's mistake gives
 * the right number; the third ACK brings the real window. The effect of a small window lasts for that round trip, in
 * which a server usually sends nothing. The rules touch only initial SYNs with MP_CAPABLE: the kernel reads MP_JOIN
 * and plain TCP correctly. A window smaller than 2^scale becomes 1, never 0. The rules touch SYNs without data too;
 * there, the window of the third ACK is the first to be used.
 *
 * The chain "input" finds these SYNs and jumps to "shift", which has a rule for each scale. The table lasts as long
 * as its netlink socket (nft.c): until syn_window_remove() or the end of the process. When the addresses change, one
 * transaction replaces the rules: each SYN meets exactly one of both sets. The table's name has our process id and
 * port, so that several converters on a host don't interfere (in containers each may be process 1); each matches its
 * own addresses and ports only.
 */
#include "config.h"

#include "hold/hold_rules.h"

#include <errno.h>

#ifdef HAVE_NFTNL

#include "common/tcp.h"

#include "hold/nft.h"

#include <linux/netfilter_ipv4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHAIN_INPUT "input"
#define CHAIN_SHIFT "shift"

/* The largest scale of a window: larger ones count as 14 (RFC 7323 2.3). */
#define SCALE_MAX 14

/* Offsets of fields in the TCP header (RFC 9293) and in its options (RFC 7323 2.2, RFC 8684 3). */
#define WINDOW_OFFSET 14
#define CHECKSUM_OFFSET 16
#define SCALE_OFFSET 2
#define SUBTYPE_OFFSET 2
#define SUBTYPE_MASK 0xf0
#define MP_CAPABLE 0

struct syn_window {
	struct nft_table table;
	struct listen_address listen[LISTEN_ADDRESSES_MAX]; /* the addresses that the rules in force are for */
	size_t listen_count;
};

/* Turns the window in register 1 from network byte order into the host's, or back. */
static void turn_window(struct nft_transaction *t, enum nft_byteorder_ops op)
{
	nft_rule_put(t, "byteorder", NFT_U32(NFTNL_EXPR_BYTEORDER_SREG, NFT_REG_1), NFT_U32(NFTNL_EXPR_BYTEORDER_DREG, NFT_REG_1),
		     NFT_U32(NFTNL_EXPR_BYTEORDER_OP, op), NFT_U32(NFTNL_EXPR_BYTEORDER_LEN, sizeof(uint16_t)),
		     NFT_U32(NFTNL_EXPR_BYTEORDER_SIZE, sizeof(uint16_t)));
}

static void shift_window(struct nft_transaction *t, uint32_t scale)
{
	nft_rule_put(t, "bitwise", NFT_U32(NFTNL_EXPR_BITWISE_SREG, NFT_REG_1), NFT_U32(NFTNL_EXPR_BITWISE_DREG, NFT_REG_1),
		     NFT_U32(NFTNL_EXPR_BITWISE_LEN, sizeof(uint16_t)), NFT_U32(NFTNL_EXPR_BITWISE_OP, NFT_BITWISE_RSHIFT),
		     NFT_DATA(NFTNL_EXPR_BITWISE_DATA, &scale, sizeof(scale)));
}

/* Writes register 1 into the window, and corrects the checksum. */
static void store_window(struct nft_transaction *t)
{
	nft_rule_put(t, "payload", NFT_U32(NFTNL_EXPR_PAYLOAD_SREG, NFT_REG_1),
		     NFT_U32(NFTNL_EXPR_PAYLOAD_BASE, NFT_PAYLOAD_TRANSPORT_HEADER), NFT_U32(NFTNL_EXPR_PAYLOAD_OFFSET, WINDOW_OFFSET),
		     NFT_U32(NFTNL_EXPR_PAYLOAD_LEN, sizeof(uint16_t)), NFT_U32(NFTNL_EXPR_PAYLOAD_CSUM_TYPE, NFT_PAYLOAD_CSUM_INET),
		     NFT_U32(NFTNL_EXPR_PAYLOAD_CSUM_OFFSET, CHECKSUM_OFFSET));
}

/* "tcp option window count SCALE tcp window >= 1 << SCALE tcp window set tcp window >> SCALE accept" */
static void put_shift(struct nft_transaction *t, uint8_t scale)
{
	const uint16_t least = htons((uint16_t)(1 << scale));

	nft_transaction_begin_rule(t, CHAIN_SHIFT);
	nft_rule_load_tcp_option(t, TCP_KIND_WINDOW_SCALE, SCALE_OFFSET);
	nft_rule_compare(t, NFT_CMP_EQ, &scale, sizeof(scale));
	nft_rule_match_tcp(t);
	nft_rule_match_payload(t, NFT_PAYLOAD_TRANSPORT_HEADER, WINDOW_OFFSET, NFT_CMP_GTE, &least, sizeof(least));
	nft_rule_load_payload(t, NFT_PAYLOAD_TRANSPORT_HEADER, WINDOW_OFFSET, sizeof(least));
	turn_window(t, NFT_BYTEORDER_NTOH);
	shift_window(t, scale);
	turn_window(t, NFT_BYTEORDER_HTON);
	store_window(t);
	nft_rule_accept(t);
	nft_transaction_end_rule(t);
}

/* "tcp option window count 1-255 tcp window set 1" */
static void put_least(struct nft_transaction *t)
{
	static const uint8_t first = 1, last = 255;
	const uint16_t one = htons(1);

	nft_transaction_begin_rule(t, CHAIN_SHIFT);
	nft_rule_load_tcp_option(t, TCP_KIND_WINDOW_SCALE, SCALE_OFFSET);
	nft_rule_compare(t, NFT_CMP_GTE, &first, sizeof(first));
	nft_rule_compare(t, NFT_CMP_LTE, &last, sizeof(last));
	nft_rule_match_tcp(t);
	nft_rule_put(t, "immediate", NFT_U32(NFTNL_EXPR_IMM_DREG, NFT_REG_1), NFT_DATA(NFTNL_EXPR_IMM_DATA, &one, sizeof(one)));
	store_window(t);
	nft_transaction_end_rule(t);
}

/* Matches an initial SYN to the address: "... tcp option mptcp subtype 0 jump shift", 0 being MP_CAPABLE. */
static void put_input(struct nft_transaction *t, const struct listen_address *listen)
{
	static const uint8_t mp_capable = MP_CAPABLE;

	nft_transaction_begin_rule(t, CHAIN_INPUT);
	nft_rule_match_tcp(t);
	nft_rule_match_syn(t);
	nft_rule_match_address(t, listen);
	nft_rule_match_port(t, listen);
	nft_rule_load_tcp_option(t, TCP_KIND_MPTCP, SUBTYPE_OFFSET);
	nft_rule_mask_byte(t, SUBTYPE_MASK);
	nft_rule_compare(t, NFT_CMP_EQ, &mp_capable, sizeof(mp_capable));
	nft_rule_jump(t, CHAIN_SHIFT);
	nft_transaction_end_rule(t);
}

/* Replaces the rules. Returns 0 or -errno. */
static int put_rules(struct syn_window *window, const struct listen_address *listen, size_t count)
{
	static const struct nft_hook input = { NF_INET_LOCAL_IN, NF_IP_PRI_MANGLE };
	struct nft_transaction t;
	int error;

	nft_transaction_begin(&t, &window->table, 2 + SCALE_MAX + 1 + count);
	nft_transaction_add_chain(&t, CHAIN_SHIFT, NULL);
	nft_transaction_add_chain(&t, CHAIN_INPUT, &input);
	/* The kernel reads a scale of 0 correctly: no rule. */
	for (uint8_t scale = 1; scale <= SCALE_MAX; scale++)
		put_shift(&t, scale);
	put_least(&t);
	for (size_t i = 0; i < count; i++)
		put_input(&t, &listen[i]);
	error = nft_transaction_commit(&t);
	if (error)
		return error;
	memcpy(window->listen, listen, count * sizeof(*listen));
	window->listen_count = count;
	return 0;
}

static int syn_window_create(struct syn_window **out, const struct listen_address *listen)
{
	struct syn_window *window = calloc(1, sizeof(*window));
	int error = window ? nft_table_init(&window->table, -1) : -ENOMEM;

	if (error) {
		free(window);
		return error;
	}
	snprintf(window->table.name, sizeof(window->table.name), "convertd_%d_%u", (int)getpid(),
		 (unsigned)sockaddr_ip_port(&listen->address));
	*out = window;
	return 0;
}

int syn_window_install(struct syn_window **window, const struct listen_address *listen, size_t count)
{
	int error = 0;

	if (*window && (*window)->listen_count == count &&
	    memcmp((*window)->listen, listen, count * sizeof(*listen)) == 0)
		return 0;
	if (!*window)
		error = syn_window_create(window, listen);
	if (!error)
		error = put_rules(*window, listen, count);
	if (!error)
		return 0;
	/* Otherwise rules for addresses that are no longer ours would pass for rules for the present ones. */
	syn_window_remove(*window);
	*window = NULL;
	return error;
}

void syn_window_remove(struct syn_window *window)
{
	if (!window)
		return;
	nft_table_fini(&window->table);
	free(window);
}

#else

int syn_window_install(struct syn_window **window, const struct listen_address *listen, size_t count)
{
	(void)window, (void)listen, (void)count;
	return -ENOSYS;
}

void syn_window_remove(struct syn_window *window)
{
	(void)window;
}

#endif
