/* SPDX-License-Identifier: BSD-3-Clause */
/* app_options.c - the options that an application has set on a socket, while the kernel has another socket, or other values */
#include "config.h"

#include "shim/socket/app_options.h"

#include "common/socket_options.h"
#include "shim/system/next.h"
#include "shim/system/usermem.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>

/* Constants that older headers lack. */
#ifndef IPV6_TRANSPARENT
#define IPV6_TRANSPARENT 75
#endif
#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif
#ifndef TCP_AO_ADD_KEY
#define TCP_AO_ADD_KEY 38
#endif

#define PEERS_BIT 61      /* options_are_for_the_peer() */
#define BEFORE_BIT 62     /* before the connection began, the application set advice that matters then: socket_advice.before_connect */
#define UNKNOWN_BIT 63   /* an option that isn't in the tables was set */

static_assert(SOCKET_OPTIONS_COUNT <= PEERS_BIT, "a bit for each in conn.options.set");
static_assert(SOCKET_ADVICE_COUNT <= CONN_ADVICE_MAX, "a value for each");

static unsigned int copyable_bit(int level, int name)
{
	for (unsigned int bit = 0; bit < SOCKET_OPTIONS_COUNT; bit++)
		if (socket_options[bit].level == level && socket_options[bit].name == name)
			return bit;
	return UNKNOWN_BIT;
}

/* MPTCP stores none of the first CONN_LATE_COUNT (after Linux 6.1 it stores the third), but the others as the application has set them. */
static const struct socket_option late_options[] = {
	{ SOL_SOCKET, SO_REUSEADDR }, { SOL_SOCKET, SO_REUSEPORT },	 { IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT },
	{ IPPROTO_IP, IP_FREEBIND },  { IPPROTO_IP, IP_TRANSPARENT },	 { IPPROTO_IPV6, IPV6_TRANSPARENT },
	{ IPPROTO_IPV6, IPV6_FREEBIND },
};

#define LATE_OPTIONS (sizeof(late_options) / sizeof(late_options[0]))

static size_t late_index(int level, int name)
{
	size_t i = 0;

	while (i < LATE_OPTIONS && (late_options[i].level != level || late_options[i].name != name))
		i++;
	return i;
}

/* Is the value the default, which some programs always set? */
static bool is_default(int advice, const void *value, socklen_t len)
{
	int number;

	return len == sizeof(number) && usermem_read(&number, value, sizeof(number)) && socket_advice_is_default(advice, number);
}

static bool is_for_the_peer(int level, int name)
{
	return level == IPPROTO_TCP && (name == TCP_MD5SIG || name == TCP_MD5SIG_EXT || name == TCP_AO_ADD_KEY || name == TCP_REPAIR);
}

void options_note(struct conn *conn, int level, int name, const void *value, socklen_t len)
{
	int i = socket_advice_index(level, name);
	size_t late = late_index(level, name);

	if (late < CONN_LATE_COUNT)
		atomic_store(&conn->socket.options.late[late], 0); /* the kernel has the newer value */
	if (i < 0) {
		atomic_fetch_or(&conn->socket.options.set, UINT64_C(1) << copyable_bit(level, name) |
				(uint64_t)is_for_the_peer(level, name) << PEERS_BIT);
		return;
	}
	if (socket_advice[i].before_connect && is_default(i, value, len))
		return;
	atomic_fetch_or(&conn->socket.options.advised, 1u << i);
	if (socket_advice[i].before_connect)
		atomic_fetch_or(&conn->socket.options.set, UINT64_C(1) << BEFORE_BIT);
}

/* Has the application set this option, as far as we noted? */
static bool options_is_set(const struct conn *conn, int level, int name)
{
	unsigned int bit = copyable_bit(level, name);

	return bit != UNKNOWN_BIT && (atomic_load(&conn->socket.options.set) >> bit & 1);
}

bool options_are_for_the_peer(const struct conn *conn)
{
	return atomic_load(&conn->socket.options.set) >> PEERS_BIT & 1;
}

bool options_can_copy(const struct conn *conn)
{
	return !(atomic_load(&conn->socket.options.set) >> UNKNOWN_BIT & 1);
}

/*
 * Is the copy useless without this option? Multipath TCP of Linux 6.1 refuses IP_BIND_ADDRESS_NO_PORT, which says when bind(2) chooses a
 * port. A connection is the same without it.
 */
static bool is_missed(const struct socket_option *option, int refusal)
{
	return refusal != EOPNOTSUPP || option->level != IPPROTO_IP || option->name != IP_BIND_ADDRESS_NO_PORT;
}

/* Copies an option. Notes one that @to refuses and doesn't need, so that the application can read its value. */
static bool option_copy(struct conn *conn, const struct socket_option *option, int from, int to)
{
	const int buffer = socket_option_buffer(option);
	char value[SOCKET_OPTION_BYTES];
	socklen_t len = sizeof(value);
	int number;

	if (options_late(conn, option->level, option->name, &number)) {
		len = sizeof(number);
		memcpy(value, &number, sizeof(number));
	} else if (next.getsockopt(from, option->level, buffer ? buffer : option->name, value, &len) != 0) {
		return false;
	}
	if (buffer) {
		memcpy(&number, value, sizeof(number));
		number /= 2; /* the kernel doubles what it is given: socket(7) */
		memcpy(value, &number, sizeof(number));
	}
	if (next.setsockopt(to, option->level, option->name, value, len) == 0)
		return true;
	if (is_missed(option, errno))
		return false;
	memcpy(&number, value, sizeof(number));
	options_note_late(conn, option->level, option->name, number);
	return true;
}

bool options_allow_mptcp(const struct conn *conn)
{
	return !(atomic_load(&conn->socket.options.set) >> BEFORE_BIT);
}

