/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.c - receives the calls that programs have stopped in, and answers them: seccomp_unotify(2) */
#include "config.h"

#include "supervise/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Missing in linux/seccomp.h before Linux 5.14 and 5.19. */
#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

/* Linux 6.6 */
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP 1UL
#endif

/*
 * Once the supervisor has received a call, only a fatal signal ends it (Linux 5.19). Otherwise each signal would restart the call, and a
 * connect() that returns EINTR would leave a socket behind on which a Convert response is still to come.
 */
#define FLAGS (SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)

int listener_install(void)
{
	struct sock_filter steps[FILTER_LENGTH_MAX];
	struct sock_fprog program = { .len = (unsigned short)filter_build(steps), .filter = steps };
	long fd;

	if (!program.len)
		return -ENOSYS;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, FLAGS, &program);
	return fd < 0 ? -errno : (int)fd;
}

/* Leaves socketcall(2) as it is: its arguments are in memory, and calls.c reads them. */
int listener_receive(int listener, struct call *out)
{
	struct seccomp_notif notification;

	memset(&notification, 0, sizeof(notification)); /* the kernel insists */
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notification) != 0)
		return errno == ENOENT || errno == EINTR ? -EAGAIN : -errno;
	*out = (struct call){ .id = notification.id, .tid = (pid_t)notification.pid };
	out->call = filter_call_of(notification.data.arch, notification.data.nr, &out->narrow);
	for (int i = 0; i < 6; i++)
		out->args[i] = notification.data.args[i];
	return 0;
}

void listener_take_turns(int listener)
{
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

bool listener_has_more(int listener)
{
	struct pollfd ready = { .fd = listener, .events = POLLIN };

	return poll(&ready, 1, 0) == 1 && ready.revents & POLLIN;
}

bool listener_is_waiting(int listener, const struct call *call)
{
	uint64_t id = call->id;

	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* Ignores errors: the call of a late answer (ENOENT) has ended. */
static void respond(int listener, struct seccomp_notif_resp response)
{
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

void listener_answer(int listener, const struct call *call, int64_t value, int error)
{
	respond(listener, (struct seccomp_notif_resp){ .id = call->id, .val = error ? 0 : value, .error = -error });
}

void listener_continue(int listener, const struct call *call)
{
	respond(listener, (struct seccomp_notif_resp){ .id = call->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE });
}

static int add_fd(int listener, const struct call *call, int fd, uint32_t flags, int at, bool cloexec)
{
	struct seccomp_notif_addfd addition = {
		.id = call->id,
		.flags = flags,
		.srcfd = (uint32_t)fd,
		.newfd = (uint32_t)at,
		.newfd_flags = cloexec ? O_CLOEXEC : 0,
	};

	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &addition) < 0 ? -errno : 0;
}

void listener_answer_fd(int listener, const struct call *call, int fd, bool cloexec)
{
	int ret = add_fd(listener, call, fd, SECCOMP_ADDFD_FLAG_SEND, 0, cloexec);

	if (ret < 0 && ret != -ENOENT) /* EMFILE: the program's limit, as if it had made the socket itself */
		listener_answer(listener, call, 0, -ret);
}

int listener_put_fd(int listener, const struct call *call, int fd, int at, bool cloexec)
{
	return add_fd(listener, call, fd, SECCOMP_ADDFD_FLAG_SETFD, at, cloexec);
}
