/* SPDX-License-Identifier: BSD-3-Clause */
/* os.c - small files, sysctls, descriptors, limits, capabilities, child programs, and the service manager (without libsystemd) */
#include "config.h"

#include "common/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

ssize_t file_read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t len = fd < 0 ? -errno : read(fd, text, size - 1);

	if (fd >= 0 && len < 0)
		len = -errno;
	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = '\0';
	return len;
}

char *file_take_text(int fd, size_t size, size_t *len)
{
	char *text = malloc(size + 1);
	ssize_t n = -1;
	int error;

	*len = 0;
	while (text && (n = pread(fd, text + *len, size - *len, (off_t)*len)) != 0)
		if (n > 0)
			*len += (size_t)n;
		else if (errno != EINTR)
			break;
	error = errno;
	close(fd);
	errno = error;
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[*len] = '\0';
	return text;
}

int file_replace(const char *path, const char *draft, const char *text, size_t len, mode_t mode, bool durable)
{
	int fd, ret = 0;

	unlink(draft); /* a process that was killed may have left it */
	fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -errno;
	if (fchmod(fd, mode) < 0)
		ret = -errno;
	errno = EIO; /* of a write that isn't complete */
	if (ret == 0 && (write(fd, text, len) != (ssize_t)len || (durable && fsync(fd) < 0)))
		ret = -errno;
	if (close(fd) < 0 && ret == 0)
		ret = -errno;
	if (ret == 0 && rename(draft, path) < 0)
		ret = -errno;
	if (ret < 0)
		unlink(draft);
	return ret;
}

int sysctl_read(const char *name)
{
	char path[128], text[32];
	ssize_t n = snprintf(path, sizeof(path), "/proc/sys/%s", name);
	int value;

	if (n >= (ssize_t)sizeof(path))
		return -ENAMETOOLONG;
	for (char *p = path + sizeof("/proc/sys/") - 1; *p; p++)
		*p = (char)(*p == '.' ? '/' : *p == '/' ? '.' : *p);
	n = file_read_text(path, text, sizeof(text));
	if (n <= 0)
		return n < 0 ? (int)n : -EINVAL;
	value = atoi(text);
	return value < 0 ? -ERANGE : value;
}

void sysctl_of_device(char name[static SYSCTL_NAME_MAX], unsigned version, const char *device, const char *setting)
{
	int len = snprintf(name, SYSCTL_NAME_MAX, "net.ipv%u.conf.", version);

	for (; *device && len < SYSCTL_NAME_MAX / 2; device++)
		name[len++] = (char)(*device == '.' ? '/' : *device);
	snprintf(name + len, SYSCTL_NAME_MAX - (size_t)len, ".%s", setting);
}

/* --- capabilities --- */

#define WORDS _LINUX_CAPABILITY_U32S_3

static int read_capabilities(struct __user_cap_data_struct data[static WORDS])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &header, data) < 0 ? -errno : 0;
}

bool capabilities_has(uint64_t set)
{
	struct __user_cap_data_struct data[WORDS] = { 0 };

	return read_capabilities(data) == 0 && (((uint64_t)data[1].effective << 32 | data[0].effective) & set) != 0;
}

int capabilities_keep(uint64_t set)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[WORDS] = { 0 };
	int error = read_capabilities(data);

	if (error)
		return error;
	/* Goes on until it fails behind the last capability: a kernel newer than the headers may have more of them. */
	for (unsigned long i = 0; prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0; i++)
		;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int i = 0; i < WORDS; i++) {
		data[i].permitted &= (uint32_t)(set >> (32 * i));
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* --- another program's output --- */

#define OUTPUT_MAX (4 * 1024 * 1024)

extern char **environ;

/* Reads a whole memory file, and closes it. Returns a text to be freed, or NULL. */
static char *take_output(int fd)
{
	const off_t size = lseek(fd, 0, SEEK_END);
	size_t len;

	if (size >= 0 && size <= OUTPUT_MAX)
		return file_take_text(fd, (size_t)size, &len);
	close(fd);
	return NULL;
}

/* Starts a program with its output in memory files, which take any amount without a reader. Returns 0 or a positive errno. */
static int start(char *const words[], int out, int messages, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	int error = posix_spawn_file_actions_init(&actions);

	if (error)
		return error;
	error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&actions, messages, STDERR_FILENO);
	if (!error)
		error = posix_spawnp(pid, words[0], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

/* Waits for the end of the program, and kills it when the time is up. Returns its status of waitpid(2), or -errno. */
static int wait_for(pid_t pid, int timeout_ms)
{
	struct pollfd end = { .fd = timeout_ms < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	int status = 0, ready = 1;

	if (end.fd >= 0) {
		do
			ready = poll(&end, 1, timeout_ms);
		while (ready < 0 && errno == EINTR);
		close(end.fd);
	}
	if (ready == 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return ready == 0 ? -ETIMEDOUT : status;
}

int child_run(const char *const words[], int timeout_ms, struct child_output *out)
{
	int text = memfd_create("output", MFD_CLOEXEC), messages = memfd_create("messages", MFD_CLOEXEC), ret;
	pid_t pid;

	*out = (struct child_output){ 0 };
	ret = text < 0 || messages < 0 ? -errno : -start((char *const *)words, text, messages, &pid);
	if (ret == 0)
		ret = wait_for(pid, timeout_ms);
	out->text = text >= 0 ? take_output(text) : NULL;
	out->messages = messages >= 0 ? take_output(messages) : NULL;
	if (ret >= 0 && (!out->text || !out->messages))
		ret = -ENOMEM;
	if (ret < 0) {
		free(out->text);
		free(out->messages);
		return ret;
	}
	out->status = ret;
	return 0;
}

void standard_descriptors_fill(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

bool open_files_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* --- the service manager --- */

void service_manager_read(struct service_manager *out, const char *path)
{
	size_t len = path ? strlen(path) : 0;

	memset(out, 0, sizeof(*out));
	if (!len || (path[0] != '/' && path[0] != '@') || len >= sizeof(out->address.sun_path))
		return;
	out->address.sun_family = AF_UNIX;
	memcpy(out->address.sun_path, path, len);
	if (path[0] == '@')
		out->address.sun_path[0] = '\0';
	out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

int service_manager_connect(const struct service_manager *manager)
{
	const struct timeval wait = { .tv_usec = SERVICE_MANAGER_WAIT_MS * 1000 };
	int fd = manager->len ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) == 0 &&
	    connect(fd, (const struct sockaddr *)&manager->address, manager->len) == 0)
		return fd;
	close(fd);
	return -1;
}
