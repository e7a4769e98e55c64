/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.c - epoll registrations of sockets whose connection is pending
 *
 * The kernel would call a pending socket writable at the converter's SYN+ACK, before the server was reached. So we mask each registration
 * of such a socket: the kernel has the shim's events in place of the application's, which struct conn_watch keeps. A registration is
 *
 *   known     in conn.watches as epoll_ctl() has made it, and the same in the kernel (the socket isn't pending yet)
 *   masked    the kernel has the shim's events: watch_mask()
 *   shown     the kernel has the application's events again, but we still check events, since the response may be
 *             among the input: watch_show()
 *   failed    a one-shot registration of a connection that has failed: the kernel reports the end once, and watch_find()
 *             tells so: watch_fail()
 *   dropped   the application's alone: watch_restore(), or the descriptor was closed
 *
 * A registration is listed, so that watch_find() finds it, while it is masked, shown or failed. A conn has room for CONN_WATCHES_MAX
 * registrations. One that we can't note or mask, or have dropped, sets watches_lost, and we never replace such a socket by another one.
 *
 * epoll returns nothing but the application's own data, so this and the epoll instance identify the conn of an event. Buckets by hash of
 * the data count the listed registrations and name the last one. If that one doesn't match, we search all conns in PHASES_HANDLED. An
 * event of an established connection costs a look at an empty bucket.
 *
 * An instance may have several descriptors: tokio registers with a duplicate of the one that it waits on. kcmp(2) tells whether two are the
 * same.
 */
#include "config.h"

#include "shim/wait/watch.h"

#include "common/rawcall.h"
#include "shim/system/next.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <unistd.h>

#define BUCKETS 4096u /* a power of two */

static struct {
	_Atomic uint32_t count;
	_Atomic uint32_t last; /* index of a conn */
} buckets[BUCKETS];

/* Executes the statement behind it for each registration of @conn, as @watch. */
#define EACH_WATCH(conn, watch)                                                                    \
	for (__typeof__(&(conn)->watches[0]) watch = (conn)->watches; watch < &(conn)->watches[CONN_WATCHES_MAX]; watch++) \
		if (watch->epfd == -1)                                                             \
			;                                                                          \
		else

static unsigned int bucket_of(uint64_t data)
{
	uint64_t hash = data * 0x9e3779b97f4a7c15u; /* Fibonacci hashing */

	return (unsigned int)(hash >> 52) & (BUCKETS - 1);
}

static void bucket_add(const struct conn *conn, const struct conn_watch *watch)
{
	unsigned int bucket = bucket_of(watch->data);

	atomic_store(&buckets[bucket].last, conn->index);
	atomic_fetch_add(&buckets[bucket].count, 1);
}

/* Returns the registration of @fd in @epfd, or with @epfd -1 an unused place; NULL if there is none. */
static struct conn_watch *watch_on(struct conn *conn, int epfd, int fd)
{
	for (size_t i = 0; i < CONN_WATCHES_MAX; i++)
		if (conn->watches[i].epfd == epfd && (epfd == -1 || conn->watches[i].fd == fd))
			return &conn->watches[i];
	return NULL;
}

static enum watch_owner instance_compare(int epfd, int other)
{
	pid_t self;
	long order;

	if (epfd == other)
		return WATCH_OURS;
	self = getpid();
	order = RAWCALL(SYS_kcmp, self, self, KCMP_FILE, epfd, other);
	return order == 0 ? WATCH_OURS : order > 0 ? WATCH_NONE : WATCH_PERHAPS_OURS;
}

/* The kernel sets it together with EPOLLIN and applications don't use it, so in /proc it marks our masks. */
#define MASK_MARK EPOLLRDNORM

/*
 * Returns our events in place of @events. A one-shot registration stays one: otherwise several threads would get our event, and late ones
 * would take it for the application's. watch_arm() arms it again. A registration made past the hooks (@adopted) doesn't stay one-shot, as
 * it would lose the mark.
 */
static uint32_t masked_events(const struct conn *conn, uint32_t events, bool adopted)
{
	return EPOLLIN | MASK_MARK | (dial_wants_output(&conn->dial) ? EPOLLOUT : 0u) | (events & EPOLLWAKEUP) |
	       (adopted ? 0u : events & EPOLLONESHOT);
}

/* Are these the events of a masked registration? */
static bool is_mask(uint32_t events)
{
	return events & MASK_MARK;
}

/* Several threads may have the event of a failed connection at once: only one of them removes the registration from the count. */
static void watch_unlist(struct conn_watch *watch)
{
	if (atomic_exchange(&watch->listed, false))
		atomic_fetch_sub(&buckets[bucket_of(watch->data)].count, 1);
}

static void watch_drop(struct conn_watch *watch)
{
	watch_unlist(watch);
	watch->failed = false;
	watch->epfd = -1;
}

/* Leaves a registration to the application alone. We can't make it again on another socket. */
static void watch_leave(struct conn *conn, struct conn_watch *watch)
{
	conn->socket.watches_lost = true;
	watch_drop(watch);
}

/* Notes a registration with @event, masked or not. */
static void watch_note(struct conn *conn, struct conn_watch *watch, int epfd, int fd,
		       const struct epoll_event *event, bool masked, bool adopted)
{
	watch_drop(watch);
	watch->fd = fd;
	watch->events = event->events;
	watch->data = event->data.u64;
	watch->masked = masked;
	watch->adopted = adopted;
	watch->timed = false;
	watch->fired = false;
	watch->epfd = epfd;
	conn_mark_unseen(conn, false);
	watch->listed = masked || conn_is_confirmed(conn);
	if (watch->listed)
		bucket_add(conn, watch);
}

/* The events that the kernel allows in an exclusive registration (epoll_ctl(2)). */
#define EXCLUSIVE_EVENTS (EPOLLEXCLUSIVE | EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLET)

/*
 * Must the kernel answer this call as it stands? The kernel refuses to modify an exclusive registration. We mask one by events that aren't
 * exclusive, so that we can change them. So while it is masked, only we know that it is exclusive.
 */
static bool is_refused(int op, const struct conn_watch *watch, struct epoll_event *event)
{
	if (op == EPOLL_CTL_MOD && watch && (watch->events & EPOLLEXCLUSIVE))
		event->events |= EPOLLEXCLUSIVE;
	return (event->events & EPOLLEXCLUSIVE) && (op == EPOLL_CTL_MOD || (event->events & ~EXCLUSIVE_EVENTS));
}

/* Calls epoll_ctl() with the application's events, or with ours in their place. */
static int control(struct conn *conn, int epfd, int op, int fd, struct epoll_event *event,
		   bool masked, bool adopted)
{
	struct conn_watch *watch = watch_on(conn, epfd, fd);
	const bool fresh = !watch, unseen = conn->unseen;
	struct epoll_event ours;
	int ret;

	if (op == EPOLL_CTL_DEL || !event) {
		ret = next.epoll_ctl(epfd, op, fd, event);
		if (ret == 0 && watch) {
			deadline_timer_remove(conn, watch);
			watch_drop(watch);
		}
		return ret;
	}
	ours = *event;
	if (is_refused(op, watch, &ours))
		return next.epoll_ctl(epfd, op, fd, &ours);
	if (!watch)
		watch = watch_on(conn, -1, fd);
	if (!watch) { /* a conn has room for CONN_WATCHES_MAX of them */
		ret = next.epoll_ctl(epfd, op, fd, event);
		if (ret == 0)
			conn->socket.watches_lost = true;
		return ret;
	}
	if (masked)
		ours.events = masked_events(conn, event->events, adopted);
	/* Note a new one first: another thread may have an event of it at once. */
	if (fresh)
		watch_note(conn, watch, epfd, fd, event, masked, adopted);
	ret = next.epoll_ctl(epfd, op, fd, &ours);
	if (ret == 0 && !fresh)
		watch_note(conn, watch, epfd, fd, event, masked, adopted);
	if (ret != 0 && fresh) {
		watch_drop(watch);
		conn_mark_unseen(conn, unseen);
	}
	if (ret == 0 && masked)
		deadline_timer_add(conn, watch);
	return ret;
}

void watch_tell(struct conn *conn, int epfd, int fd)
{
	EACH_WATCH (conn, watch)
		if (watch->failed && watch->fd == fd && instance_compare(epfd, watch->epfd) == WATCH_OURS &&
		    atomic_exchange(&watch->failed, false))
			watch_leave(conn, watch);
}

int watch_control(struct conn *conn, int epfd, int op, int fd, struct epoll_event *event)
{
	struct conn_claim claim;
	int ret;

	/* Claim it, so that a thread which finishes the handshake now can't miss the registration. */
	if (conn_is_pending(conn) && conn_claim(conn, PHASES_PENDING, &claim)) {
		ret = control(conn, epfd, op, fd, event, true, false);
		conn_release(conn, claim.from, &claim);
		/* libuv tests whether a descriptor can be registered, and then registers it by io_uring */
		if (op == EPOLL_CTL_DEL && ret == 0 && !watch_any(conn))
			conn_mark_unseen(conn, true);
		return ret;
	}
	if (phase_in(conn_phase_unclaimed(conn), PHASE(DEFERRED) | PHASES_CONFIRMED) &&
	    conn_claim(conn, PHASE(DEFERRED) | PHASES_CONFIRMED, &claim)) {
		ret = control(conn, epfd, op, fd, event, false, false);
		conn_release(conn, claim.from, &claim);
		return ret;
	}
	if (conn_phase(conn) == CONN_IDLE)
		return control(conn, epfd, op, fd, event, false, false);
	watch_tell(conn, epfd, fd); /* from now on the kernel reports the events that the application asks for now */
	ret = next.epoll_ctl(epfd, op, fd, event);
	if (ret == 0 && op == EPOLL_CTL_ADD)
		conn->socket.watches_lost = true;
	return ret;
}

/* Notes and masks a registration with @event that was made past the hooks. Returns whether @conn was pending and it is masked now. */
static bool watch_adopt(struct conn *conn, int epfd, int fd, struct epoll_event *event)
{
	struct conn_claim claim;
	struct conn_watch *watch;

	if (!conn_claim_of(conn, fd, PHASES_PENDING, &claim))
		return false;
	/* Another thread has just made it by epoll_ctl(): /proc shows our mask. */
	if (!conn->unseen || is_mask(event->events)) {
		conn_release(conn, claim.from, &claim);
		return false;
	}
	control(conn, epfd, EPOLL_CTL_MOD, fd, event, true, true);
	watch = watch_on(conn, epfd, fd);
	if (!watch)
		conn->socket.watches_lost = true; /* it would be lost if the socket were replaced */
	conn_release(conn, claim.from, &claim);
	return watch;
}

struct mask_search {
	int fd;
	bool masked;
};

static bool mask_visit(int epfd, const struct registration *found, void *arg)
{
	struct mask_search *search = arg;

	(void)epfd;
	search->masked |= found->fd == search->fd && is_mask(found->event.events);
	return !search->masked;
}

/* Does the registration of @fd in @epfd still have our mask? No if the application has modified it. */
static bool is_still_masked(int epfd, int fd)
{
	ERRNO_KEPT;
	struct mask_search search = { .fd = fd };

	registrations_visit(epfd, mask_visit, &search);
	return search.masked;
}

static void registration_apply(int epfd, const struct conn_watch *watch, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = watch->data };

	/* The application has modified it since, past the hooks. */
	if (watch->adopted && watch->masked && !is_still_masked(epfd, watch->fd))
		return;
	/* Fails if the application has closed the epoll descriptor: nothing to do then. An exclusive one can't be modified. */
	if (!(watch->events & EPOLLEXCLUSIVE))
		next.epoll_ctl(epfd, EPOLL_CTL_MOD, watch->fd, &event);
	else if (next.epoll_ctl(epfd, EPOLL_CTL_DEL, watch->fd, &event) == 0)
		next.epoll_ctl(epfd, EPOLL_CTL_ADD, watch->fd, &event);
}

