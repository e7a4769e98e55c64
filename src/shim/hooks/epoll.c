/* SPDX-License-Identifier: BSD-3-Clause */
/* epoll.c - epoll_ctl(), whose registrations watch.c keeps, and epoll_wait(), which is loop/epoll.c's while connections are on their way */
#include "config.h"

#include "shim/hooks/hook.h"
#include "shim/loop/epoll.h"
#include "shim/socket/conn.h"
#include "shim/system/next.h"
#include "shim/system/usermem.h"
#include "shim/wait/watch.h"

HOOK(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event))
{
	struct conn *conn = conn_unsettled(fd);
	struct epoll_event copy, *asked = op == EPOLL_CTL_DEL ? NULL : &copy;
	int saved_errno = errno;

	if (!conn)
		conn = conn_attentive(fd);
	/* The kernel refuses a pointer to an event that can't be read. */
	if (!conn || (asked && !usermem_read(asked, event, sizeof(copy))))
		return next.epoll_ctl(epfd, op, fd, event);
	return hook_success_kept(watch_control(conn, epfd, op, fd, asked), saved_errno);
}

#define UNPACK(...) __VA_ARGS__

/*
 * The common case costs a load and a jump around the next function. A connection that
 * another thread begins while we wait is seen afterwards; only then does the
 * time-out count from its end.
 *
 * SIFTED_HOOK(name, (parameters), (arguments)) starts the definition of what follows then: @count is
 * what the wait has brought, or -1 if it is still to come.
 */
#define SIFTED_HOOK(name, params, args)                                                            \
	HOOK_SLOW int sifted_##name(int count, UNPACK params);                                     \
	HOOK(int, name, params)                                                                    \
	{                                                                                          \
		int count = -1;                                                                    \
                                                                                                   \
		if (conn_none_attentive()) {                                                       \
			count = next.name args;                                                    \
			if (count <= 0 || conn_none_attentive())                                   \
				return count;                                                      \
		}                                                                                  \
		return sifted_##name(count, UNPACK args);                                          \
	}                                                                                          \
	HOOK_SLOW int sifted_##name(int count, UNPACK params)

SIFTED_HOOK(epoll_wait, (int epfd, struct epoll_event *events, int max, int timeout_ms),
	    (epfd, events, max, timeout_ms))
{
	return epoll_pending((struct epoll_call){ .epfd = epfd, .events = events, .max = max,
				   .deadline = deadline_in_ms(timeout_ms) },
		    count);
}

SIFTED_HOOK(epoll_pwait, (int epfd, struct epoll_event *events, int max, int timeout_ms,
			  const sigset_t *mask),
	    (epfd, events, max, timeout_ms, mask))
{
	return epoll_pending((struct epoll_call){ .epfd = epfd, .events = events, .max = max,
				   .deadline = deadline_in_ms(timeout_ms), .mask = mask },
		    count);
}

SIFTED_HOOK(epoll_pwait2, (int epfd, struct epoll_event *events, int max,
			   const struct timespec *timeout, const sigset_t *mask),
	    (epfd, events, max, timeout, mask))
{
	struct timespec copy;

	if (timeout && (!usermem_read(&copy, timeout, sizeof(copy)) || !timeout_is_valid(&copy)))
		return next.epoll_pwait2(epfd, events, max, timeout, mask);
	return epoll_pending((struct epoll_call){ .epfd = epfd, .events = events, .max = max, .precise = true,
				   .deadline = deadline_in(timeout ? &copy : NULL), .mask = mask },
		    count);
}
