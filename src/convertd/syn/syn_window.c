/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syn_window.c - correct the window of MPTCP SYNs before the kernel misreads it
 *
 * The problem. The window in a SYN is in bytes; window scaling begins with the segments after it
 * (RFC 7323 2.2). When an MPTCP SYN carries data, Linux (6.18) initialises the connection-level
 * send window from that SYN as if its window were scaled already: with a scale of 10, 64240
 * bytes become 65 MB. MPTCP's flow control is off until so much has been sent, the
 * faster path overruns the client's buffer, the client drops what it can't take, and a download
 * over two paths is slower than over one. Uploads and single paths don't suffer.
 *
 * The cure. nftables rules shift the window right by the scale in the same SYN, so that the
 * kernel's mistake gives the right number; the third ACK brings the real window. The effect of
 * a small window lasts for that round trip, in which a server has nothing to send as a rule.
 * Only initial SYNs with MP_CAPABLE are touched: MP_JOIN and plain TCP are read correctly. A
 * window smaller than 2^scale becomes 1, never 0. Plain connects are touched too; there, the
 * window of the third ACK is the first to be used.
 *
 * The table belongs to our netlink socket ("flags owner", Linux 5.12): the kernel removes it when
 * that closes, be it in syn_window_remove() or by SIGKILL. When the addresses change, one
 * transaction replaces it: no SYN meets none of both tables, or both. Its name has our process
 * id and port, so that several converters on a host don't meet (in containers each may be
 * process 1); each matches its own addresses and ports only.
 */
#include "config.h"

#include "convertd/syn/syn_window.h"

#include "convertd/base/log.h"

#ifdef HAVE_LIBNFTABLES

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <nftables/libnftables.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The largest scale of a window: larger ones count as 14 (RFC 7323 2.3). */
#define SCALE_MAX 14

struct syn_window {
	struct nft_ctx *nft;
	char table[48];
	struct listen_address listen[LISTEN_ADDRESSES_MAX]; /* what the rules in force are for */
	size_t listen_count;
};

/* Writes "ip daddr 192.0.2.1 tcp dport 1234": what goes to one of the converter's addresses. */
static void print_match(FILE *rules, const struct listen_address *listen)
{
	const union sockaddr_ip *address = &listen->address;
	char text[SOCKADDR_STRLEN];
	bool v4 = address->sa.sa_family == AF_INET;

	if (listen->device[0])
		fprintf(rules, "iifname \"%s\" ", listen->device);
	if (v4 && address->in.sin_addr.s_addr == htonl(INADDR_ANY)) {
		fprintf(rules, "meta nfproto ipv4 ");
	} else if (v4 || !IN6_IS_ADDR_UNSPECIFIED(&address->in6.sin6_addr)) {
		char *end;

		/* "ADDRESS:PORT" or "[ADDRESS]:PORT" without what isn't the address. */
		sockaddr_ip_format(address, text);
		end = strrchr(text, ':');
		*end = '\0';
		if (!v4)
			end[-1] = '\0';
		fprintf(rules, "%s daddr %s ", v4 ? "ip" : "ip6", v4 ? text : text + 1);
	}
	fprintf(rules, "tcp dport %u", (unsigned)sockaddr_ip_port(address));
}