void watch_mask(struct conn *conn)
{
	EACH_WATCH (conn, watch) {
		registration_apply(watch->epfd, watch, masked_events(conn, watch->events, watch->adopted));
		if (!watch->listed)
			bucket_add(conn, watch);
		watch->failed = false;
		watch->masked = watch->listed = true;
		deadline_timer_add(conn, watch);
	}
}

void watch_show(struct conn *conn)
{
	deadline_timer_close(conn);
	EACH_WATCH (conn, watch) {
		if (watch->masked)
			registration_apply(watch->epfd, watch, watch->events);
		watch->masked = false;
	}
}

void watch_unmask(struct conn *conn)
{
	watch_show(conn);
	EACH_WATCH (conn, watch)
		watch_unlist(watch);
}

/* Restores the application's events of the registrations. @but_failed: only of those that aren't failed */
static void restore(struct conn *conn, bool but_failed)
{
	deadline_timer_close(conn);
	EACH_WATCH (conn, watch) {
		int epfd = watch->epfd;

		if (but_failed && watch->failed)
			continue;
		/*
		 * Take it off the table first: a thread that still finds it there may then drop its event, since the kernel reports the
		 * socket anew when the registration is modified.
		 */
		watch_leave(conn, watch);
		if (atomic_exchange(&watch->fired, false) || watch->masked)
			registration_apply(epfd, watch, watch->events);
	}
}

