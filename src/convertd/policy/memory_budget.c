/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory_budget.c - how much of the kernel's memory connections may hold on this host
 *
 * tcp_mem has three numbers of pages, for all TCP and Multipath TCP sockets of the host: beyond the second the
 * kernel takes buffers from all sockets, and beyond the third none gets any more. Half of the second is what
 * peers that take nothing may hold: the other half is for those that move, and for other programs. In a
 * control group with a limit, in which socket buffers count, half of that limit.
 */
#include "config.h"

#include "convertd/policy/memory_budget.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * All clients together may hold a TOTAL_PART-th of the memory that there is, and each of them a CLIENT_PART-th of that, but
 * CLIENT_MIN bytes at least.
 */
#define TOTAL_PART 2
#define CLIENT_PART 8
#define CLIENT_MIN (16ULL << 20)

/* Reads a small file of /proc or /sys; "" where it can't be read. */
static const char *read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* "max" is no number, and no limit. */
static uint64_t read_limit(const char *directory, const char *name)
{
	char path[PATH_MAX], text[32], *end;
	unsigned long long value;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return UINT64_MAX;
	read_text(path, text, sizeof(text));
	errno = 0;
	value = strtoull(text, &end, 10);
	return end == text || errno ? UINT64_MAX : value;
}

uint64_t memory_budget_cgroup(const char *root, const char *cgroup)
{
	static const char *const names[] = { "memory.max", "memory.high" };
	const char *line = strncmp(cgroup, "0::/", 4) == 0 ? cgroup : strstr(cgroup, "\n0::/");
	uint64_t least = UINT64_MAX;
	char directory[PATH_MAX];
	size_t base = strlen(root);

	if (!line)
		return least;
	line += line == cgroup ? 3 : 4;
	if (snprintf(directory, sizeof(directory), "%s%.*s", root, (int)strcspn(line, "\n"), line) >=
	    (int)sizeof(directory))
		return least;
	/* From the group up to the root, which has no limit. */
	while (strlen(directory) > base) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			uint64_t limit = read_limit(directory, names[i]);

			least = limit < least ? limit : least;
		}
		*strrchr(directory, '/') = '\0';
	}
	return least;
}

struct limits_memory memory_budget_of(uint64_t total, uint64_t per_client, const char *tcp_mem,
				      uint64_t page, uint64_t cgroup_max)
{
	struct limits_memory memory = { .per_client = per_client, .total = total };
	unsigned long long low, pressure;

	if (!memory.total && cgroup_max != UINT64_MAX)
		memory.total = cgroup_max / TOTAL_PART;
	if (!total && sscanf(tcp_mem, "%llu %llu", &low, &pressure) == 2 &&
	    (!memory.total || pressure * page / TOTAL_PART < memory.total))
		memory.total = pressure * page / TOTAL_PART;
	if (per_client || !memory.total)
		return memory;
	memory.per_client = memory.total / CLIENT_PART;
	if (memory.per_client < CLIENT_MIN)
		memory.per_client = CLIENT_MIN < memory.total / 2 ? CLIENT_MIN : memory.total / 2;
	return memory;
}

struct limits_memory memory_budget(uint64_t total, uint64_t per_client)
{
	char tcp_mem[128], cgroup[4096];

	read_text("/proc/sys/net/ipv4/tcp_mem", tcp_mem, sizeof(tcp_mem));
	/* Only the host's own network namespace has it. Linux's default for the second number, as far as it can be known: */
	if (!tcp_mem[0])
		snprintf(tcp_mem, sizeof(tcp_mem), "0 %ld", sysconf(_SC_PHYS_PAGES) / 16);
	read_text("/proc/self/cgroup", cgroup, sizeof(cgroup));
	return memory_budget_of(total, per_client, tcp_mem, (uint64_t)sysconf(_SC_PAGESIZE),
				memory_budget_cgroup("/sys/fs/cgroup", cgroup));
}
