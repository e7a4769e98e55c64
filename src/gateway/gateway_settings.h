/* SPDX-License-Identifier: BSD-3-Clause */
/* gateway_settings.h - the operator's settings of convertgw, from the command line and its file; constant afterwards */
#ifndef GATEWAY_SETTINGS_H
#define GATEWAY_SETTINGS_H

#include "client/settings.h"
#include "common/problems.h"
#include "daemon/daemon_options.h"
#include "daemon/limits.h"
#include "daemon/listen_address.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GATEWAY_INTERFACES_MAX 32
#define GATEWAY_WORKERS_MAX 64

/* Bits of packet marks that no usual program on a router uses by default; --mark chooses others. */
#define GATEWAY_MARK_DEFAULT 0x0c000000

/* Where "convertgw status" asks if no address is named. */
#define GATEWAY_METRICS_DEFAULT "/run/convertgw/metrics.sock"

enum gateway_action { GATEWAY_RUN, GATEWAY_CHECK, GATEWAY_STATUS, GATEWAY_HELP, GATEWAY_VERSION };

/* The way that a rule chooses for a connection. */
enum gateway_way {
	GATEWAY_CONVERT, /* through the converter, or by routing if that isn't possible */
	GATEWAY_ROUTE,   /* as without a gateway */
	GATEWAY_REQUIRE, /* through the converter, or not at all */
};

/* The options that become the client's settings, as texts for settings_read(). */
struct gateway_texts {
	char converters[SETTINGS_CONVERTERS_MAX * (SETTINGS_NAME_MAX + 8)]; /* with commas between them */
	char cookie[SETTINGS_COOKIE_MAX + 1];
	char paths[512]; /* likewise */
	char timeout[16];
	struct settings_path cookie_file, cache;
};

/* A rule of --convert, --route or --require. A field that the operator left out matches everything. */
struct gateway_rule {
	enum gateway_way way;
	struct prefix client;
	struct prefix_rule destination;
	char device[IFNAMSIZ];       /* the interface at which the SYN arrived, or a pattern; "": any */
	bool has_dscp, has_mark;
	uint8_t dscp;                /* 0 to 63 */
	uint32_t mark, mark_mask;    /* of the packet */
	struct place place;
};

struct gateway_settings {
	enum gateway_action action;
	struct settings_path config;
	char lan[GATEWAY_INTERFACES_MAX][IFNAMSIZ]; /* interfaces whose hosts are clients, or patterns: "cali*" */
	size_t lan_count;
	bool host;                   /* this host's own programs are clients */
	struct gateway_rule *rules;  /* the first match decides; if none: CONVERT, but ROUTE to private networks, DNS, other LANs */
	size_t rule_count;
	bool refuse_quic;            /* answer UDP to port 443 by ICMP */
	unsigned mark;               /* two bits: the lower one marks packets for the gateway, the higher one the gateway's own */
	unsigned table;              /* number of the routing table */
	unsigned first_queue;        /* number of the first netfilter queue */
	unsigned port;               /* on loopback, to which TPROXY diverts */
	unsigned workers;            /* 0: one for each CPU */
	unsigned connect_timeout, stall_timeout, half_close_timeout, idle_timeout, drain_timeout; /* seconds */
	struct limits_settings limits;
	unsigned log_level, log_format, log_rate;
	struct metrics_address metrics[METRICS_ADDRESSES_MAX];
	size_t metrics_count;
	struct gateway_texts texts;
	struct settings client;      /* for the engine, which asks converters: their addresses, cookie, networks, time-out */
};

/*
 * gateway_settings_read() - read the command line and the file that it names
 * Returns settings that gateway_settings_free() frees, or NULL after adding the errors to @problems. A reload calls it again.
 */
struct gateway_settings *gateway_settings_read(int argc, char *argv[], struct problems *problems);

/* Checks the text of a configuration file, which it changes, without files that the text names. @name: the file's for the messages */
void gateway_settings_check_text(const char *name, char *text, size_t len, struct problems *problems);

/* NULL is fine. */
void gateway_settings_free(struct gateway_settings *settings);

extern const struct option_program gateway_options;

/*
 * gateway_device_matches() - return whether an interface has this name, or a name that begins as the pattern does ("cali*")
 * If @name is a pattern as well: whether each interface that it matches has such a name.
 */
bool gateway_device_matches(const char *pattern, const char *name);

/* Are hosts at this interface, or at one of this pattern, clients? */
bool gateway_settings_have_lan(const struct gateway_settings *settings, const char *device);

/* Returns the mark of packets that the rules divert, the lower bit of --mark; and that of the gateway's own packets, the other one. */
static inline uint32_t gateway_divert_mark(const struct gateway_settings *settings)
{
	return settings->mark & -settings->mark;
}

static inline uint32_t gateway_own_mark(const struct gateway_settings *settings)
{
	return settings->mark & ~gateway_divert_mark(settings);
}

#endif