void watch_restore(struct conn *conn)
{
	restore(conn, false);
}

void watch_fail(struct conn *conn)
{
	EACH_WATCH (conn, watch) {
		if (!watch->masked || !(watch->events & EPOLLONESHOT))
			continue;
		watch->masked = false;
		watch->failed = true;
		/* The kernel adds EPOLLERR and EPOLLHUP by itself. */
		registration_apply(watch->epfd, watch, EPOLLONESHOT | (watch->events & EPOLLWAKEUP));
	}
	restore(conn, true);
}

void watch_rearm(struct conn *conn)
{
	EACH_WATCH (conn, watch)
		registration_apply(watch->epfd, watch, watch->events);
}

/* An unmasked one-shot registration may have fired already, and would fire again if we made it anew. */
bool watch_can_suspend(const struct conn *conn)
{
	EACH_WATCH (conn, watch)
		if ((watch->events & EPOLLONESHOT) && !watch->masked)
			return false;
	return !conn->socket.watches_lost;
}

/* If an epoll descriptor was closed, its number may be another instance's by now, and there is nothing to remove. */
void watch_suspend(struct conn *conn)
{
	struct epoll_event unused = { 0 };

	conn->socket.suspended = true;
	EACH_WATCH (conn, watch)
		if (next.epoll_ctl(watch->epfd, EPOLL_CTL_DEL, watch->fd, &unused) != 0)
			watch_drop(watch);
}

