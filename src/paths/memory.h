/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h - a file of all that the path manager has made, so that after a kill the next one recognizes and removes it
 *
 * Routes and rules carry our number (HOST_PROTOCOL_OURS). Endpoints and limits have no room for such a mark: we write them to a file,
 * one for each network namespace, before we change them. A restart of the machine removes both them and the file.
 */
#ifndef PATHS_MEMORY_H
#define PATHS_MEMORY_H

#include "host/endpoints.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PATHS_MEMORY_DIRECTORY "/run/convertize"
#define PATHS_MEMORY_PATH_MAX 256

struct paths_memory_endpoint {
	uint8_t id;
	unsigned int index;
	union sockaddr_ip address;
	int64_t since; /* seconds of CLOCK_REALTIME */
};

struct paths_memory {
	struct paths_memory_endpoint endpoint[ENDPOINTS_MAX];
	size_t count;
	uint32_t table_first, table_last;      /* 0: the file has none */
	unsigned int limit_before, limit_set;  /* of subflows; limit_set is 0 if we didn't change it */
};

/* Returns the entry of an endpoint, whose flags may have changed; NULL: it isn't ours. */
const struct paths_memory_endpoint *paths_memory_find(const struct paths_memory *memory,
						      const struct mptcp_endpoint *endpoint);

/* Marks the endpoints of a host that are ours, and forgets entries without an endpoint: a later one may be somebody else's. */
void paths_memory_mark(struct paths_memory *memory, struct endpoints *endpoints);

/* Adds an endpoint, in place of one with the same ID. */
void paths_memory_add(struct paths_memory *memory, const struct paths_memory_endpoint *endpoint);
void paths_memory_remove(struct paths_memory *memory, uint8_t id);

/* Parses the text of the file, without I/O. Skips lines that it doesn't understand. Overwrites @text. */
void paths_memory_parse(struct paths_memory *out, char *text);

/* Writes the text of the file. Returns its length, which is less than @size, or -ENOSPC. */
ssize_t paths_memory_format(const struct paths_memory *memory, char *out, size_t size);

/* Reads the file of this network namespace. A missing file is an empty one. Returns 0 or -errno. */
int paths_memory_load(struct paths_memory *out);

/* Replaces the whole file, or removes it if @memory is empty. Returns 0 or -errno. */
int paths_memory_save(const struct paths_memory *memory);

/*
 * paths_memory_lock() - become the only path manager of this network namespace, until paths_memory_unlock()
 * Makes the directory, and removes the files of namespaces that no longer exist. No other user can take the lock. Returns a descriptor, or
 * -errno: -EWOULDBLOCK if another manager runs.
 */
int paths_memory_lock(void);
void paths_memory_unlock(int fd);

/* Does a path manager run in this network namespace? */
bool paths_memory_is_locked(void);

/* Returns the path of the file, for messages. */
const char *paths_memory_path(char path[static PATHS_MEMORY_PATH_MAX]);

#endif
