/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_begin.c - the path that a connection begins on: which there are, and how its socket gets there
 *
 * While all is well a connection begins where the kernel puts it, and nothing is asked. The networks are listed where the usual path
 * is known to have failed, where a SYN stays unanswered (path_look.c), and where the user has named some.
 */
#include "config.h"

#include "shim/connect/path_begin.h"

#include "common/thread.h"
#include "host/path_list.h"
#include "shim/socket/tcpinfo.h"
#include "shim/system/log.h"

#include <errno.h>

static const struct settings *settings;

void path_begin_init(const struct settings *kept)
{
	settings = kept;
}

bool path_may_move(const struct conn *conn, int fd)
{
	/* Once we have bound it to a device ourselves, that isn't the application's choice. */
	return !conn->call.bound && (conn->call.device || !network_is_chosen(fd));
}

/* --- which one is taken --- */

void path_take(struct conn *conn, const struct path_list *list, int i)
{
	const struct path *path = &list->paths[i];
	const bool usual = path_is_usual(&path->id);

	conn->call.placed |= !usual;
	conn->call.source = path->id.source;
	conn->call.network = path->device;
	conn->call.device = path->bind_device ? path->device : conn->call.device;
}

void path_give_back(struct conn *conn)
{
	conn->call.source = in6addr_any;
	conn->call.network = conn->call.device = 0;
}

void path_was_silent(struct conn *conn, const struct tcp_info *info)
{
	const struct path_id id = path_of(conn);

	if (conn->call.placed && info->tcpi_state == TCPINFO_SYN_SENT && !path_works(paths_facts_kept(&id).state))
		path_give_back(conn);
}

static void log_choice(const struct path_list *list, int i)
{
	char text[SOCKADDR_STRLEN];

	log_line("converter %s: begins on %s%s", sockaddr_ip_format(&list->addrs[i], text), list->names[i],
		 list->paths[i].backup ? ", which is for backup" : "");
}

/* Not inlined, so that the list isn't on the stack of each connection. */
__attribute__((noinline)) static int choose_of_all(struct conn *conn, const struct converters_query *query, int index,
						    union sockaddr_ip *addr, struct path *missed)
{
	struct path_list list;
	int best = path_list_choose(&list, settings, query), other;

	if (best < 0)
		return index;
	path_take(conn, &list, best);
	if (conn->call.placed || list.paths[best].id.converter != index)
		log_choice(&list, best);
	other = conn->call.tried_path ? -1 : path_list_missed(&list, best);
	if (other >= 0)
		*missed = list.paths[other];
	*addr = list.addrs[best];
	return list.paths[best].id.converter;
}

int path_choose(struct conn *conn, int fd, const struct converters_query *query, int index, union sockaddr_ip *addr, struct path *missed)
{
	const struct path_id bound = { .converter = index, .source = conn->call.source };

	missed->id.converter = PATH_NONE;
	if (conn->call.bound && !IN6_IS_ADDR_UNSPECIFIED(&bound.source))
		paths_facts(&bound); /* takes over what others know of it */
	/* A connection that has moved goes on where it is, as far as that has an address of the converter's family. */
	if (conn->call.placed && IN6_IS_ADDR_V4MAPPED(&conn->call.source) == sockaddr_ip_is_v4(addr))
		return index;
	if ((path_is_sound(paths_facts_usual(index).state) && !settings->paths.count && !conn->call.placed) || !path_may_move(conn, fd))
		return index;
	return choose_of_all(conn, query, index, addr, missed);
}

int path_place(const struct conn *conn, int fd)
{
	if (!conn->call.placed || network_bind(fd, &conn->call.source, conn->call.device))
		return 0;
	return errno ? -errno : -EADDRNOTAVAIL;
}

/* --- direct connections --- */

int path_place_direct(const struct conn *conn, int fd, const union sockaddr_ip *server)
{
	struct path_direct taken;
	char text[SOCKADDR_STRLEN];
	int ret;

	if (conn->call.placed && IN6_IS_ADDR_UNSPECIFIED(&conn->call.source))
		path_place(conn, fd);
	if (!path_may_move(conn, fd))
		return 0;
	ret = path_direct_take(fd, settings, server, conn->call.placed, conn->call.network, &taken);
	if (ret > 0)
		log_line("%s: directly by %s, since the usual network %s", sockaddr_ip_format(server, text), taken.name, taken.why);
	else if (ret < 0)
		log_line("%s: not directly, since CONVERT_PATHS allows no network that leads there", sockaddr_ip_format(server, text));
	return ret < 0 ? ret : 0;
}

/* --- what is learned --- */

struct path_id path_of(const struct conn *conn)
{
	return (struct path_id){ .converter = conn->attempt.converter, .source = conn->call.source };
}

static bool has_round_trip(const struct conn *conn, const struct tcp_info *info)
{
	return !conn->call.bound && info->tcpi_state != TCPINFO_UNKNOWN && info->tcpi_min_rtt && info->tcpi_min_rtt != UINT32_MAX;
}

static unsigned int round_trip_ms(const struct tcp_info *info)
{
	return info->tcpi_min_rtt / 1000 + 1;
}

void path_note_handshake(const struct conn *conn, const struct tcp_info *info)
{
	const struct path_id id = path_of(conn);

	if (!stack_is_small() && has_round_trip(conn, info))
		paths_note_answer(&id, round_trip_ms(info), true);
}

void path_note_reached(const struct conn *conn, const struct tcp_info *info)
{
	const struct path_id id = path_of(conn);

	if (stack_is_small())
		return;
	if (conn->attempt.syn_data && info->tcpi_state != TCPINFO_UNKNOWN && info->tcpi_state != TCPINFO_CLOSE)
		paths_note_syn_data(&id, info->tcpi_options & TCPI_OPT_SYN_DATA, conn->attempt.syn_at);
	if (!has_round_trip(conn, info))
		return;
	if (path_has_failed(paths_facts_usual(id.converter).state) && path_is_usual(&id))
		paths_note_trial(&id, true);
	paths_note_answer(&id, round_trip_ms(info), !conn->attempt.withheld_ms);
}
