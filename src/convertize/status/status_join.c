/* SPDX-License-Identifier: BSD-3-Clause */
/* status_join.c - joins sockets, notes and networks to connections, with rates and sums (no I/O) */
#include "config.h"

#include "convertize/status/status.h"

#include "common/clock.h"

#include <stdlib.h>
#include <string.h>

/* Finds the youngest note about the socket, in the cache of its user or of root. */
static const struct note *note_of(const struct status_notes *notes, const struct status_socket *socket)
{
	const struct note *found = NULL;

	for (size_t i = 0; i < notes->count; i++) {
		const struct status_note *one = &notes->list[i];

		/* root's programs may make connections for others */
		if (one->note.cookie == socket->cookie && (one->owner == socket->uid || one->owner == 0) &&
		    (!found || one->note.noted > found->noted))
			found = &one->note;
	}
	return found;
}

/* Is the socket's peer a converter by this user's settings, or by a note? */
static bool leads_to_converter(const struct status_parts *parts, const struct status_socket *socket)
{
	bool found = false;

	for (size_t i = 0; i < parts->converter_count && !found; i++)
		found = sockaddr_ip_equal(&parts->converters[i], &socket->peer);
	for (size_t i = 0; i < parts->notes.count && !found; i++)
		found = sockaddr_ip_equal(&parts->notes.list[i].note.converter, &socket->peer);
	return found;
}

/* Returns the flow over the network, or a new one; the last one if there is no room. */
static struct status_flow *flow_of(struct status_flow flows[static STATUS_FLOWS_MAX], size_t *count, const char *device)
{
	for (size_t i = 0; i < *count; i++)
		if (strcmp(flows[i].device, device) == 0)
			return &flows[i];
	if (*count == STATUS_FLOWS_MAX)
		return &flows[STATUS_FLOWS_MAX - 1];
	flows[*count] = (struct status_flow){ .subflows = 0 };
	strcpy(flows[*count].device, device);
	return &flows[(*count)++];
}

static const char *device_of(const struct status_parts *parts, const union sockaddr_ip *local)
{
	const struct host_link *link = host_home_of(parts->host, local);

	return link ? link->name : "gone";
}

int status_compare_sockets(const void *a, const void *b)
{
	const struct status_socket *one = a, *other = b;

	if (one->inode != other->inode)
		return one->inode < other->inode ? -1 : 1;
	if (one->mptcp != other->mptcp)
		return one->mptcp ? -1 : 1;
	return one->cookie < other->cookie ? -1 : one->cookie > other->cookie;
}

int status_compare_inodes(const void *a, const void *b)
{
	const uint32_t *one = a, *other = b;

	return *one < *other ? -1 : *one > *other;
}

static const struct status_owner *owner_of(const struct status_parts *parts, uint32_t inode)
{
	const struct status_owner *found = parts->owner_count ?
		bsearch(&inode, parts->owners, parts->owner_count, sizeof(*found), status_compare_inodes) : NULL;

	return found && found->pid ? found : NULL;
}

/* Returns the socket of a program of this host whose connection a gateway has accepted in the server's place. */
static const struct status_socket *client_of(const struct status_sockets *sockets, const struct note *note)
{
	for (size_t i = 0; note && note->client.sa.sa_family && i < sockets->count; i++)
		if (sockaddr_ip_port(&sockets->list[i].local) == sockaddr_ip_port(&note->client) &&
		    sockaddr_ip_equal(&sockets->list[i].local, &note->client) && sockaddr_ip_equal(&sockets->list[i].peer, &note->server))
			return &sockets->list[i];
	return NULL;
}

static uint64_t rate(uint64_t now, uint64_t before, int64_t ms)
{
	return now > before && ms > 0 ? (now - before) * 1000 / (uint64_t)ms : 0;
}

/* Adds the bytes of a TCP socket to its connection. A socket that is new since the last look has carried all its bytes since then. */
static void add_bytes(struct status_connection *connection, const struct status_parts *parts, const struct status_socket *socket,
		      const struct status_sockets *before, int64_t ms)
{
	struct status_flow *flow = flow_of(connection->flows, &connection->flow_count, device_of(parts, &socket->local));
	const struct status_socket *earlier = before && before->count ?
		bsearch(socket, before->list, before->count, sizeof(*earlier), status_compare_sockets) : NULL;

	flow->subflows++;
	flow->received += socket->received;
	flow->sent += socket->sent;
	flow->received_rate += rate(socket->received, earlier ? earlier->received : 0, ms);
	flow->sent_rate += rate(socket->sent, earlier ? earlier->sent : 0, ms);
}

/*
 * Does no subflow have the address that the connection began with, and keeps as its own, while it has others? Then the kernel, or a path
 * manager, has given up the first subflow. @connection: its subflows follow it in the list
 */
static bool has_outlived(const struct status_socket *connection, size_t subflows)
{
	const struct in6_addr first = sockaddr_ip_in6(&connection->local);
	bool goes_on = false;

	for (size_t i = 1; i <= subflows && connection->mptcp; i++) {
		const struct in6_addr local = sockaddr_ip_in6(&connection[i].local);

		if (!connection[i].established)
			continue;
		if (IN6_ARE_ADDR_EQUAL(&local, &first))
			return false;
		goes_on = true;
	}
	return goes_on;
}