void watch_resume(struct conn *conn)
{
	if (!conn->socket.suspended)
		return;
	conn->socket.suspended = false;
	EACH_WATCH (conn, watch) {
		struct epoll_event event = { .events = watch->events, .data.u64 = watch->data };

		if (watch->masked)
			event.events = masked_events(conn, watch->events, watch->adopted);
		if (next.epoll_ctl(watch->epfd, EPOLL_CTL_ADD, watch->fd, &event) != 0)
			watch_drop(watch);
	}
}

static void registrations_leave(struct conn *conn, int fd)
{
	EACH_WATCH (conn, watch) {
		int epfd = watch->epfd;

		if (watch->fd != fd)
			continue;
		deadline_timer_remove(conn, watch);
		watch_leave(conn, watch); /* before the registration is modified, as in restore() */
		if (watch->masked && !conn->follows)
			registration_apply(epfd, watch, watch->events);
	}
}

/*
 * Handles the close of one of several descriptors of the socket. The kernel keeps the registrations made with it, but nobody can change
 * them any more: we give them back to the application, and forget them. A follower gives none back: the process that it follows has the
 * same registrations, and still changes them.
 */
static void watch_abandon(struct conn *conn, int fd)
{
	struct conn_claim claim;

	if (!conn_in(conn, PHASES_UNFINISHED) || !conn_claim(conn, PHASES_UNFINISHED, &claim)) {
		registrations_leave(conn, fd);
		return;
	}
	registrations_leave(conn, fd);
	conn_release(conn, claim.from, &claim);
	conn_mark_unseen(conn, !watch_any(conn));
}

void watch_forget(struct conn *conn)
{
	deadline_timer_close(conn);
	for (size_t i = 0; i < CONN_WATCHES_MAX; i++)
		watch_drop(&conn->watches[i]);
}

void watch_init(void)
{
	static const struct conn_observer observer = { .closing = watch_abandon, .gone = watch_forget };

	conn_observe(&observer);
}

struct watch_search {
	int epfd;
	uint64_t data;
	struct watch_found found;
};

/* Looks for the registration among those of @conn. Returns whether it certainly belongs to the event. */
static bool search_in(struct conn *conn, struct watch_search *search)
{
	EACH_WATCH (conn, watch) {
		enum watch_owner owner;

		if (!watch->listed || watch->data != search->data)
			continue;
		owner = instance_compare(search->epfd, watch->epfd);
		if (owner > search->found.owner)
			search->found =
				(struct watch_found){ owner, conn, watch->fd, watch->events, watch, watch->failed };
	}
	return search->found.owner == WATCH_OURS;
}

