/* SPDX-License-Identifier: BSD-3-Clause */
/* ask_way.c - the ways of asking a converter, and which one follows when one fails */
#include "config.h"

#include "client/ask_way.h"

#include "common/clock.h"

#include <linux/tcp.h>

bool synack_keeps_way(const struct synack_seen *seen, enum ask_way *next)
{
	*next = seen->syn_data ? ASK_MPTCP : ASK_TCP;
	return seen->syn_data ? seen->acknowledged && !seen->sent_again : !seen->fallen_back;
}

enum syn_data_use ask_way_syn_data(enum ask_way way, bool mptcp, bool taken, bool corrected)
{
	if (way == ASK_MPTCP || !taken)
		return SYN_DATA_NEVER;
	return !mptcp || corrected ? SYN_DATA_ALWAYS : SYN_DATA_ON_ONE_PATH;
}

/* The converter removes the timestamps from each SYN that it releases without the server's answer. */
static bool is_released_by_server(uint8_t options)
{
	const int wanted = TCPI_OPT_SYN_DATA | TCPI_OPT_TIMESTAMPS;

	return (options & wanted) == wanted;
}

bool synack_confirms(uint8_t options, unsigned int withheld_ms, int64_t started_ns, int64_t now_ns)
{
	return is_released_by_server(options) && now_ns < started_ns + (int64_t)withheld_ms * CLOCK_NS_PER_MS;
}

bool synack_is_silent(uint8_t options, bool whole)
{
	return whole && is_released_by_server(options);
}
