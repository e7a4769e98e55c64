/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * convertd_settings.h - the operator's values of the options, and the table of options
 *
 * Settings never change once they are read, and are the same on any host. Sessions use the effective settings, which
 * follow from them on this host (effective_settings.h). A reload reads the same command line, and the files as they
 * are then. The new settings replace the old ones as a whole, and only if all of them are right.
 */
#ifndef CONVERTD_SETTINGS_H
#define CONVERTD_SETTINGS_H

#include "common/problems.h"
#include "daemon/daemon_options.h"
#include "daemon/listen_address.h"
#include "daemon/warden_message.h"
#include "convertd/net/downstream.h"
#include "convertd/policy/access.h"
#include "convertd/policy/cookies.h"
#include "daemon/limits.h"

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

/*
 * user_find() - look up the numbers of the user and the group
 * Asks the C library's user database, which the sandbox forbids.
 * Returns false after adding the error to @problems.
 */
bool user_find(struct user *user, struct problems *problems);

/*
 * user_set_rights() - let convertd read a new file of secrets
 * The user's group may read it if root has made it, or without a user the group that the service manager usually gives convertd. If there
 * is no such group, only the owner may. Returns 0 or -1 with errno set.
 */
int user_set_rights(const struct user *user, int fd);

#define SETTINGS_STATUS_DEFAULT "/run/convertd/metrics.sock" /* as contrib/convertd.conf has it */
#define SETTINGS_CONFIG_DEFAULT "/etc/convertd/convertd.conf" /* read by --new-client and --remove-client if no file is named */
#define SETTINGS_WORKERS_MAX 256
#define SETTINGS_PORT 1234
#define SETTINGS_LISTEN_DEFAULT "[::]:1234"

/* The action that the command line asks for. */
enum settings_action {
	SETTINGS_RUN,
	SETTINGS_CHECK,   /* check the settings and exit */
	SETTINGS_NEW_CLIENT,    /* make a client's cookie; reads no keys and cookies */
	SETTINGS_REMOVE_CLIENT, /* withdraw it; likewise */
	SETTINGS_STATUS,  /* ask the running converter at --metrics or its usual socket */
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

struct convertd_settings {
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
	char client_name[COOKIES_NAME_MAX + 1]; /* of --new-client, --remove-client */
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
	enum settings_hold hold_syn;
	unsigned hold_time; /* milliseconds */
	bool drop_foreign_syns;
	bool no_silence;
	bool no_syscall_filter, no_landlock;
};

/*
 * convertd_settings_read() - read the command line and the files that it names
 * @argv: main()'s; may be given again for a reload
 * Returns settings that the caller owns, for convertd_settings_destroy(); or NULL after adding all errors to @problems.
 */
struct convertd_settings *convertd_settings_read(int argc, char *argv[], struct problems *problems);

/* Frees settings of convertd_settings_read(); NULL is fine. */
void convertd_settings_destroy(struct convertd_settings *settings);

/*
 * settings_check_text() - check the text of a configuration file, and add its errors to @problems
 * @name: of the file, for the messages
 * @text, @len: its bytes, which are changed
 * It doesn't read files that the text names.
 */
void settings_check_text(const char *name, char *text, size_t len, struct problems *problems);

/*
 * clients_change() - carry out --new-client or --remove-client: change the list of cookies (clients.c)
 * It prints the new client's configuration, and errors to standard error. Returns the exit status.
 */
int clients_change(const struct convertd_settings *settings);

/* ----- the options of the command line and of the configuration file: option_table.c ----- */

extern const struct option_program convertd_options;

#endif
