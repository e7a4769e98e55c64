/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - a file of all that the path manager has made, so that after a kill the next one recognizes and removes it
 *
 * We write the file before we change the kernel: it contains all that we made, and perhaps entries that we didn't get to make. An
 * endpoint counts as ours only if its ID, address and device equal the entry's, since somebody else may use any one of them by now.
 */
#include "config.h"

#include "paths/plan.h"

#include "common/kernel_socket.h"
#include "common/os.h"
#include "host/host_model.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TEXT_MAX 16384
#define TRAFFIC_TEXT_MAX (96 * 1024)
#define STATE_DIRECTORY "/var/lib/convertize"

static_assert(PREFIX_STRLEN >= 50, "room for what parse_line() reads of an address");

const struct paths_memory_endpoint *paths_memory_find(const struct paths_memory *memory,
						      const struct mptcp_endpoint *endpoint)
{
	for (size_t i = 0; i < memory->count; i++)
		if (memory->endpoint[i].id == endpoint->id && memory->endpoint[i].index == endpoint->bound &&
		    sockaddr_ip_equal(&memory->endpoint[i].address, &endpoint->address))
			return &memory->endpoint[i];
	return NULL;
}

void paths_memory_remove(struct paths_memory *memory, uint8_t id)
{
	for (size_t i = memory->count; i-- > 0;)
		if (memory->endpoint[i].id == id)
			memory->endpoint[i] = memory->endpoint[--memory->count];
}

void paths_memory_add(struct paths_memory *memory, const struct paths_memory_endpoint *endpoint)
{
	paths_memory_remove(memory, endpoint->id);
	if (memory->count < ENDPOINTS_MAX)
		memory->endpoint[memory->count++] = *endpoint;
}

void paths_memory_mark(struct paths_memory *memory, struct endpoints *endpoints)
{
	bool there[ENDPOINTS_MAX] = { false };

	for (size_t i = 0; i < endpoints->count; i++) {
		const struct paths_memory_endpoint *known = paths_memory_find(memory, &endpoints->endpoint[i]);

		endpoints->endpoint[i].is_ours = known;
		if (known)
			there[known - memory->endpoint] = true;
	}
	for (size_t i = memory->count; i-- > 0;)
		if (!there[i])
			paths_memory_remove(memory, memory->endpoint[i].id);
}

/* --- the text --------------------------------------------------------------------------- */

void paths_each_line(char *text, void (*parse)(void *arg, const char *line), void *arg)
{
	char *rest;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		parse(arg, line);
}

static void parse_line(void *arg, const char *line)
{
	struct paths_memory *out = arg;
	struct paths_memory_endpoint endpoint = { 0 };
	char address[PREFIX_STRLEN];
	unsigned int first, second;

	if (sscanf(line, "tables %u %u", &first, &second) == 2) {
		out->table_first = first;
		out->table_last = second;
	} else if (sscanf(line, "limit %u %u", &first, &second) == 2) {
		out->limit_before = first;
		out->limit_set = second;
	} else if (sscanf(line, "endpoint %" SCNu8 " %49s %u %" SCNd64, &endpoint.id, address, &endpoint.index,
			  &endpoint.since) == 4 &&
		   endpoint.id && sockaddr_ip_parse(&endpoint.address, address, 0) == 0 &&
		   sockaddr_ip_port(&endpoint.address) == 0) {
		paths_memory_add(out, &endpoint);
	}
}

void paths_memory_parse(struct paths_memory *out, char *text)
{
	memset(out, 0, sizeof(*out));
	paths_each_line(text, parse_line, out);
}

