/* SPDX-License-Identifier: BSD-3-Clause */
/* cache_fixture.h - a directory for a cache's file; answers that tests put into the cache and look for; facts about the file */
#ifndef CACHE_FIXTURE_H
#define CACHE_FIXTURE_H

#include "client/cache.h"
#include "client/cache_file.h"

#include "cache_open.h"
#include "tempdir.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOW INT64_C(1000000)
#define LATER (NOW + 60000)
#define SOMEBODY 4711 /* a user without rights, whose processes map the file */

static char directory[PATH_MAX], file[PATH_MAX + sizeof("/" CACHE_FILE)];

static inline void setup(void)
{
	tempdir_make(directory);
	snprintf(file, sizeof(file), "%s/" CACHE_FILE, directory);
}

/* The same; if root runs this, the process gives up its rights for good, so that it can't change its identity. */
static inline void setup_without_rights(void)
{
	setup();
	if (geteuid() == 0)
		ck_assert(chown(directory, SOMEBODY, SOMEBODY) == 0 && setresgid(SOMEBODY, SOMEBODY, SOMEBODY) == 0 &&
			  setresuid(SOMEBODY, SOMEBODY, SOMEBODY) == 0);
	prctl(PR_SET_DUMPABLE, 1); /* else /proc/self is root's */
}

static inline void teardown(void)
{
	tempdir_remove(directory);
}

static inline union sockaddr_ip address(uint16_t port)
{
	union sockaddr_ip addr;

	ck_assert_int_eq(sockaddr_ip_parse(&addr, "192.0.2.1", port), 0);
	return addr;
}

static inline int put(const struct cache *cache, uint16_t port)
{
	union sockaddr_ip addr = address(port);

	return cache_answer_put(cache, &addr, 0, CACHE_YES, NOW, LATER);
}

static inline bool has(const struct cache *cache, uint16_t port)
{
	union sockaddr_ip addr = address(port);

	return cache_answer_get(cache, &addr, 0, NOW) == CACHE_YES;
}

static inline struct cache opened(void)
{
	struct cache cache;

	ck_assert_int_eq(cache_open(&cache, directory), 0);
	return cache;
}

static inline void file_write(const void *bytes, size_t len, off_t at)
{
	int fd = open(file, O_WRONLY | O_CREAT, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, bytes, len, at), (ssize_t)len);
	close(fd);
}

static inline ino_t file_inode(void)
{
	struct stat st;

	ck_assert_int_eq(lstat(file, &st), 0);
	return st.st_ino;
}

static inline unsigned int files_in_directory(void)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	unsigned int count = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

#endif
