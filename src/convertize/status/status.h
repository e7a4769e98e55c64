/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.h - "convertize status": the connections of this host that are converted, or go directly, now
 *
 * Each look has four parts: the sockets of this network namespace, by sock_diag(7); the notes of programs, by their sockets' cookies
 * (client/notes.h); the processes that hold the sockets, by inode; and the networks of the sockets' addresses. A subflow has the inode of
 * its Multipath TCP connection, and no privilege is needed to see that. Rates come from two looks.
 */
#ifndef CONVERTIZE_STATUS_H
#define CONVERTIZE_STATUS_H

#include "client/notes.h"
#include "client/settings.h"
#include "convertize/options/command_line.h"
#include "host/host_model.h"
#include "paths/traffic.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* --- the parts --- */

/* A socket with a connection. */
struct status_socket {
	uint32_t inode;
	uid_t uid;
	uint64_t cookie;
	bool mptcp;              /* a Multipath TCP connection; its subflows are sockets of their own */
	union sockaddr_ip local, peer;
	bool established;
	uint64_t received, sent; /* bytes; sent: those that the peer has acknowledged; 0 for a Multipath TCP connection */
	uint32_t heard_ms;       /* milliseconds since the peer's last acknowledgement */
};

struct status_sockets {
	struct status_socket *list; /* in the order of status_compare_sockets() */
	size_t count, room;
	int64_t read; /* CLOCK_MONOTONIC in ns */
};

/* A note, and the user in whose cache it is. */
struct status_note {
	struct note note;
	uid_t owner;
};

struct status_notes {
	struct status_note *list;
	size_t count, room;
};

#define STATUS_PROGRAM_MAX 64

/* The process that holds a socket. */
struct status_owner {
	uint32_t inode;
	pid_t pid; /* 0: not found, for example if the process hides its descriptors */
	char program[STATUS_PROGRAM_MAX];
};

struct status_parts {
	struct status_sockets sockets;
	struct status_owner *owners; /* of the sockets that are to be shown, by inode */
	size_t owner_count;
	struct status_notes notes;
	const struct host *host; /* the networks of the sockets' addresses */
	const union sockaddr_ip *converters; /* of this user's settings, for connections without a note */
	size_t converter_count;
	uid_t user;
	bool all; /* show the connections of all users */
};

/* --- the whole: status_join.c --- */

/* The bytes of a connection, or of all, over one network. */
struct status_flow {
	char device[IF_NAMESIZE]; /* or "gone", if no device has the address any more */
	size_t subflows;
	uint64_t received, sent;
	uint64_t received_rate, sent_rate; /* bytes a second */
};

#define STATUS_FLOWS_MAX 8

struct status_connection {
	const struct status_socket *socket;
	const struct note *note; /* NULL: there is none */
	bool direct;
	bool outlived; /* the network on which it began carries it no longer, but others do */
	const struct status_owner *owner; /* NULL: not found */
	const struct status_socket *client; /* of this host's program for which a gateway made the connection; NULL: there is none */
	const struct status_owner *client_owner;
	struct status_flow flows[STATUS_FLOWS_MAX];
	size_t flow_count;
};

struct status_view {
	struct status_connection *list; /* points into the parts; in the order of compare() (status_join.c), or of status_view_order() */
	size_t count, converted, outlived;
	struct status_flow sums[STATUS_FLOWS_MAX]; /* of the converted connections */
	size_t sum_count;
	int64_t interval_ms; /* between the two looks that the rates are from; 0: there was only one */
	bool all;
	const struct traffic *traffic; /* the service's sums, up to now; NULL: there are none, by @traffic_error */
	int traffic_error;             /* 0: no service has counted; -EACCES: this user may not read it */
	const struct quotas *quotas;
	unsigned int today;
};

/*
 * status_join() - make the view of the parts
 * @before: the sockets of an earlier look, for the rates; NULL: there is none
 * Returns false if memory runs out. status_view_fini() frees the view, and the parts must stay until then.
 */
bool status_join(struct status_view *out, const struct status_parts *parts, const struct status_sockets *before);
void status_view_fini(struct status_view *view);

/* Orders the converted connections by the bytes that they carry now. */
void status_view_order(struct status_view *view);

/* For qsort() and bsearch(): sockets by inode, a Multipath TCP connection before its subflows with the same inode; owners by inode. */
int status_compare_sockets(const void *a, const void *b);
int status_compare_inodes(const void *a, const void *b);

/* Writes how a connection began, as an English phrase. */
#define STATUS_BEGAN_MAX 256
const char *status_began(const struct status_connection *connection, char buf[static STATUS_BEGAN_MAX]);

/* --- from the kernel and the file system: status_sockets.c --- */

/* Reads the connections of this network namespace; needs no privilege. @out: zeroed, or of an earlier look. Returns 0 or -errno. */
int status_sockets_read(struct status_sockets *out);

/*
 * Finds the process of each socket of parts->user, or of all users, and the directories of their caches (CONVERT_CACHE). Returns false if
 * memory runs out.
 */
bool status_owners_find(struct status_parts *parts);

/* Reads the notes of all users whose caches this user may read, after status_owners_find(). @settings: name this user's own cache */
void status_notes_read(struct status_parts *parts, const struct settings *settings);

/* --- the command: status_command.c; status_print.c --- */

/* How to write for people: in lines of @width columns; @sums_first: above the connections, which may be more than fit. */
struct status_style {
	unsigned int width;
	bool colours, sums_first;
};

/* Writes the view for people, or as a JSON object. */
void status_print(FILE *out, const struct status_view *view, const struct status_style *style);
void status_print_json(FILE *out, const struct status_view *view);

/* status() - run "convertize status"; returns the exit status */
int status(struct options *options);

#endif
