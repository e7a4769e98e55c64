/* SPDX-License-Identifier: BSD-3-Clause */
/* path_begin.h - the path that a connection begins on: which there are, and how its socket gets there */
#ifndef SHIM_PATH_BEGIN_H
#define SHIM_PATH_BEGIN_H

#include "host/networks.h"
#include "host/path_list.h"
#include "shim/socket/conn.h"

struct tcp_info;

/* @settings: kept, must stay. */
void path_begin_init(const struct settings *settings);

/*
 * path_may_move() - may the connection of @fd begin elsewhere than where the kernel puts it?
 * Not if the application has bound the socket to an address or a device, and not if another process has it as well.
 */
bool path_may_move(const struct conn *conn, int fd);

/*
 * path_choose() - the path for a connection that is to be made through converter @index
 * The usual one, with nothing asked and nothing changed, unless that is known to have failed or the user has said something
 * (CONVERT_PATHS). Returns the converter's index, which may be another one, with its address in @addr; and in @missed the path that is to be
 * asked whether it works again, unless its converter is PATH_NONE.
 */
#define PATH_NONE (-1)
int path_choose(struct conn *conn, int fd, const struct converters_query *query, int index, union sockaddr_ip *addr, struct path *missed);

/* Has @conn, whose socket isn't connected, go on by path @i of @list. */
void path_take(struct conn *conn, const struct path_list *list, int i);

/* Has @conn go on where the kernel puts it, which path_place() sees to: it was moved, and that didn't help. */
void path_give_back(struct conn *conn);

/* The converter was silent. If it was on a path that @conn was moved to at a venture, no network is better than the usual one. */
void path_was_silent(struct conn *conn, const struct tcp_info *info);

/* path_place() - bind the socket as path_take() has said; before each SYN. Returns 0 or -errno. */
int path_place(const struct conn *conn, int fd);

/*
 * path_place_direct() - have a direct connection to @server take a network that works
 * That is the one that the connection has moved to, or another one where all usual paths to converters are silent and another one isn't, or
 * where the user wants no connection to begin on the usual one. Returns 0, or -ENETUNREACH if that leaves none.
 */
int path_place_direct(const struct conn *conn, int fd, const union sockaddr_ip *server);

/* The path that @conn is on. */
struct path_id path_of(const struct conn *conn);

/* The SYN of @conn was answered, and as it had no data it waited for nothing: its round trip (@info) is noted. */
void path_note_handshake(const struct conn *conn, const struct tcp_info *info);

/* The server was reached, or the converter has answered: what its first packets tell of the path (@info) is noted. */
void path_note_reached(const struct conn *conn, const struct tcp_info *info);

#endif
