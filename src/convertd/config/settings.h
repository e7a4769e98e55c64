/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.h - the operator's values of the options, which never change once they are read
 *
 * Settings are the same on any host. Sessions use the effective settings, which follow from them on this host
 * (effective_settings.h). A reload reads new settings (settings_read.h), which replace the old ones as a whole, and
 * only if all of them are right.
 */
#ifndef CONVERTD_SETTINGS_H
#define CONVERTD_SETTINGS_H

#include "common/problems.h"
#include "daemon/listen_address.h"
#include "daemon/rights.h"
#include "convertd/net/sources.h"
#include "convertd/policy/access.h"
#include "daemon/limits.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* ----- the user that convertd becomes when root has started it ----- */

/* Room for a name of a user or group (LOGIN_NAME_MAX has 256). */
#define USER_NAME_MAX 64

struct user {
	char name[USER_NAME_MAX];  /* "": no user was given */
	char group[USER_NAME_MAX]; /* "": the user's own group */
	struct place place;
	uid_t uid; /* set by user_find() */
	gid_t gid;
};

/* Splits "NAME" or "NAME:GROUP". Returns false after adding the error to @problems. */
bool user_parse(struct user *user, const char *value, const struct place *place,
		struct problems *problems);

/*
 * user_find() - look up the numbers of the user and the group
 * It asks the C library's user database, which a process in the sandbox can't.
 * Returns false after adding the error to @problems.
 */
bool user_find(struct user *user, struct problems *problems);

#define SETTINGS_STATUS_DEFAULT "/run/convertd/metrics.sock" /* as contrib/convertd.conf has it */
#define SETTINGS_WORKERS_MAX 256
#define SETTINGS_PORT 1234
#define SETTINGS_LISTEN_DEFAULT "[::]:1234"

/* What the command line asks for. */
enum settings_action {
	SETTINGS_RUN,
	SETTINGS_CHECK,   /* check the settings and exit */
	SETTINGS_STATUS,  /* ask the running converter; doesn't read keys and the like */
	SETTINGS_HELP,    /* for this one and those below, settings aren't complete */
	SETTINGS_VERSION, /* print the version */
	SETTINGS_MAKE_KEY, /* write a file with a new key */
};

/* Whether SYNs are withheld until servers have answered. */
enum settings_hold {
	SETTINGS_HOLD_AUTO, /* yes, if it is possible */
	SETTINGS_HOLD_ON,   /* yes; if it isn't possible, convertd doesn't run */
	SETTINGS_HOLD_OFF,
};

/* The path of a file, and the place that named it. */
struct settings_path {
	char name[PATH_MAX]; /* "": none */
	struct place place;
};

struct cookies;

struct settings {
	enum settings_action action;
	struct settings_path config;
	struct listen_address listen[LISTEN_ADDRESSES_MAX];
	size_t listen_count;
	bool listen_is_default; /* no --listen was given */
	struct access access;
	bool shared_address;  /* other converters share an address with this one */
	struct sources sources;        /* the source addresses of connections to servers */
	struct limits_settings limits; /* no total of connections: as many as open files allow */
	unsigned max_memory, max_memory_per_client; /* MiB of the kernel's; 0: choose by this host */
	unsigned retry_delay;          /* seconds, told to clients that exceed a limit */
	struct settings_path cookie_key, cookie_list, make_key;
	unsigned cookie_lifetime; /* seconds of an epoch */
	struct cookies *cookies;  /* NULL: no client needs one */
	unsigned cookie_demand;   /* the percentage of pending requests from which on cookies are demanded; 0: never */
	unsigned connect_timeout; /* seconds */
	unsigned request_timeout; /* seconds */
	unsigned stall_timeout, half_close_timeout, idle_timeout; /* seconds, 0: none */
	/* The congestion control of connections with clients, and with servers; "": the system's default. */
	char congestion_client[CONGESTION_NAME_MAX], congestion_server[CONGESTION_NAME_MAX];
	unsigned drain_timeout;   /* seconds that sessions have at the end; 0: none */
	unsigned workers;         /* threads, 0: one for each CPU */
	unsigned log_level;       /* enum log_level */
	unsigned log_format;      /* enum log_format */
	unsigned log_rate;        /* lines a second about sessions of one outcome; 0: all */
	struct metrics_address metrics[METRICS_ADDRESSES_MAX];
	size_t metrics_count;
	struct user user;
	bool no_syn_window_fix;
	enum settings_hold hold_syn;
	unsigned hold_time; /* milliseconds */
	bool drop_foreign_syns;
	bool no_silence;
	bool no_syscall_filter, no_landlock;
};

/* Frees settings of settings_read(); NULL is fine. */
void settings_destroy(struct settings *settings);

#endif
