/* SPDX-License-Identifier: BSD-3-Clause */
/* cache_file.h - find, check, make and map the cache's file */
#ifndef CLIENT_CACHE_FILE_H
#define CLIENT_CACHE_FILE_H

#include <stddef.h>
#include <stdint.h>

/*
 * cache_file_map() - map CACHE_FILE of @directory, a descriptor, a file that this version can use
 * @out: cache_file_size() bytes, shared, for the functions below and never to be accessed otherwise
 * What is checked and made, and what comes back, is said at cache_open_at().
 */
int cache_file_map(int directory, uint8_t **out);

void cache_file_unmap(uint8_t *file);

/*
 * cache_file_read(), cache_file_write() - copy @len bytes from or to the mapping, at @offset
 * Returns 0, -EFAULT if the file doesn't have all of them any more or its file system is full, or
 * another -errno of process_vm_readv(2). A part may have been copied then. Async-signal-safe.
 */
int cache_file_read(uint8_t *file, uint32_t offset, void *buf, size_t len);
int cache_file_write(uint8_t *file, uint32_t offset, const void *buf, size_t len);

#endif
