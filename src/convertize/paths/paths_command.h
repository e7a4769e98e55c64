/* SPDX-License-Identifier: BSD-3-Clause */
/* paths_command.h - "convertize paths": shows the networks of this host as Multipath TCP sees them, or manages them */
#ifndef CONVERTIZE_PATHS_COMMAND_H
#define CONVERTIZE_PATHS_COMMAND_H

#include "client/cache.h"
#include "client/settings.h"
#include "convertize/options/command_line.h"
#include "convertize/check/converter_probe.h"
#include "paths/plan.h"

#include <stdio.h>

/* The open connections to converters over one network. */
struct subflows {
	size_t count;            /* of subflows and plain TCP connections */
	uint64_t received, sent; /* bytes; sent: those that the converter has acknowledged */
	uint32_t heard_ms;       /* milliseconds since the latest acknowledgement on any of them; 0 if there are none */
};

/* Does a converter answer over this network? */
enum paths_works { PATHS_WORKS_UNASKED, PATHS_WORKS_NO, PATHS_WORKS_YES };

/* NetworkManager, or else the kind of the device, tells whether the network is metered; or nobody knows. */
enum paths_metered_by { PATHS_BY_NOBODY, PATHS_BY_NETWORK_MANAGER, PATHS_BY_KIND };

/* All facts of a network. */
struct paths_row {
	struct host_network network;
	bool has_endpoint;
	struct mptcp_endpoint endpoint;
	int64_t since;           /* seconds of CLOCK_REALTIME when our path manager made the endpoint; 0: it didn't */
	uint32_t way_table;      /* the routing table for packets from the address; 0: none has a route */
	unsigned int way_index;  /* the device of that route */
	enum host_metered metered;
	enum paths_metered_by metered_by;
	enum paths_works works;
	char converter[SOCKADDR_STRLEN]; /* the first one that answered, or else the first one asked; empty: none */
	struct probe_result probe;
	struct subflows subflows; /* to all converters */
	enum path_use use;        /* by CONVERT_PATHS */
	uint8_t preference;       /* its place in CONVERT_PATHS, from 0 on; PATH_PREFERENCE_NONE: it has none */
	char learned_of[SOCKADDR_STRLEN]; /* the converter that "learned" is about; empty: no program has learned anything */
	struct cache_converter learned;   /* the cache's entry about the path to that converter (CACHE_PATH) */
};

struct paths_view {
	struct paths_row *rows;
	size_t count;
	struct paths_wanted wanted;
	bool is_managed; /* our path manager runs */
	struct host host;
	int mptcp;       /* net.mptcp.enabled, or -errno */
	size_t converter_count;
	struct path_preferences wishes; /* CONVERT_PATHS */
};

/* paths() - run "convertize paths"; returns the exit status */
int paths(struct options *options);

/* Write @view as text, in lines that fit the terminal, or else 80 columns; or as a JSON object: paths_print.c. */
void paths_print(FILE *out, const struct paths_view *view);
void paths_print_json(FILE *out, const struct paths_view *view);

#endif
