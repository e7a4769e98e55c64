/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h - what the path manager has made, so that another one, after a kill, knows it and takes it away
 *
 * Routes and rules bear our number (HOST_PROTOCOL_OURS). An endpoint has room for no such mark, and the limits have one value: these are
 * written down before they are changed, in a file for each network namespace. After a restart of the machine neither is left.
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
	int64_t since; /* in seconds of CLOCK_REALTIME */
};

struct paths_memory {
	struct paths_memory_endpoint endpoint[ENDPOINTS_MAX];
	size_t count;
	uint32_t table_first, table_last;      /* 0: nothing was written */
	unsigned int limit_before, limit_set;  /* of subflows; 0 as limit_set: it wasn't changed */
};

/* Is an endpoint of the kernel's the one that was written down, whatever has become of its flags? NULL: it isn't ours. */
const struct paths_memory_endpoint *paths_memory_find(const struct paths_memory *memory,
						      const struct mptcp_endpoint *endpoint);

/* Notes of each endpoint of a host whether it is ours, and forgets those that aren't there any more: they may be somebody else's later. */
void paths_memory_mark(struct paths_memory *memory, struct endpoints *endpoints);

/* Notes an endpoint; one with the same ID is forgotten. */
void paths_memory_add(struct paths_memory *memory, const struct paths_memory_endpoint *endpoint);
void paths_memory_remove(struct paths_memory *memory, uint8_t id);

/* Reads the text of the file; without I/O. A line that isn't understood is passed over. @text is overwritten. */
void paths_memory_parse(struct paths_memory *out, char *text);

/* Writes the text of the file. Returns its length, which is less than @size, or -ENOSPC. */
ssize_t paths_memory_format(const struct paths_memory *memory, char *out, size_t size);

/* Reads the file of this network namespace; what isn't there is empty. Returns 0 or -errno. */
int paths_memory_load(struct paths_memory *out);

/* Replaces the file as a whole, or removes it if there is nothing to remember. Returns 0 or -errno. */
int paths_memory_save(const struct paths_memory *memory);

/*
 * paths_memory_lock() - be the only path manager of this network namespace, until paths_memory_unlock()
 * Makes the directory, and removes what others have left in it for namespaces that have gone. No other user can take the lock. Returns a
 * descriptor, or -errno: -EWOULDBLOCK where there is another one.
 */
int paths_memory_lock(void);
void paths_memory_unlock(int fd);

/* Is there a path manager in this network namespace? */
bool paths_memory_is_locked(void);

/* The name of the file, for messages. */
const char *paths_memory_path(char path[static PATHS_MEMORY_PATH_MAX]);

#endif
