/* SPDX-License-Identifier: BSD-3-Clause */
/* ride.c - the ways of asking a converter, and which one follows when one fails */
#include "config.h"

#include "client/ride.h"

#include "common/clock.h"

#include <linux/tcp.h>

bool ride_goes_on(const struct ride_synack *seen, enum ride *next)
{
	*next = seen->syn_data ? RIDE_MPTCP : RIDE_TCP;
	return seen->syn_data ? seen->acknowledged && !seen->sent_again : !seen->fallen_back;
}

enum ride_syn_data ride_syn_data(enum ride ride, bool mptcp, bool taken, bool corrected)
{
	if (ride == RIDE_MPTCP || !taken)
		return RIDE_SYN_DATA_NEVER;
	return !mptcp || corrected ? RIDE_SYN_DATA_ALWAYS : RIDE_SYN_DATA_ON_ONE_PATH;
}

/* The converter removes the timestamps from each SYN that it releases without the server's answer. */
static bool is_released_by_server(uint8_t options)
{
	const int wanted = TCPI_OPT_SYN_DATA | TCPI_OPT_TIMESTAMPS;

	return (options & wanted) == wanted;
}

bool ride_confirms(uint8_t options, unsigned int withheld_ms, int64_t started_ns, int64_t now_ns)
{
	return is_released_by_server(options) && now_ns < started_ns + (int64_t)withheld_ms * CLOCK_NS_PER_MS;
}

bool ride_is_silent(uint8_t options, bool whole)
{
	return whole && is_released_by_server(options);
}
