/* SPDX-License-Identifier: BSD-3-Clause */
/* notes.c - notes about connections, for "convertize status" */
#include "config.h"

#include "client/notes.h"

#include "common/rawcall.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The socket's number takes the place of an address in the key. */
static bool key_set(struct cache_key *out, uint64_t cookie, uint64_t network)
{
	union sockaddr_ip address = { .in6.sin6_family = AF_INET6 };

	memcpy(&address.in6.sin6_addr, &cookie, sizeof(cookie));
	return cookie && cache_key_set(out, CACHE_KIND_NOTE, &address, network, 0);
}

static void address_put(uint8_t out[16], uint16_t *port, const union sockaddr_ip *address)
{
	const struct in6_addr in6 = sockaddr_ip_in6(address);

	if (address->sa.sa_family == AF_UNSPEC)
		return;
	memcpy(out, &in6, sizeof(in6));
	*port = sockaddr_ip_port(address);
}

static union sockaddr_ip address_get(const uint8_t bytes[16], uint16_t port)
{
	union sockaddr_ip out = { .sa.sa_family = AF_UNSPEC };
	struct in6_addr in6;

	memcpy(&in6, bytes, sizeof(in6));
	if (!IN6_IS_ADDR_UNSPECIFIED(&in6))
		sockaddr_ip_set(&out, IN6_IS_ADDR_V4MAPPED(&in6) ? AF_INET : AF_INET6, &in6, port);
	return out;
}

void note_put(const struct cache *cache, const struct note *note)
{
	struct cache_record record;
	struct cache_bucket bucket;

	memset(&record, 0, sizeof(record));
	if (!cache_is_on(cache) || !key_set(&record.key, note->cookie, atomic_load(&cache->network)) || !cache_bucket_begin(&bucket, cache))
		return;
	address_put(record.value.note.server, &record.value.note.server_port, &note->server);
	address_put(record.value.note.converter, &record.value.note.converter_port, &note->converter);
	address_put(record.value.note.client, &record.value.note.client_port, &note->client);
	record.value.note.flags = (uint16_t)note->flags;
	record.value.note.connect_ms = note->connect_ms;
	memcpy(record.value.note.reason, note->reason, strnlen(note->reason, CACHE_REASON_MAX - 1));
	cache_bucket_put(&bucket, &record, cache_now(), INT64_MAX);
	cache_bucket_end(&bucket);
}

void note_direct(uint64_t cookie, const union sockaddr_ip *server, const char *reason)
{
	struct note note = { .cookie = cookie, .server = *server, .flags = NOTE_DIRECT };

	memcpy(note.reason, reason, strnlen(reason, sizeof(note.reason) - 1));
	note_put(user_cache(), &note);
}

static void take(struct note *out, const struct cache_record *record)
{
	*out = (struct note){
		.server = address_get(record->value.note.server, record->value.note.server_port),
		.converter = address_get(record->value.note.converter, record->value.note.converter_port),
		.client = address_get(record->value.note.client, record->value.note.client_port),
		.flags = record->value.note.flags,
		.connect_ms = record->value.note.connect_ms,
		.noted = record->learned,
	};
	memcpy(&out->cookie, record->key.address, sizeof(out->cookie));
	memcpy(out->reason, record->value.note.reason, sizeof(out->reason));
}

int notes_read(const char *path, uint64_t network, struct note *out, size_t max, uid_t *owner)
{
	const struct cache_table *table = cache_table_of(CACHE_KIND_NOTE);
	int fd = cache_file_peek(path, owner);
	struct cache_record record;
	struct cache_key key;
	size_t count = 0;

	if (fd < 0)
		return fd;
	key_set(&key, 1, network);
	memset(&record, 0, sizeof(record));
	for (uint32_t i = 0; i < table->buckets * table->ways && count < max; i++) {
		const off_t offset = (off_t)table->offset + (off_t)i * table->record_size;

		if (pread(fd, &record, table->record_size, offset) != (ssize_t)table->record_size)
			break;
		if (cache_record_is_whole(&record, table) && record.key.network == key.network &&
		    cache_value_is_valid(CACHE_KIND_NOTE, &record.value))
			take(&out[count++], &record);
	}
	RAWCALL(SYS_close, fd);
	return (int)count;
}
