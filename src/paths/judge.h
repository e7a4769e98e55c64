/* SPDX-License-Identifier: BSD-3-Clause */
/* judge.h - is a device with its address a network that connections are to use, and if not, why not? */
#ifndef PATHS_JUDGE_H
#define PATHS_JUDGE_H

#include "paths/choice.h"
#include "paths/others.h"
#include "paths/world.h"

enum paths_verdict {
	PATHS_USED,
	PATHS_NEVER,      /* never-device names it */
	PATHS_NOT_NAMED,  /* device names others */
	PATHS_KIND,       /* of a kind that is left alone unless it is named */
	PATHS_PART,       /* of a bridge, a bond or a VRF */
	PATHS_DISABLED,   /* NetworkManager's user has said so */
	PATHS_DOWN,
	PATHS_NO_CARRIER, /* and another network has one */
	PATHS_NOT_READY,  /* the address isn't known yet to be this host's alone, or is known not to be */
	PATHS_DEPRECATED, /* the address is about to go, and has no endpoint */
	PATHS_NO_ROUTE,
	PATHS_SECOND,     /* another address of the same family and device is used */
	PATHS_TWICE,      /* another device has the same address, and is used */
	PATHS_VPN,        /* all traffic goes through a VPN */
	PATHS_FULL,       /* MPTCP takes no more endpoints */
	PATHS_VERDICT_COUNT
};

/* A verdict for programs: "used", "no-route" … */
const char *paths_verdict_name(enum paths_verdict verdict);

/* A verdict for people, as the end of a sentence that begins with "left alone:"; the remedy is in it where there is one. */
const char *paths_verdict_text(enum paths_verdict verdict);

/* paths_judge_link() - what can be said of a device without its addresses; a carrier isn't asked for */
enum paths_verdict paths_judge_link(const struct paths_link *link, const struct paths_choice *choice,
				    const struct paths_others *others);

/* Is it an address that others than the neighbours can answer to? */
bool paths_judge_is_global(const struct paths_address *address);

/* paths_judge_address() - what can be said of an address alone; @has_endpoint: whosever it is */
enum paths_verdict paths_judge_address(const struct paths_address *address, bool has_endpoint);

/* The VPN that all traffic goes through, which is no device that the choice names; NULL: there is none. */
const struct paths_link *paths_judge_vpn(const struct paths_world *world, const struct paths_choice *choice);

#endif
