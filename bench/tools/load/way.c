/* SPDX-License-Identifier: BSD-3-Clause */
/* way.c - the ways to a server: direct, SOCKS5 (RFC 1928, RFC 1929), Convert (RFC 8803) */
#include "config.h"

#include "way.h"

#include "client/handshake.h"

#include <errno.h>
#include <string.h>

const char way_names[] = "direct socks5 convert-syn convert-behind convert-silent";

enum socks5 {
	SOCKS5_VERSION = 5,
	SOCKS5_METHOD_NONE = 0,
	SOCKS5_METHOD_PASSWORD = 2,
	SOCKS5_COMMAND_CONNECT = 1,
	SOCKS5_IPV4 = 1,
	SOCKS5_IPV6 = 4,
	SOCKS5_REPLY_HEAD = 4,
};

static void put(struct way_step *step, const void *bytes, size_t size)
{
	memcpy(step->bytes + step->size, bytes, size);
	step->size += size;
}

static void put_byte(struct way_step *step, size_t value)
{
	step->bytes[step->size++] = (uint8_t)value;
}

/* RFC 1928, 3: version and method; RFC 1929, 2: version (of the subnegotiation) and status, 0 being
 * success. */
static ssize_t socks5_method_none(const uint8_t *data, size_t len, const union sockaddr_ip *server)
{
	(void)server;
	if (len < 2)
		return 0;
	return data[0] == SOCKS5_VERSION && data[1] == SOCKS5_METHOD_NONE ? 2 : -EPROTO;
}

static ssize_t socks5_method_password(const uint8_t *data, size_t len,
				      const union sockaddr_ip *server)
{
	(void)server;
	if (len < 2)
		return 0;
	return data[0] == SOCKS5_VERSION && data[1] == SOCKS5_METHOD_PASSWORD ? 2 : -EPROTO;
}

static ssize_t socks5_authenticated(const uint8_t *data, size_t len,
				    const union sockaddr_ip *server)
{
	(void)server;
	if (len < 2)
		return 0;
	return data[1] == 0 ? 2 : -EACCES;
}

/* RFC 1928, 6 */
static ssize_t socks5_connected(const uint8_t *data, size_t len, const union sockaddr_ip *server)
{
	static const int errors[] = { [1] = EPROTO,       [2] = EACCES,       [3] = ENETUNREACH,
				      [4] = EHOSTUNREACH, [5] = ECONNREFUSED, [6] = ETIMEDOUT };
	size_t size;

	(void)server;
	if (len < SOCKS5_REPLY_HEAD)
		return 0;
	if (data[0] != SOCKS5_VERSION || (data[3] != SOCKS5_IPV4 && data[3] != SOCKS5_IPV6))
		return -EPROTO;
	if (data[1])
		return data[1] < sizeof(errors) / sizeof(errors[0]) ? -errors[data[1]] : -EPROTO;
	size = SOCKS5_REPLY_HEAD + (data[3] == SOCKS5_IPV4 ? 4 : 16) + 2;
	return len < size ? 0 : (ssize_t)size;
}

static void socks5_connect(struct way_step *step, const union sockaddr_ip *server)
{
	static const uint8_t head[] = { SOCKS5_VERSION, SOCKS5_COMMAND_CONNECT, 0 };
	uint16_t port = htons(sockaddr_ip_port(server));

	put(step, head, sizeof(head));
	if (server->sa.sa_family == AF_INET) {
		put_byte(step, SOCKS5_IPV4);
		put(step, &server->in.sin_addr, sizeof(server->in.sin_addr));
	} else {
		put_byte(step, SOCKS5_IPV6);
		put(step, &server->in6.sin6_addr, sizeof(server->in6.sin6_addr));
	}
	put(step, &port, sizeof(port));
	step->reply = socks5_connected;
}

static int socks5_init(struct way *way, const char *user)
{
	static const uint8_t hello_none[] = { SOCKS5_VERSION, 1, SOCKS5_METHOD_NONE };
	static const uint8_t hello_password[] = { SOCKS5_VERSION, 1, SOCKS5_METHOD_PASSWORD };
	struct way_step *step = way->step;
	const char *colon = user ? strchr(user, ':') : NULL;

	if (user && (!colon || strlen(user) > UINT8_MAX))
		return -EINVAL;
	put(step, user ? hello_password : hello_none, sizeof(hello_none));
	step->reply = user ? socks5_method_password : socks5_method_none;
	step++;
	if (user) {
		put_byte(step, 1); /* the version of RFC 1929's subnegotiation */
		put_byte(step, (size_t)(colon - user));
		put(step, user, (size_t)(colon - user));
		put_byte(step, strlen(colon + 1));
		put(step, colon + 1, strlen(colon + 1));
		step->reply = socks5_authenticated;
		step++;
	}
	socks5_connect(step++, &way->server);
	way->steps = (int)(step - way->step);
	return 0;
}

static ssize_t convert_reply(const uint8_t *data, size_t len, const union sockaddr_ip *server)
{
	struct convert_response response;
	enum convert_status status = convert_response_parse(data, len, &response);

	if (status == CONVERT_STATUS_NEED_MORE)
		return 0;
	if (status != CONVERT_STATUS_OK)
		return -EPROTO;
	if (response.has_error)
		return -errno_map_error(response.error_code, response.error_value.data[0],
					sockaddr_ip_is_v4(server));
	return (ssize_t)response.length;
}

/* @silence: with what the request asks for silence, or NULL */
static int convert_init(struct way *way, bool in_syn, const struct convert_silence *silence)
{
	struct way_step *step = &way->step[0];
	struct in6_addr address = sockaddr_ip_in6(&way->server);
	struct convert_writer writer;
	ssize_t size;

	convert_writer_init(&writer, step->bytes, sizeof(step->bytes));
	if (silence)
		convert_write_silence(&writer, silence);
	convert_write_connect(&writer, &address, sockaddr_ip_port(&way->server), NULL, 0);
	size = convert_writer_finish(&writer);
	if (size < 0)
		return (int)size;
	step->size = (size_t)size;
	step->reply = convert_reply;
	way->in_syn = in_syn;
	way->silent = silence != NULL;
	way->steps = 1;
	return 0;
}

int way_init(struct way *way, const char *name, const union sockaddr_ip *server, const char *user, bool mptcp)
{
	const struct convert_silence silence = { .mptcp = mptcp };

	memset(way, 0, sizeof(*way));
	way->server = *server;
	if (strcmp(name, "socks5") == 0)
		return socks5_init(way, user);
	if (user)
		return -EINVAL;
	if (strcmp(name, "convert-syn") == 0)
		return convert_init(way, true, NULL);
	if (strcmp(name, "convert-behind") == 0)
		return convert_init(way, false, NULL);
	if (strcmp(name, "convert-silent") == 0)
		return convert_init(way, true, &silence);
	return strcmp(name, "direct") == 0 ? 0 : -EINVAL;
}
