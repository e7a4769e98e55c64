/* SPDX-License-Identifier: BSD-3-Clause */
/* file_limit.h - the limit of the size of files that this process writes */
#ifndef COMMON_FILE_LIMIT_H
#define COMMON_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* Returns whether this process may write a file up to the offset @end. Otherwise Linux sends it SIGXFSZ: setrlimit(2), RLIMIT_FSIZE. */
static inline bool file_limit_allows(uint64_t end)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur;
}

#endif