/* The table as nft(8) reads it; the caller frees it. NULL: out of memory. */
static char *make_rules(const struct syn_window *window, const struct listen_address *listen,
			size_t count)
{
	char *text = NULL;
	size_t len;
	FILE *rules = open_memstream(&text, &len);

	if (!rules)
		return NULL;
	if (window->listen_count)
		fprintf(rules, "delete table inet %s\n", window->table);
	fprintf(rules, "table inet %s {\n\tflags owner\n\tchain shift {\n", window->table);
	/* A scale of 0 is read correctly: no rule. */
	for (int scale = 1; scale <= SCALE_MAX; scale++)
		fprintf(rules,
			"\t\ttcp option window count %d tcp window >= %d"
			" tcp window set tcp window >> %d accept\n",
			scale, 1 << scale, scale);
	fprintf(rules, "\t\ttcp option window count 1-255 tcp window set 1\n\t}\n"
		       "\tchain input {\n\t\ttype filter hook input priority mangle\n");
	for (size_t i = 0; i < count; i++) {
		fprintf(rules, "\t\ttcp flags & (fin | syn | rst | ack) == syn ");
		print_match(rules, &listen[i]);
		/* 0 is MP_CAPABLE, RFC 8684 3. */
		fprintf(rules, " tcp option mptcp subtype 0 jump shift\n");
	}
	fprintf(rules, "\t}\n}\n");
	if (fclose(rules) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/*
 * May we use nftables? Asks for the rule set's generation. libnftables isn't asked, because it
 * ends the process where there is no nfnetlink, and prints where there is no permission.
 * Returns 0 or -errno.
 */
static int probe_nftables(void)
{
	struct {
		struct nlmsghdr header;
		struct nfgenmsg body;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN,
			    .nlmsg_flags = NLM_F_REQUEST },
		.body = { .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0 },
	};
	char reply[4096] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *header = (const struct nlmsghdr *)reply;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	int error = 0;

	if (fd < 0)
		return -errno;
	/* Requests are answered within the call that sends them. */
	if (send(fd, &request, sizeof(request), 0) < 0 ||
	    recv(fd, reply, sizeof(reply), MSG_DONTWAIT) < (ssize_t)sizeof(*header))
		error = -errno;
	else if (header->nlmsg_type == NLMSG_ERROR)
		error = ((const struct nlmsgerr *)NLMSG_DATA(header))->error;
	close(fd);
	return error;
}

/* Copies the first line of what nftables has said. */
static void tell_refusal(struct nft_ctx *nft, char why[static SYN_WINDOW_WHY_MAX])
{
	snprintf(why, SYN_WINDOW_WHY_MAX, "%s", nft_ctx_get_error_buffer(nft));
	why[strcspn(why, "\n")] = '\0';
	if (!why[0])
		snprintf(why, SYN_WINDOW_WHY_MAX, "nftables refused the rules");
}

static struct syn_window *syn_window_create(const struct listen_address *listen)
{
	struct syn_window *window = calloc(1, sizeof(*window));

	if (!window)
		return NULL;
	snprintf(window->table, sizeof(window->table), "convertd_%d_%u", (int)getpid(),
		 (unsigned)sockaddr_ip_port(&listen->address));
	window->nft = nft_ctx_new(NFT_CTX_DEFAULT);
	if (!window->nft) {
		free(window);
		return NULL;
	}
	nft_ctx_buffer_output(window->nft);
	nft_ctx_buffer_error(window->nft);
	return window;
}

/* Replaces the rules. Returns 0 or -errno, with @why where that says little. */
static int put_rules(struct syn_window *window, const struct listen_address *listen, size_t count,
		     char why[static SYN_WINDOW_WHY_MAX])
{
	char *rules = window ? make_rules(window, listen, count) : NULL;
	int error = 0;

	if (!rules)
		return -ENOMEM;
	log_debug("nftables rules:\n%s", rules);
	if (nft_run_cmd_from_buffer(window->nft, rules) == 0) {
		memcpy(window->listen, listen, count * sizeof(*listen));
		window->listen_count = count;
	} else {
		error = -EOPNOTSUPP;
		tell_refusal(window->nft, why);
	}
	free(rules);
	return error;
}

int syn_window_install(struct syn_window **window, const struct listen_address *listen,
		       size_t count, char why[static SYN_WINDOW_WHY_MAX])
{
	int error;

	why[0] = '\0';
	if (*window && (*window)->listen_count == count &&
	    memcmp((*window)->listen, listen, count * sizeof(*listen)) == 0)
		return 0;
	error = probe_nftables();
	if (!error && !*window)
		*window = syn_window_create(listen);
	if (!error)
		error = put_rules(*window, listen, count, why);
	if (!error)
		return 0;
	/* Rules for addresses that are no longer ours would be taken for rules for all of them. */
	syn_window_remove(*window);
	*window = NULL;
	return error;
}

void syn_window_remove(struct syn_window *window)
{
	if (!window)
		return;
	if (window->nft)
		nft_ctx_free(window->nft); /* closes the socket that owns the table */
	free(window);
}

#else /* HAVE_LIBNFTABLES */

#include <errno.h>
#include <stdio.h>

int syn_window_install(struct syn_window **window, const struct listen_address *listen,
		       size_t count, char why[static SYN_WINDOW_WHY_MAX])
{
	(void)window;
	(void)listen;
	(void)count;
	snprintf(why, SYN_WINDOW_WHY_MAX, "convertd was built without libnftables");
	return -ENOSYS;
}

void syn_window_remove(struct syn_window *window)
{
	(void)window;
}

#endif
