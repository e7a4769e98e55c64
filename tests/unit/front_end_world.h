/* SPDX-License-Identifier: BSD-3-Clause */
/* front_end_world.h - a front end whose converters are functions */
#ifndef FRONT_END_WORLD_H
#define FRONT_END_WORLD_H

#include "client/converters.h"
#include "client/settings.h"
#include "convert/convert.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define REQUESTS_MAX 8

extern const char *cache_setting, *fallback; /* CONVERT_CACHE, CONVERT_FALLBACK: set them before begin() */
extern struct settings settings;
extern char logged[256]; /* the last line */

/* Writes the response to @request; a silent converter writes nothing. */
typedef void converter(const struct convert_request *request, struct convert_writer *response);

converter serves;
converter serves_mptcp_server;
converter offers_silence;
converter offers_hold_times;
converter knows_no_hold_times;
converter knows_no_silence;
converter wants_cookie;
converter refuses;
converter finds_server_closed;
converter is_silent;

extern converter *converters[2];

/* The requests of the last connection. */
extern struct asked {
	int index;
	struct convert_request request;
	char cookie[16]; /* with its padding */
} asked[REQUESTS_MAX];
extern size_t asked_count;

enum outcome { CONVERTED, DIRECT, BYPASSED, FAILED };

/* Connects to @where, port 443 unless it has one. @error: of FAILED, a positive errno */
enum outcome front_end_connect(const char *where, int *error);

/* Does the same, and requires its outcome, the number of requests, and which converter the last one went to. */
void expect(const char *where, enum outcome expected, size_t requests, int last);

/* Fixtures: a cache of its own, and two converters that serve. */
void setup(void);
void teardown(void);

/* Reads the settings, and starts the client. */
void begin(void);

#endif