struct watch_found watch_find(int epfd, epoll_data_t data)
{
	struct watch_search search = { .epfd = epfd, .data = data.u64 };
	unsigned int bucket = bucket_of(data.u64);
	struct conn *last;

	if (atomic_load(&buckets[bucket].count) == 0)
		return search.found;
	last = conn_by_index(atomic_load(&buckets[bucket].last));
	if (last && conn_in(last, PHASES_HANDLED) && search_in(last, &search))
		return search.found;
	EACH_CONN (conn, PHASES_HANDLED)
		if (search_in(conn, &search))
			break;
	return search.found;
}

static void arm_one_shot(struct conn *conn, uint64_t data)
{
	struct conn_claim claim;

	EACH_WATCH (conn, watch) {
		if (watch->data != data || !(watch->events & EPOLLONESHOT) || watch->adopted ||
		    !conn_claim(conn, PHASES_PENDING, &claim))
			continue;
		if (watch->epfd != -1 && watch->masked)
			registration_apply(watch->epfd, watch, masked_events(conn, watch->events, false));
		conn_release(conn, claim.from, &claim);
	}
}

void watch_arm(struct conn *conn, epoll_data_t data)
{
	arm_one_shot(conn, data.u64);
	if (atomic_load(&buckets[bucket_of(data.u64)].count) > 1)
		EACH_CONN (other, PHASES_UNFINISHED)
			arm_one_shot(other, data.u64);
}

void watch_fired(struct conn_watch *watch)
{
	watch->fired = true;
}

bool watch_arm_fired(const struct watch_found *found)
{
	struct conn_watch *watch = found->watch;
	struct conn_claim claim;

	if (!watch->fired)
		return true;
	if (!conn_claim_of(found->conn, found->fd, PHASES_CONFIRMED, &claim))
		return !atomic_exchange(&watch->fired, false);
	if (atomic_exchange(&watch->fired, false) && watch->epfd != -1)
		registration_apply(watch->epfd, watch, watch->events);
	conn_release(found->conn, claim.from, &claim);
	return true;
}

bool watch_may_be_in(const struct conn *conn, int epfd)
{
	bool any = false;

	EACH_WATCH (conn, watch) {
		any = true;
		if (epfd != -1 && instance_compare(epfd, watch->epfd) != WATCH_NONE)
			return true;
	}
	return !any;
}

bool watch_any(const struct conn *conn)
{
	EACH_WATCH (conn, watch)
		return true;
	return false;
}

/* --- registrations that were made past the hooks, from /proc --- */

/*
 * libuv since version 1.50, and with it Node, registers sockets through an io_uring, and other programs make system calls of their own, so
 * that the hooks never see epoll_ctl(). So before the application waits in an epoll instance, we look in /proc for each pending socket
 * without a known registration. If it is there, we adopt its registration: from then on we mask and restore it. The application may modify
 * it later, past the hooks as well; so before we restore an adopted one, we read /proc again to check that our mask is still there.
 *
 * An instance may be large, and a socket may be in none (its thread uses poll()), so we look for each socket LOOKS_MAX times at most in the
 * thread that has begun its connection, and as often in all others. The others have a count of their own, since they may wait again and
 * again before that thread registers the socket: each of Node's workers has its own event loop. There is nothing to clean up: an adopted
 * registration belongs to the conn like all others.
 */

#define LOOKS_MAX 8

static bool adopt_visit(int epfd, const struct registration *found, void *arg)
{
	struct conn *conn = conn_of(found->fd);
	struct epoll_event event = found->event;

	(void)arg;
	if (conn && conn->unseen && watch_adopt(conn, epfd, found->fd, &event))
		return atomic_load(&conn_unseen) > 0;
	return true;
}

void watch_adopt_unseen(int epfd)
{
	ERRNO_KEPT;
	const uintptr_t self = (uintptr_t)pthread_self();
	bool wanted = false;

	EACH_CONN (conn, PHASES_PENDING) {
		_Atomic uint8_t *looks = &conn->looks[conn->unseen_by == self];

		if (conn->unseen && *looks < LOOKS_MAX) {
			(*looks)++;
			wanted = true;
		}
	}
	if (wanted)
		registrations_visit(epfd, adopt_visit, NULL);
}