static void add_to_sums(struct status_view *view, const struct status_connection *connection)
{
	for (size_t i = 0; i < connection->flow_count; i++) {
		const struct status_flow *flow = &connection->flows[i];
		struct status_flow *sum = flow_of(view->sums, &view->sum_count, flow->device);

		sum->subflows += flow->subflows;
		sum->received += flow->received;
		sum->sent += flow->sent;
		sum->received_rate += flow->received_rate;
		sum->sent_rate += flow->sent_rate;
	}
}

/* Orders networks by name: the kernel has its sockets in another order at each look. */
static int compare_flows(const void *a, const void *b)
{
	const struct status_flow *one = a, *other = b;

	return strcmp(one->device, other->device);
}

/* Orders converted connections before direct ones, and the oldest first; those without a note come last. */
static int compare(const void *a, const void *b)
{
	const struct status_connection *one = a, *other = b;
	const int64_t first = one->note ? one->note->noted : INT64_MAX, second = other->note ? other->note->noted : INT64_MAX;

	if (one->direct != other->direct)
		return one->direct ? 1 : -1;
	if (first != second)
		return first < second ? -1 : 1;
	return one->socket->cookie < other->socket->cookie ? -1 : 1;
}

static uint64_t rate_of(const struct status_connection *connection)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < connection->flow_count; i++)
		sum += connection->flows[i].received_rate + connection->flows[i].sent_rate;
	return sum;
}

/* Orders the busiest connections first, and the others as compare() does. */
static int compare_rates(const void *a, const void *b)
{
	const struct status_connection *one = a, *other = b;
	const uint64_t first = one->direct ? 0 : rate_of(one), second = other->direct ? 0 : rate_of(other);

	return first != second ? (first > second ? -1 : 1) : compare(a, b);
}

void status_view_order(struct status_view *view)
{
	qsort(view->list, view->count, sizeof(*view->list), compare_rates);
}

bool status_join(struct status_view *out, const struct status_parts *parts, const struct status_sockets *before)
{
	const struct status_sockets *sockets = &parts->sockets;

	*out = (struct status_view){ .all = parts->all, .list = calloc(sockets->count + 1, sizeof(*out->list)) };
	if (!out->list)
		return false;
	out->interval_ms = before ? (sockets->read - before->read) / CLOCK_NS_PER_MS : 0;
	for (size_t i = 0, end; i < sockets->count; i = end) {
		const struct status_socket *socket = &sockets->list[i];
		struct status_connection *connection = &out->list[out->count];
		const struct note *note;

		for (end = i + 1; end < sockets->count && sockets->list[end].inode == socket->inode;)
			end++;
		if (!parts->all && socket->uid != parts->user)
			continue;
		note = note_of(&parts->notes, socket);
		if (!note && !leads_to_converter(parts, socket))
			continue;
		*connection = (struct status_connection){ .socket = socket, .note = note, .direct = note && note->flags & NOTE_DIRECT,
							  .owner = owner_of(parts, socket->inode), .client = client_of(sockets, note) };
		connection->client_owner = connection->client ? owner_of(parts, connection->client->inode) : NULL;
		for (size_t j = i + socket->mptcp; j < end; j++)
			add_bytes(connection, parts, &sockets->list[j], before, out->interval_ms);
		qsort(connection->flows, connection->flow_count, sizeof(connection->flows[0]), compare_flows);
		connection->outlived = has_outlived(socket, end - i - 1);
		out->count++;
		out->outlived += connection->outlived;
		out->converted += !connection->direct;
		if (!connection->direct)
			add_to_sums(out, connection);
	}
	qsort(out->sums, out->sum_count, sizeof(out->sums[0]), compare_flows);
	qsort(out->list, out->count, sizeof(*out->list), compare);
	return true;
}

void status_view_fini(struct status_view *view)
{
	free(view->list);
	view->list = NULL;
}

const char *status_began(const struct status_connection *connection, char buf[static STATUS_BEGAN_MAX])
{
	const struct note *note = connection->note;
	const unsigned int flags = note ? note->flags : 0;
	const char *where = flags & NOTE_MOVED	 ? "began anew on another network, since the first was silent or refused it" :
			    flags & NOTE_ORDERED ? "began on the network that CONVERT_PATHS or a quota orders" :
			    flags & NOTE_PLACED	 ? "began on another network, since the usual one was silent" :
						   "began normally";

	if (!note)
		return strcpy(buf, "no note says how it began and where it leads");
	if (flags & NOTE_DIRECT) {
		snprintf(buf, STATUS_BEGAN_MAX, "directly: %s", note->reason);
		return buf;
	}
	snprintf(buf, STATUS_BEGAN_MAX, "%s, connected after %u ms, request %s%s%s%s", where, note->connect_ms,
		 flags & NOTE_SYN_DATA ? "in the SYN" : "behind the handshake", flags & NOTE_EARLY_DATA ? " with early data" : "",
		 flags & NOTE_SILENT ? ", without a response" : "", connection->socket->mptcp ? "" : ", over plain TCP");
	return buf;
}
