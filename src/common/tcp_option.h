/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_option.h - the kinds of TCP options (IANA "TCP Option Kind Numbers") */
#ifndef COMMON_TCP_OPTION_H
#define COMMON_TCP_OPTION_H

enum tcp_option_kind {
	TCP_KIND_EOL = 0,
	TCP_KIND_NOP = 1,
	TCP_KIND_MSS = 2,
	TCP_KIND_WINDOW_SCALE = 3,
	TCP_KIND_SACK_PERMITTED = 4,
	TCP_KIND_SACK = 5,
	TCP_KIND_TIMESTAMPS = 8,
	TCP_KIND_MPTCP = 30,
	TCP_KIND_FASTOPEN = 34,
};

#endif
