/* SPDX-License-Identifier: BSD-3-Clause */
/* os.h - small files, sysctls, descriptors, limits, capabilities, child programs, and the service manager */
#ifndef COMMON_OS_H
#define COMMON_OS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* --- small files, and integers under /proc/sys --- */

/* Reads up to @size - 1 bytes of a file into @text, with a NUL behind them. Returns their number, or -errno with an empty text. */
ssize_t file_read_text(const char *path, char *text, size_t size);

/*
 * file_take_text() - read up to @size bytes from the beginning of a file, and close it
 * Returns a text to be freed, with a NUL behind its @len bytes; or NULL with errno set.
 */
char *file_take_text(int fd, size_t size, size_t *len);

/*
 * file_replace() - write a whole file as @draft, in place of any file there, and rename it: a reader of @path finds the old or the new one
 * @mode: the file's, whatever the umask is; @durable: the disk has it before that. Returns 0, or -errno with the old file as it was.
 */
int file_replace(const char *path, const char *draft, const char *text, size_t len, mode_t mode, bool durable);

/*
 * sysctl_read() - read an integer sysctl
 * @name: as sysctl(8) spells it, such as "net.ipv4.tcp_fastopen", with "/" for the dots of an interface's name
 * Returns the value (0 or more), or -errno: -ENOENT if this kernel has none.
 */
int sysctl_read(const char *name);

#define SYSCTL_NAME_MAX 64 /* bytes, with the NUL */

/* Writes "net.ipv4.conf.DEVICE.SETTING" (@version: 4 or 6), as sysctl(8) spells it. @setting: at most 31 bytes */
void sysctl_of_device(char name[static SYSCTL_NAME_MAX], unsigned version, const char *device, const char *setting);

/*
 * Opens /dev/null at closed descriptors from 0 to 2: otherwise the next socket would get such a number, and with it the log's lines.
 * A program that this process executes gets them closed.
 */
void standard_descriptors_fill(void);

/* Raises this process's limit of open files to its hard limit, since each connection takes two. Returns false with errno set. */
bool open_files_raise(void);

/* --- capabilities of this thread: capabilities(7) --- */

/* A set of capabilities, by the numbers of linux/capability.h. */
#define CAPABILITIES_BIT(capability) ((uint64_t)1 << (capability))

/* Tells whether at least one capability of @set is in effect. */
bool capabilities_has(uint64_t set);

/*
 * capabilities_keep() - give up all capabilities outside @set, for good
 * Call it before any thread is started, as each thread has its own capabilities. The bounding set is emptied as well,
 * where CAP_SETPCAP permits that. Returns 0 or -errno.
 */
int capabilities_keep(uint64_t set);

/* --- another program's output --- */

#define CHILD_NO_TIMEOUT (-1)

struct child_output {
	int status;     /* of waitpid(2): 0 if it has ended well */
	char *text;     /* its standard output, and its standard error; the caller frees both */
	char *messages;
};

/*
 * child_run() - run a program, without a shell and with nothing on its standard input, until it ends
 * @words: its name, to be looked up in PATH, and its arguments, ending with NULL
 * @timeout_ms: kill it after so long; CHILD_NO_TIMEOUT: never
 * Returns 0 with *@out filled; or -errno, with nothing to free: -ENOENT: no such program; -ETIMEDOUT; -ENOMEM, also for more than 4 MiB
 */
int child_run(const char *const words[], int timeout_ms, struct child_output *out);

/* --- the socket to a service manager, which gets reports of a service's state: sd_notify(3) --- */

/* How long a message waits for a manager that has stopped reading, in milliseconds. */
#define SERVICE_MANAGER_WAIT_MS 100

struct service_manager {
	struct sockaddr_un address;
	socklen_t len; /* 0: there is no manager */
};

/*
 * service_manager_read() - find the manager that the value of NOTIFY_SOCKET names
 * @path: an absolute path, or "@name" for the abstract namespace of unix(7). Any other value, NULL included, names no manager.
 */
void service_manager_read(struct service_manager *out, const char *path);

/*
 * service_manager_connect() - open a datagram socket to the manager, which the caller closes
 * A message fails with EAGAIN if the manager doesn't take it within SERVICE_MANAGER_WAIT_MS. Its queue holds net.unix.max_dgram_qlen
 * messages, often ten, and by default a sender waits for room in it without limit: a manager that is stopped or has crashed would stop its
 * services.
 * Returns -1 if there is no manager or no descriptor.
 */
int service_manager_connect(const struct service_manager *manager);

#endif
