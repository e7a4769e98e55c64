/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_epoll.c - the fake kernel's poll(2), epoll(7) and timers, timerfd_create(2) */
#include "config.h"

#include "fake_private.h"

#include "shim/system/next.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>

#define ALWAYS (EPOLLERR | EPOLLHUP)
#define MODES (EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE | EPOLLWAKEUP)

static struct fake_file *instances[FAKE_FILES];

int fake_epoll_create(void)
{
	struct fake_file *file;
	int fd = fake_file_make(0, &file);

	file->is_epoll = true;
	for (size_t i = 0; i < FAKE_FILES; i++) {
		if (instances[i] && instances[i] != file && instances[i]->refs && instances[i]->is_epoll)
			continue;
		instances[i] = file;
		return fd;
	}
	fake_die("too many instances");
}

static bool is_instance(const struct fake_file *file)
{
	return file && file->refs && file->is_epoll;
}

/* Notes an edge on @socket, which may be the unused one of a timer. */
void fake_epoll_wake(const struct fake_socket *socket)
{
	for (size_t i = 0; i < FAKE_FILES; i++)
		for (size_t j = 0; is_instance(instances[i]) && j < FAKE_REGISTRATIONS; j++)
			if (instances[i]->registrations[j].file && &instances[i]->registrations[j].file->socket == socket)
				instances[i]->registrations[j].armed = true;
}

/* The next two take the place of the C library's. */
int timerfd_create(int clock, int flags)
{
	struct fake_file *file;
	int fd;

	(void)clock, (void)flags;
	fd = fake_file_make(FD_CLOEXEC, &file);
	file->is_timer = true;
	return fd;
}

static void timer_expire(struct fake_socket *unused)
{
	(void)unused;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *before)
{
	struct fake_file *file = fake_file_of(fd);

	if (!file->is_timer || flags != TFD_TIMER_ABSTIME || before)
		fake_die("timerfd_settime() is called otherwise than the model allows");
	file->expires = when->it_value.tv_sec * INT64_C(1000000000) + when->it_value.tv_nsec;
	fake_epoll_wake(&file->socket);
	if (file->expires)
		fake_at(file->expires, timer_expire, &file->socket);
	return 0;
}

static uint32_t ready_events(const struct fake_file *file)
{
	if (file->is_timer)
		return file->expires && file->expires <= fake_now() ? EPOLLIN : 0;
	return (uint32_t)(uint16_t)fake_socket_poll(&file->socket);
}

/* Removes the registrations of @file, whose last descriptor is closed. */
void fake_epoll_forget(const struct fake_file *file)
{
	for (size_t i = 0; i < FAKE_FILES; i++)
		for (size_t j = 0; is_instance(instances[i]) && j < FAKE_REGISTRATIONS; j++)
			if (instances[i]->registrations[j].file == file)
				instances[i]->registrations[j].file = NULL;
}

static struct fake_registration *registration_find(struct fake_file *instance, int fd, const struct fake_file *file)
{
	for (size_t i = 0; i < FAKE_REGISTRATIONS; i++) {
		struct fake_registration *registration = &instance->registrations[i];

		if (registration->file == file && (!file || registration->fd == fd))
			return registration;
	}
	return NULL;
}

static int control(struct fake_file *instance, int op, int fd, struct fake_file *file, const struct epoll_event *event)
{
	struct fake_registration *found = registration_find(instance, fd, file);

	if (op == EPOLL_CTL_ADD ? found != NULL : !found) {
		errno = found ? EEXIST : ENOENT;
		return -1;
	}
	if (op == EPOLL_CTL_DEL) {
		found->file = NULL;
		return 0;
	}
	if (!found)
		found = registration_find(instance, fd, NULL);
	if (!found)
		fake_die("too many registrations");
	*found = (struct fake_registration){ fd, file, event->events | ALWAYS, event->data.u64, true };
	return 0;
}

int fake_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct fake_file *instance, *file;

	if (fake_enter(FAKE_epoll_ctl))
		return -1;
	instance = fake_file_of(epfd);
	file = instance ? fake_file_of(fd) : NULL;
	if (!file)
		return -1;
	if (!instance->is_epoll || file == instance) {
		errno = EINVAL;
		return -1;
	}
	return control(instance, op, fd, file, event);
}

uint32_t fake_registered(int epfd, int fd)
{
	struct fake_registration *found = registration_find(fake_file_of(epfd), fd, fake_file_of(fd));

	return found ? found->events & ~ALWAYS : 0;
}