ssize_t paths_memory_format(const struct paths_memory *memory, char *out, size_t size)
{
	char address[PREFIX_STRLEN];
	int len = snprintf(out, size,
			   "# what \"convertize paths --manage\" has made: tables, limits before and now, endpoints\n"
			   "tables %u %u\n",
			   memory->table_first, memory->table_last);
	size_t total = (size_t)len;

	if (memory->limit_set && total < size)
		total += (size_t)snprintf(out + total, size - total, "limit %u %u\n", memory->limit_before, memory->limit_set);
	for (size_t i = 0; i < memory->count && total < size; i++) {
		const struct paths_memory_endpoint *endpoint = &memory->endpoint[i];

		total += (size_t)snprintf(out + total, size - total, "endpoint %u %s %u %" PRId64 "\n", endpoint->id,
					  host_format_address(&endpoint->address, address), endpoint->index, endpoint->since);
	}
	return total < size ? (ssize_t)total : -ENOSPC;
}

/* --- the file --------------------------------------------------------------------------- */

/* Writes the file's path, which contains the network namespace's number: hosts in namespaces may share /run. */
static const char *name_file(const char *suffix, char path[static PATHS_MEMORY_PATH_MAX])
{
	struct stat st = { 0 };

	if (stat("/proc/self/ns/net", &st) < 0)
		st.st_ino = 0;
	snprintf(path, PATHS_MEMORY_PATH_MAX, "%s/paths-%ju%s", PATHS_MEMORY_DIRECTORY, (uintmax_t)st.st_ino, suffix);
	return path;
}

const char *paths_memory_path(char path[static PATHS_MEMORY_PATH_MAX])
{
	return name_file("", path);
}

/* Does the network namespace with this number have a process, or a name in /run/netns? True if we can't know that. */
static bool namespace_exists(ino_t number)
{
	glob_t found = { 0 };
	bool exists = glob("/proc/[0-9]*/ns/net", 0, NULL, &found) != 0 || glob("/run/netns/*", GLOB_APPEND, NULL, &found) == GLOB_NOSPACE;
	struct stat st;

	for (size_t i = 0; i < found.gl_pathc && !exists; i++)
		exists = stat(found.gl_pathv[i], &st) == 0 ? st.st_ino == number : errno == EACCES || errno == EPERM;
	globfree(&found);
	return exists;
}

/* Removes the files of namespaces that no longer exist: all that was made there went with them. */
static void forget_namespaces(void)
{
	glob_t found = { 0 };

	glob(PATHS_MEMORY_DIRECTORY "/paths-[0-9]*", 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		uintmax_t number = strtoumax(found.gl_pathv[i] + strlen(PATHS_MEMORY_DIRECTORY "/paths-"), NULL, 10);

		if (!namespace_exists((ino_t)number))
			unlink(found.gl_pathv[i]);
	}
	globfree(&found);
}

/* Makes a directory that all may read, whatever the umask is. Returns as mkdir(2). */
static int make_directory(const char *path)
{
	return mkdir(path, 0755) < 0 ? -1 : chmod(path, 0755);
}

/* Reads a file into @text. A missing file is an empty one. Returns 0 or -errno. */
static int read_file(const char *path, char *text, size_t size)
{
	ssize_t len = file_read_text(path, text, size);

	return len < 0 && len != -ENOENT ? (int)len : 0;
}

int paths_memory_load(struct paths_memory *out)
{
	char path[PATHS_MEMORY_PATH_MAX], text[TEXT_MAX];
	int ret = read_file(paths_memory_path(path), text, sizeof(text));

	paths_memory_parse(out, text);
	return ret;
}

int paths_memory_save(const struct paths_memory *memory)
{
	char path[PATHS_MEMORY_PATH_MAX], draft[PATHS_MEMORY_PATH_MAX], text[TEXT_MAX];
	ssize_t len;

	paths_memory_path(path);
	if (!memory->count && !memory->limit_set && !memory->table_first)
		return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
	len = paths_memory_format(memory, text, sizeof(text));
	return len < 0 ? (int)len : file_replace(path, name_file(".new", draft), text, (size_t)len, 0644, false);
}

/* --- the bytes of each network ----------------------------------------------------------- */

/*
 * Is this the network namespace of the host, or of a container that has an init of its own? Then it is process 1's, which only root may
 * see. Other users take the first namespace for it, which has the first cookie.
 */