void options_copy_advice(const struct conn *conn, int to)
{
	uint32_t advised = atomic_load(&conn->socket.options.advised);

	for (unsigned int i = 0; i < SOCKET_ADVICE_COUNT; i++)
		if (advised >> i & 1)
			next.setsockopt(to, socket_advice[i].option.level, socket_advice[i].option.name,
					&conn->socket.options.values[i], sizeof(int));
}

/* Remembers the advice that was set on the TCP socket @from, while an MPTCP socket is in its place. */
static void advice_remember(struct conn *conn, int from)
{
	uint32_t advised = atomic_load(&conn->socket.options.advised);

	for (unsigned int i = 0; i < SOCKET_ADVICE_COUNT; i++) {
		socklen_t len = sizeof(int);

		if (advised >> i & 1)
			next.getsockopt(from, socket_advice[i].option.level, socket_advice[i].option.name,
					&conn->socket.options.values[i], &len);
	}
}

bool options_copy(struct conn *conn, int from, int to, bool to_mptcp)
{
	uint64_t set = atomic_load(&conn->socket.options.set);

	if (!options_can_copy(conn))
		return false;
	for (unsigned int bit = 0; bit < SOCKET_OPTIONS_COUNT; bit++)
		if ((set >> bit & 1) && !option_copy(conn, &socket_options[bit], from, to))
			return false;
	if (!conn->socket.mptcp)
		advice_remember(conn, from);
	if (!to_mptcp)
		options_copy_advice(conn, to);
	return true;
}

bool options_is_late(int level, int name)
{
	return late_index(level, name) < LATE_OPTIONS;
}

void options_note_late(struct conn *conn, int level, int name, int value)
{
	size_t i = late_index(level, name);

	if (i < CONN_LATE_COUNT)
		atomic_store(&conn->socket.options.late[i], value ? 2 : 1);
}

bool options_late(const struct conn *conn, int level, int name, int *value)
{
	size_t i = late_index(level, name);

	*value = i < CONN_LATE_COUNT ? atomic_load(&conn->socket.options.late[i]) - 1 : -1;
	return *value >= 0;
}

bool options_is_advice_noted(const struct conn *conn, int level, int name)
{
	uint32_t advised = atomic_load(&conn->socket.options.advised);

	return advised && socket_advice_index(level, name) >= 0 && (advised >> socket_advice_index(level, name) & 1);
}

/* All advice is an int; IP_TTL may be given as a byte as well (ip(7)). */
void options_advise(struct conn *conn, int level, int name, const void *value, socklen_t len)
{
	int i = socket_advice_index(level, name);
	uint8_t byte;

	if (i < 0 || !value || !len || len > sizeof(int))
		return;
	if (len == sizeof(int)) {
		memcpy(&conn->socket.options.values[i], value, sizeof(int));
	} else {
		memcpy(&byte, value, sizeof(byte));
		conn->socket.options.values[i] = byte;
	}
	atomic_fetch_or(&conn->socket.options.advised, 1u << i);
}

/* --- TCP's keepalive, which probes a converter that is silent after its SYN+ACK --- */

static int keepalive_index(int level, int name)
{
	for (int i = 0; i < KERNEL_KEEPALIVES; i++)
		if (kernel_keepalive_options[i].name == name && kernel_keepalive_options[i].level == level)
			return i;
	return -1;
}

void keepalive_note(struct conn *conn, int fd, int level, int name)
{
	struct kernel_keepalive *keepalive = &conn->socket.keepalive;
	const int i = keepalive_index(level, name);
	struct conn_claim claim;

	if (i < 0 || !conn_claim(conn, PHASES_PENDING, &claim))
		return;
	if (keepalive->probing) {
		keepalive->kept[i] = kernel_get(fd, level, name, keepalive->kept[i]);
		kernel_keepalive_again(fd, keepalive);
	}
	conn_release(conn, claim.from, &claim);
}

bool keepalive_kept(struct conn *conn, int level, int name, int *value)
{
	const int i = keepalive_index(level, name);
	struct conn_claim claim;
	bool kept;

	if (i < 0 || !conn_claim(conn, PHASES_PENDING, &claim))
		return false;
	kept = conn->socket.keepalive.probing;
	if (kept)
		*value = conn->socket.keepalive.kept[i];
	conn_release(conn, claim.from, &claim);
	return kept;
}

/* --- SO_RCVLOWAT: the application's value and ours --- */

void lowat_raise(struct conn *conn, int fd, size_t bytes)
{
	const int want = (int)bytes;

	if (!conn->socket.rcvlowat)
		conn->socket.rcvlowat = kernel_get(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	next.setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &want, sizeof(want));
}

/* Most applications never set the option, and we need the kernel's default, 1. We don't know which values other processes have set. */
void lowat_hold(struct conn *conn, int fd)
{
	if (!conn->generation || options_is_set(conn, SOL_SOCKET, SO_RCVLOWAT))
		lowat_raise(conn, fd, 1);
}

void lowat_restore(struct conn *conn, int fd)
{
	const int kept = conn->socket.rcvlowat;

	if (kept)
		next.setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &kept, sizeof(kept));
	conn->socket.rcvlowat = 0;
}

bool lowat_keep(struct conn *conn, const void *value, socklen_t len)
{
	struct conn_claim claim;
	int lowat;

	if (len < sizeof(lowat) || len > INT_MAX || !usermem_read(&lowat, value, sizeof(lowat)) ||
	    !conn_claim(conn, PHASES_UNFINISHED, &claim))
		return false;
	conn->socket.rcvlowat = lowat < 0 ? INT_MAX : lowat ? lowat : 1; /* as the kernel does */
	conn_release(conn, claim.from, &claim);
	return true;
}
