/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic.h - the bytes of each network by date, quotas for them, and connections that outlive a network
 *
 * Does no I/O, except for the file and traffic_look().
 *
 * We count by the devices' own counters: they have all packets, with their headers and repetitions, of all programs, which is what a
 * provider bills. The kernel sets them to zero when it makes a device. So we keep the counters of the last look, and add the bytes since
 * then, also those that came while no service ran. We miss the bytes of a device that came and went between two looks.
 */
#ifndef PATHS_TRAFFIC_H
#define PATHS_TRAFFIC_H

#include "host/host_model.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- counting --- */

#define TRAFFIC_DEVICES_MAX 64
#define TRAFFIC_RECORDS_MAX 1024
#define TRAFFIC_BOOT_MAX 40

/* A device's counters at the last look. */
struct traffic_counter {
	char device[IF_NAMESIZE];
	unsigned int index;
	uint64_t received, sent;
};

/* The bytes of a device on a date. */
struct traffic_record {
	unsigned int date; /* 20261128 is the 28th of November */
	char device[IF_NAMESIZE];
	uint64_t received, sent;
};

struct quotas;

struct traffic {
	char boot[TRAFFIC_BOOT_MAX]; /* the boot that the counters are of; empty: nothing has been counted */
	unsigned int last_index;     /* the highest index of a device: one with a higher index was made since */
	struct traffic_counter counters[TRAFFIC_DEVICES_MAX];
	size_t counter_count;
	struct traffic_record records[TRAFFIC_RECORDS_MAX]; /* in the order of their dates; this month and the last */
	size_t record_count;
	unsigned int outlived_date; /* the date of @outlived */
	uint64_t outlived;          /* the Multipath TCP connections that have outlived, on that date, the network on which they began */
};

/* Returns today's date by this host's clock and zone. */
unsigned int traffic_today(void);

/* The devices to count: those with a default route, a quota, or a record. Others, such as containers', have no place in the file. */
struct traffic_choice {
	const struct host_network *networks;
	size_t network_count;
	const struct quotas *quotas; /* NULL: none */
};

/*
 * traffic_count() - add the bytes since the last look to @date
 * @boot: identifies the present boot; @links: all devices. A device that was there before the first look begins at zero.
 */
void traffic_count(struct traffic *traffic, const struct traffic_choice *choice, const char *boot, const struct host_link *links, size_t count,
		   unsigned int date);

/* Sums up a device's bytes from @first to @last. Sets @received and @sent. */
void traffic_sum(const struct traffic *traffic, const char *device, unsigned int first, unsigned int last, uint64_t *received, uint64_t *sent);

/* Adds connections that have outlived the network on which they began. */
void traffic_add_outlived(struct traffic *traffic, size_t count, unsigned int date);

/* Returns how many connections have outlived their first network on that date; 0 for any but the latest date that the file has. */
uint64_t traffic_outlived(const struct traffic *traffic, unsigned int date);

/* Calls @parse for each line of a text that isn't empty; overwrites the text (memory.c). */
void paths_each_line(char *text, void (*parse)(void *arg, const char *line), void *arg);

/* Parses the file's text, which it overwrites; skips lines that it doesn't understand. */
void traffic_parse(struct traffic *out, char *text);

/* Writes the file's text. Returns its length, which is less than @size, or -ENOSPC. */
ssize_t traffic_format(const struct traffic *traffic, char *out, size_t size);

/*
 * traffic_load(), traffic_save() - the file of this network namespace, in STATE_DIRECTORY or /var/lib/convertize
 * A missing file is an empty one. traffic_save() makes the directory. Return 0 or -errno.
 */
int traffic_load(struct traffic *out);
int traffic_save(const struct traffic *traffic);

/*
 * traffic_look() - read the devices and count their bytes, today and in this boot (traffic_keeper.c)
 * @netlink: NULL: open one. Returns 0 or -errno.
 */
int traffic_look(struct traffic *traffic, const struct traffic_choice *choice, struct netlink *netlink);

/* --- quotas --- */

#define QUOTAS_MAX 8

enum quota_period { QUOTA_DAY, QUOTA_MONTH, QUOTA_PERIOD_COUNT };

struct quota {
	char device[IF_NAMESIZE];
	uint64_t bytes;           /* in a period, both ways */
	uint64_t limit;           /* from which on the network carries nothing; 0: none */
	enum quota_period period; /* by the calendar */
};

struct quotas {
	struct quota list[QUOTAS_MAX];
	size_t count;
};

/* How far the quota restricts a network; stricter states have higher values. */
enum quota_state { QUOTA_FREE, QUOTA_NEAR, QUOTA_BACKUP, QUOTA_NEVER, QUOTA_STATE_COUNT };

#define QUOTA_PROBLEM_MAX 256

/*
 * quotas_read() - read "wwan0=5G/month", or with a limit "wwan0=5G:6G/month", several separated by commas or blanks
 * Units are k, M, G, T; @text: NULL: none. Returns false with the reason in @problem, which begins with "quota:".
 */
bool quotas_read(struct quotas *out, const char *text, char problem[static QUOTA_PROBLEM_MAX]);

/* Returns the bytes of the quota's device in the period of @today. */
uint64_t quota_used(const struct quota *quota, const struct traffic *traffic, unsigned int today);

/* Judges the use: from 80% on NEAR, from the quota on BACKUP, from its limit on NEVER. */
enum quota_state quota_judge(const struct quota *quota, uint64_t used);

/* Writes the use and the state: "4.10 GB of 5.00 GB this month, nearly used up". Returns @buf. */
#define QUOTA_TEXT_MAX 128
const char *quota_text(const struct quota *quota, uint64_t used, char buf[static QUOTA_TEXT_MAX]);

#endif