static bool is_hosts_namespace(void)
{
	struct stat own, init;
	bool first;
	int fd;

	if (stat("/proc/self/ns/net", &own) == 0 && stat("/proc/1/ns/net", &init) == 0)
		return own.st_ino == init.st_ino;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	first = fd >= 0 && kernel_network(fd) == 1;
	if (fd >= 0)
		close(fd);
	return first;
}

/* Writes the file's path. Other namespaces than the host's may share its /var, and end by the next boot: a file in /run does for them. */
static const char *name_traffic(const char *suffix, char path[static PATHS_MEMORY_PATH_MAX])
{
	const char *directory = getenv("STATE_DIRECTORY");
	char whole[32];

	if ((!directory || !*directory) && !is_hosts_namespace()) {
		snprintf(whole, sizeof(whole), ".traffic%s", suffix);
		return name_file(whole, path);
	}
	snprintf(path, PATHS_MEMORY_PATH_MAX, "%s/traffic%s", directory && *directory ? directory : STATE_DIRECTORY, suffix);
	return path;
}

int traffic_load(struct traffic *out)
{
	static char text[TRAFFIC_TEXT_MAX];
	char path[PATHS_MEMORY_PATH_MAX];
	int ret = read_file(name_traffic("", path), text, sizeof(text));

	traffic_parse(out, text);
	return ret;
}

int traffic_save(const struct traffic *traffic)
{
	static char text[TRAFFIC_TEXT_MAX];
	char path[PATHS_MEMORY_PATH_MAX], draft[PATHS_MEMORY_PATH_MAX];
	ssize_t len = traffic_format(traffic, text, sizeof(text));

	if (!getenv("STATE_DIRECTORY"))
		make_directory(STATE_DIRECTORY);
	if (len < 0)
		return (int)len;
	name_traffic(".new", draft);
	return file_replace(name_traffic("", path), draft, text, (size_t)len, 0644, false);
}

/* --- the lock --------------------------------------------------------------------------- */

/* Does the path still name the open file @fd? */
static bool is_still(int fd, const char *path)
{
	struct stat held, named;

	return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

/* Opens the file and locks it. Only its owner can open it, so no other user can hold the lock. */
static int take_lock(const char *path)
{
	int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), ret;

	if (fd < 0)
		return -errno;
	if (fchmod(fd, 0600) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

/* Asks the kernel, which shows all users the locks of all files. */
bool paths_memory_is_locked(void)
{
	char path[PATHS_MEMORY_PATH_MAX], line[256];
	unsigned int major, minor;
	unsigned long inode;
	bool locked = false;
	struct stat st;
	FILE *file;

	if (stat(name_file(".owner", path), &st) < 0)
		return false;
	file = fopen("/proc/locks", "re");
	while (file && !locked && fgets(line, sizeof(line), file))
		locked = sscanf(line, "%*s FLOCK %*s %*s %*s %x:%x:%lu", &major, &minor, &inode) == 3 && inode == st.st_ino &&
			 major == major(st.st_dev) && minor == minor(st.st_dev);
	if (file)
		fclose(file);
	return locked;
}

int paths_memory_lock(void)
{
	char path[PATHS_MEMORY_PATH_MAX];
	int fd;

	if (make_directory(PATHS_MEMORY_DIRECTORY) < 0 && errno != EEXIST)
		return -errno;
	name_file(".owner", path);
	fd = take_lock(path);
	/* root's manager may have left the file after a kill: the service's user, who owns the directory, may remove it */
	if (fd == -EACCES && !paths_memory_is_locked() && unlink(path) == 0)
		fd = take_lock(path);
	/* a manager that ends removes the file: lock the new one then */
	for (; fd >= 0 && !is_still(fd, path); fd = take_lock(path))
		close(fd);
	if (fd >= 0)
		forget_namespaces();
	return fd;
}

void paths_memory_unlock(int fd)
{
	char path[PATHS_MEMORY_PATH_MAX];

	unlink(name_file(".owner", path));
	close(fd);
}
