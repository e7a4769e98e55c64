/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record.c - writes the line of the log about a session that has ended (no I/O)
 *
 * The line consists of addresses, numbers and constants only, so that no peer can put text into the log.
 */
#include "config.h"

#include "convertd/observe/record.h"

#include "common/json.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdarg.h>

static const char *const transport_names[] = {
	[RECORD_TCP] = "tcp",
	[RECORD_MPTCP] = "mptcp",
	[RECORD_FALLBACK] = "fallback",
};
static_assert(sizeof(transport_names) / sizeof(transport_names[0]) == RECORD_TRANSPORT_COUNT,
	      "a name for each transport");

const char *record_transport_name(enum record_transport transport)
{
	return transport_names[transport];
}

/* Appends to the text in @buf, cut where the buffer is full. @len: the text's length, which grows */
static void append(char buf[static RECORD_TEXT_MAX], size_t *len, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void append(char buf[static RECORD_TEXT_MAX], size_t *len, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(buf + *len, RECORD_TEXT_MAX - *len, format, args);
	va_end(args);
	if (n > 0)
		*len += (size_t)n < RECORD_TEXT_MAX - *len ? (size_t)n : RECORD_TEXT_MAX - 1 - *len;
}

static void append_transport(char buf[static RECORD_TEXT_MAX], size_t *len,
			     const struct record *record)
{
	switch (record->transport) {
	case RECORD_MPTCP:
		append(buf, len, ", MPTCP with %u subflow%s", record->subflows_max,
		       record->subflows_max == 1 ? "" : "s");
		break;
	case RECORD_FALLBACK:
		append(buf, len, ", MPTCP fell back to TCP");
		break;
	case RECORD_TCP:
	case RECORD_TRANSPORT_COUNT:
		append(buf, len, ", TCP");
		break;
	}
}

const char *record_text(const struct record *record, char buf[static RECORD_TEXT_MAX])
{
	char client[SOCKADDR_STRLEN], server[SOCKADDR_STRLEN] = "nowhere", source[SOCKADDR_STRLEN];
	size_t len = 0;

	if (record->server.sa.sa_family)
		sockaddr_ip_format(&record->server, server);
	append(buf, &len, "%s to %s: %llu bytes up, %llu down, %llu.%03u s: %s (id %llu",
	       sockaddr_ip_format(&record->client, client), server,
	       (unsigned long long)record->bytes_up, (unsigned long long)record->bytes_down,
	       (unsigned long long)(record->duration_us / 1000000),
	       (unsigned)(record->duration_us / 1000 % 1000), record->reason,
	       (unsigned long long)record->id);
	if (record->source.sa.sa_family)
		append(buf, &len, ", from %s", sockaddr_ip_format(&record->source, source));
	if (record->connect_us != RECORD_NEVER)
		append(buf, &len, ", server after %llu.%01u ms",
		       (unsigned long long)(record->connect_us / 1000),
		       (unsigned)(record->connect_us / 100 % 10));
	append_transport(buf, &len, record);
	append(buf, &len, "%s%s)", record->syn_data ? ", data in the SYN" : "", record->silent ? ", silent" : "");
	return buf;
}

static void json_address(FILE *out, const char *name, const union sockaddr_ip *address)
{
	struct in6_addr ip = sockaddr_ip_in6(address);
	bool v4 = sockaddr_ip_is_v4(address);
	char text[INET6_ADDRSTRLEN];

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? &ip.s6_addr[12] : &ip.s6_addr[0], text, sizeof(text));
	fprintf(out, ",\"%s\":\"%s\",\"%s_port\":%u", name, text, name,
		(unsigned)sockaddr_ip_port(address));
}

static void json_seconds(FILE *out, const char *name, uint64_t us)
{
	fprintf(out, ",\"%s\":%llu.%06u", name, (unsigned long long)(us / 1000000),
		(unsigned)(us % 1000000));
}

void record_json(FILE *out, const void *arg)
{
	const struct record *record = arg;

	fprintf(out, ",\"event\":\"connection\",\"id\":%llu", (unsigned long long)record->id);
	json_address(out, "client", &record->client);
	if (record->server.sa.sa_family)
		json_address(out, "destination", &record->server);
	if (record->source.sa.sa_family)
		json_address(out, "source", &record->source);
	fprintf(out, ",\"bytes_up\":%llu,\"bytes_down\":%llu",
		(unsigned long long)record->bytes_up, (unsigned long long)record->bytes_down);
	json_seconds(out, "duration_seconds", record->duration_us);
	if (record->connect_us != RECORD_NEVER)
		json_seconds(out, "connect_seconds", record->connect_us);
	fprintf(out, ",\"transport\":\"%s\"", record_transport_name(record->transport));
	if (record->transport == RECORD_MPTCP)
		fprintf(out, ",\"subflows\":%u,\"subflows_max\":%u", record->subflows,
			record->subflows_max);
	if (record->silent)
		fputs(",\"answer\":\"silent\"", out);
	fprintf(out, ",\"syn_data\":%s,\"outcome\":\"%s\",\"reason\":",
		record->syn_data ? "true" : "false", outcome_name(record->outcome));
	json_string(out, record->reason);
	if (record->error != RECORD_NO_ERROR)
		fprintf(out, ",\"error_code\":%d", record->error);
}