bool fake_registration_get(int epfd, int i, int *fd, struct epoll_event *event)
{
	struct fake_file *instance = fake_file_of(epfd);

	for (int j = 0; instance && j < FAKE_REGISTRATIONS; j++) {
		struct fake_registration *found = &instance->registrations[j];

		if (!found->file || i--)
			continue;
		*fd = found->fd;
		event->events = found->events;
		event->data.u64 = found->data;
		return true;
	}
	return false;
}

/* --- waiting --- */

struct epoll_wait_arg {
	struct fake_file *instance;
	struct epoll_event *events;
	int max, count;
};

static void report(struct epoll_wait_arg *wait, struct fake_registration *registration)
{
	uint32_t ready = ready_events(registration->file);
	uint32_t wanted = registration->events;

	if ((wanted & (EPOLLET | EPOLLONESHOT)) && !registration->armed)
		return;
	ready &= (wanted & ~MODES) | ALWAYS;
	if (!ready)
		return;
	wait->events[wait->count].events = ready;
	wait->events[wait->count++].data.u64 = registration->data;
	registration->armed = !(wanted & EPOLLET);
	if (wanted & EPOLLONESHOT) {
		registration->armed = false;
		registration->events &= MODES;
	}
}

static bool is_reported(void *arg)
{
	struct epoll_wait_arg *wait = arg;

	for (size_t i = 0; i < FAKE_REGISTRATIONS && wait->count < wait->max; i++)
		if (wait->instance->registrations[i].file &&
		    (wait->instance->registrations[i].events & ~MODES))
			report(wait, &wait->instance->registrations[i]);
	return wait->count > 0;
}

static int64_t ns_of_ms(int ms)
{
	return ms < 0 ? FAKE_NEVER : ms * INT64_C(1000000);
}

static int wait_for_events(int epfd, struct epoll_event *events, int max, int timeout_ms, bool may_wait)
{
	struct epoll_wait_arg wait = { fake_file_of(epfd), events, max, 0 };

	if (!wait.instance)
		return -1;
	fake_wait(is_reported, &wait, ns_of_ms(timeout_ms), may_wait);
	return wait.count;
}

int fake_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
	if (fake_enter(FAKE_epoll_wait))
		return -1;
	return wait_for_events(epfd, events, max, timeout_ms, !fake_signals_are_blocked());
}

/* The mask lets signals in during the wait. */
int fake_epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask)
{
	if (fake_enter(FAKE_epoll_pwait))
		return -1;
	return wait_for_events(epfd, events, max, timeout_ms, mask != NULL);
}

int fake_poll_now(struct pollfd *fds, unsigned long count)
{
	int ready = 0;

	for (unsigned long i = 0; i < count; i++) {
		fds[i].revents = 0;
		if (fds[i].fd < 0)
			continue;
		if (!fake_is_fd(fds[i].fd))
			fds[i].revents = POLLNVAL;
		else
			fds[i].revents = fake_socket_poll(fake_socket_of(fds[i].fd)) &
					 (short)(fds[i].events | POLLERR | POLLHUP);
		ready += fds[i].revents != 0;
	}
	return ready;
}

struct poll_arg {
	struct pollfd *fds;
	unsigned long count;
	int ready;
};

static bool is_polled(void *arg)
{
	struct poll_arg *wait = arg;

	return (wait->ready = fake_poll_now(wait->fds, wait->count)) > 0;
}

static int wait_for_fds(struct pollfd *fds, unsigned long count, int64_t ns, bool may_wait)
{
	struct poll_arg wait = { fds, count, 0 };

	fake_wait(is_polled, &wait, ns, may_wait);
	return wait.ready;
}

int fake_poll(struct pollfd *fds, unsigned long count, int timeout_ms)
{
	if (fake_enter(FAKE_poll))
		return -1;
	return wait_for_fds(fds, count, ns_of_ms(timeout_ms), !fake_signals_are_blocked());
}

int fake_ppoll(struct pollfd *fds, unsigned long count, const struct timespec *timeout, const sigset_t *mask)
{
	int64_t ns = timeout ? timeout->tv_sec * INT64_C(1000000000) + timeout->tv_nsec : FAKE_NEVER;

	if (fake_enter(FAKE_ppoll))
		return -1;
	return wait_for_fds(fds, count, ns, mask || !fake_signals_are_blocked());
}
