/* SPDX-License-Identifier: BSD-3-Clause */
/* test_conn.c - descriptors whose numbers belong to other sockets by now, without our having noticed; deadlines */
#include "config.h"

#include "shim/socket/conn.h"
#include "client/client_log.h"
#include "shim/system/next.h"

#include "run.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 300 /* more than one chunk of the pool */

struct next_functions next = { .getsockopt = getsockopt };

static int maps_left = -1; /* how many calls of next_map() succeed; -1: all */

void *next_map(size_t bytes)
{
	if (!maps_left)
		return NULL;
	if (maps_left > 0)
		maps_left--;
	return calloc(1, bytes);
}

void next_unmap(void *memory, size_t bytes)
{
	(void)bytes;
	free(memory);
}

static char logged[128];

bool log_is_on(void)
{
	return true;
}

void log_line(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(logged, sizeof(logged), format, args);
	va_end(args);
}

static int abandoned = -1, forgotten;

static void descriptor_closing(struct conn *conn, int fd)
{
	(void)conn;
	abandoned = fd;
}

static void socket_gone(struct conn *conn)
{
	(void)conn;
	forgotten++;
}

static void begin(void)
{
	static const struct conn_observer observer = { .closing = descriptor_closing, .gone = socket_gone };

	conn_init();
	conn_observe(&observer);
}

static int tcp_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

START_TEST(its_own)
{
	int fd = tcp_socket(), other = tcp_socket();
	struct conn *conn = conn_add(fd, 0);

	ck_assert_ptr_nonnull(conn);
	ck_assert_ptr_eq(conn_of(fd), conn);
	ck_assert_ptr_eq(conn_of_phase(fd, PHASE(IDLE) | PHASES_UNFINISHED), conn);
	ck_assert_ptr_eq(conn_named(kernel_cookie(fd)), conn);
	ck_assert_ptr_null(conn_of(other));
	ck_assert_ptr_null(conn_named(kernel_cookie(other)));
	ck_assert_ptr_null(conn_named(0));
}
END_TEST

/* Takes an IDLE conn to @phase. Returns false if it isn't IDLE. */
static bool bring(struct conn *conn, enum conn_phase phase)
{
	struct conn_claim claim;

	if (phase_may_follow(CONN_IDLE, phase))
		return conn_move(conn, CONN_IDLE, phase);
	if (!conn_claim(conn, PHASE(IDLE), &claim))
		return false;
	if (!phase_may_follow(CONN_STARTING, phase)) {
		conn_release(conn, CONN_SYN_SENT, &claim);
		if (!conn_claim(conn, PHASE(SYN_SENT), &claim))
			return false;
	}
	conn_release(conn, phase, &claim);
	return true;
}

/* As after a close() by a system call of the program's own, whose number the next socket gets: idle (0), pending (1). */
START_TEST(a_number_that_is_anothers_now)
{
	int fd = tcp_socket(), other = tcp_socket();
	struct conn *conn = conn_add(fd, 0);

	ck_assert_ptr_nonnull(conn);
	ck_assert_ptr_eq(conn_of_phase(fd, PHASE(IDLE)), conn);
	if (_i)
		ck_assert(bring(conn, CONN_ASKED));
	ck_assert_ptr_eq(conn_handled(fd), _i ? conn : NULL);
	ck_assert_int_eq(dup2(other, fd), fd);
	ck_assert_ptr_null(conn_of_phase(fd, PHASE(IDLE)));
	ck_assert_ptr_null(conn_of(fd));
	ck_assert_ptr_null(conn_of_phase(fd, PHASE(IDLE) | PHASES_UNFINISHED));
	ck_assert_ptr_null(conn_handled(fd));
	/* nor when it isn't a socket, or nothing at all */
	ck_assert_int_eq(dup2(STDIN_FILENO, fd), fd);
	ck_assert_ptr_null(conn_of(fd));
	close(fd);
	ck_assert_ptr_null(conn_of(fd));
}
END_TEST

/* Two descriptors of one socket: it is there until the second has been closed. */
START_TEST(descriptors_come_and_go)
{
	int fd = tcp_socket(), copy = dup(fd), other = tcp_socket();
	struct conn *conn = conn_add(fd, 0), *next_one;

	ck_assert(!conn_unverified(copy));
	conn_dup(fd, copy);
	ck_assert_ptr_eq(conn_of(copy), conn);
	ck_assert_int_eq(conn_next_fd(0), fd);
	ck_assert_int_eq(conn_next_fd(fd + 1), copy);
	ck_assert_int_eq(conn_next_fd(copy + 1), -1);
	conn_forget(fd);
	ck_assert_int_eq(abandoned, fd);
	ck_assert_int_eq(forgotten, 0);
	ck_assert(!conn_unverified(fd));
	ck_assert_ptr_eq(conn_of(copy), conn);
	ck_assert_int_eq(conn->fd, copy);
	ck_assert_int_eq(conn_phase(conn), CONN_IDLE);
	abandoned = -1;
	/* what is overwritten by a descriptor of something else is closed */
	conn_dup(other, copy);
	ck_assert_int_eq(abandoned, -1);
	ck_assert_int_eq(forgotten, 1);
	ck_assert_int_eq(conn_phase(conn), CONN_FREE);
	ck_assert_ptr_null(conn_named(kernel_cookie(fd)));
	/* and its place is used again, without what was there */
	conn->dial.tried = 7;
	next_one = conn_add(other, 0);
	ck_assert_ptr_eq(next_one, conn);
	ck_assert_uint_eq(next_one->dial.tried, 0);
}
END_TEST

/* Of three descriptors one was closed past the hooks: the conn is found by the third one when the first is closed. */
START_TEST(a_copy_closed_past_the_hooks)
{
	int fd = tcp_socket(), closed = dup(fd), copy = dup(fd);
	struct conn *conn = conn_add(fd, 0);

	conn_dup(fd, closed);
	conn_dup(fd, copy);
	close(closed);
	conn_forget(fd);
	ck_assert_int_eq(conn->fd, copy);
	ck_assert_ptr_eq(conn_of(conn->fd), conn);
}
END_TEST

START_TEST(many)
{
	struct conn *conns[MANY];
	int fds[MANY];

	for (int i = 0; i < MANY; i++) {
		fds[i] = tcp_socket();
		conns[i] = conn_add(fds[i], 0);
		ck_assert_ptr_nonnull(conns[i]);
	}
	for (int i = 0; i < MANY; i++) {
		ck_assert_ptr_eq(conn_of(fds[i]), conns[i]);
		ck_assert_ptr_eq(conn_by_index(conns[i]->index), conns[i]);
		ck_assert_ptr_eq(conn_named(kernel_cookie(fds[i])), conns[i]);
	}
	conn_forget_range((unsigned int)fds[1], (unsigned int)fds[MANY - 2]);
	for (int i = 0; i < MANY; i++)
		ck_assert_ptr_eq(conn_of(fds[i]), i == 0 || i == MANY - 1 ? conns[i] : NULL);
	ck_assert_int_eq(forgotten, MANY - 2);
	conn_forget_range(0, -1u);
	ck_assert_int_eq(conn_next_fd(0), -1);
}
END_TEST

/* What the hooks look at first: how many conns want more than a jump to the C library. */
START_TEST(conns_that_hooks_handle_are_counted)
{
	static const struct {
		enum conn_phase phase;
		bool handled, settled;
	} phases[] = {
		{ CONN_DEFERRED, true, false },	     { CONN_RESOLVING, true, false }, { CONN_SYN_SENT, true, false },
		{ CONN_ASKED, true, false },	     { CONN_BYPASS, true, false },    { CONN_EARLY_DIRECT, true, false },
		{ CONN_FAILED, true, true },	     { CONN_DISSOLVED, true, true },  { CONN_DIRECT, false, true },
		{ CONN_DONE, false, true },
	};

	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		int fd = tcp_socket();
		struct conn *conn = conn_add(fd, 0);
		enum conn_phase phase = phases[i].phase;

		ck_assert(conn_none_handled());
		ck_assert(bring(conn, phase));
		ck_assert(!bring(conn, CONN_ASKED));
		ck_assert(!conn_move(conn, CONN_IDLE, CONN_DIRECT));
		ck_assert_int_eq(conn_none_handled(), !phases[i].handled);
		ck_assert_uint_eq(conn_deferred, phase == CONN_DEFERRED);
		ck_assert_ptr_eq(conn_handled(fd), phases[i].handled ? conn : NULL);
		ck_assert_ptr_eq(conn_of_phase(fd, PHASE(IDLE) | PHASES_UNFINISHED), phases[i].settled ? NULL : conn);
		ck_assert_ptr_null(conn_of_phase(fd, PHASE(IDLE)));
		conn_forget(fd);
		ck_assert(conn_none_handled());
		ck_assert_uint_eq(conn_deferred, 0);
	}
}
END_TEST

START_TEST(one_takes_the_next_step)
{
	int fd = tcp_socket(), other = tcp_socket();
	struct conn *conn = conn_add(fd, 0);
	struct conn_claim claim;

	ck_assert(!conn_claim(conn, PHASES_PENDING, &claim));
	ck_assert_int_eq(conn_phase(conn), CONN_IDLE);
	/* nobody sees an idle socket whose SYN may have gone already */
	ck_assert(conn_claim(conn, PHASE(IDLE), &claim));
	ck_assert_int_eq(claim.from, CONN_IDLE);
	ck_assert_int_eq(conn_phase(conn), CONN_STARTING);
	ck_assert(conn_is_pending(conn) && (conn_word(conn) & CONN_CLAIMED) && !conn_none_handled());
	ck_assert_ptr_null(conn_of_phase(fd, PHASE(IDLE)));
	ck_assert(!conn_move(conn, CONN_STARTING, CONN_IDLE));
	conn_release(conn, CONN_SYN_SENT, &claim);
	ck_assert(!(conn_word(conn) & CONN_CLAIMED));
	/* a claim leaves the phase, and what was noted */
	conn_note(conn, CONN_TOLD_WRITABLE);
	ck_assert(conn_claim(conn, PHASES_PENDING, &claim));
	ck_assert_int_eq(conn_phase(conn), CONN_SYN_SENT);
	ck_assert((conn_word(conn) & CONN_CLAIMED) && conn_has(conn, CONN_TOLD_WRITABLE) && !conn_has(conn, CONN_WROTE));
	conn_note(conn, CONN_WROTE);
	conn_release(conn, CONN_CONFIRMED, &claim);
	ck_assert(conn_has(conn, CONN_TOLD_WRITABLE) && conn_has(conn, CONN_WROTE));
	ck_assert(!conn_claim_of(conn, other, PHASES_CONFIRMED, &claim));
	ck_assert_int_eq(conn_phase(conn), CONN_CONFIRMED);
	ck_assert(!(conn_word(conn) & CONN_CLAIMED));
	ck_assert(conn_claim_of(conn, fd, PHASES_CONFIRMED, &claim));
	ck_assert_int_eq(claim.from, CONN_CONFIRMED);
	conn_release(conn, CONN_DONE, &claim);
	ck_assert(conn_none_handled());
	/* and in IDLE all of it is forgotten */
	ck_assert(conn_move(conn, CONN_DONE, CONN_IDLE));
	ck_assert(!conn_has(conn, CONN_TOLD_WRITABLE) && !conn_has(conn, CONN_WROTE));
}
END_TEST

/* What was dissolved tells its error once, and can be connected again. */
START_TEST(an_error_is_told_once)
{
	struct conn *conn = conn_add(tcp_socket(), 0);

	ck_assert(conn_move(conn, CONN_IDLE, CONN_FAILED));
	conn->error = ECONNREFUSED;
	ck_assert_int_eq(conn_take_error(conn), ECONNREFUSED);
	ck_assert_int_eq(conn_take_error(conn), 0);
	ck_assert_int_eq(conn_phase(conn), CONN_FAILED);
	conn->error = ECONNRESET;
	ck_assert(conn_move(conn, CONN_FAILED, CONN_DISSOLVED));
	ck_assert_int_eq(conn_take_error(conn), ECONNRESET);
	ck_assert_int_eq(conn_phase(conn), CONN_IDLE);
	ck_assert(conn_none_handled());
}
END_TEST

/* Each phase has a name of its own and a way out, and a connection that is over begins anew only by way of IDLE. */
START_TEST(phases)
{
	for (int from = 0; from < CONN_PHASE_COUNT; from++) {
		bool way_out = false;

		ck_assert_str_ne(phase_name(from), "none");
		for (int to = 0; to < CONN_PHASE_COUNT; to++) {
			ck_assert_int_eq(from == to, !strcmp(phase_name(from), phase_name(to)));
			way_out |= phase_may_follow(from, to);
			ck_assert(!phase_in(from, PHASE(DONE) | PHASE(DIRECT) | PHASES_FAILED) ||
				  !phase_in(to, PHASES_UNFINISHED) || !phase_may_follow(from, to));
			ck_assert(to != CONN_STARTING || phase_may_follow(from, to) == (from == CONN_IDLE));
			ck_assert(to != CONN_CONFIRMED || phase_may_follow(from, to) == (from == CONN_SYN_SENT));
		}
		ck_assert(way_out);
		ck_assert(!phase_may_follow(from, CONN_PHASE_COUNT));
		ck_assert(!phase_may_follow(CONN_PHASE_COUNT, from));
	}
	ck_assert_str_eq(phase_name(CONN_PHASE_COUNT), "none");
}
END_TEST

/* A change that isn't in the table is logged where it doesn't abort. */
START_TEST(a_forbidden_change)
{
	struct conn *conn = conn_add(tcp_socket(), 0);
	struct conn_claim claim;

	ck_assert(bring(conn, CONN_BYPASS));
	ck_assert(conn_claim(conn, PHASE(BYPASS), &claim));
	conn_release(conn, CONN_CONFIRMED, &claim);
#if defined(WITH_ASSERTIONS) || defined(WITH_SANITIZERS)
	ck_abort_msg("not aborted");
#endif
	ck_assert_str_eq(logged, "a fault of libconvert: phase CONFIRMED after BYPASS; please report it");
	raise(SIGABRT);
}
END_TEST

static int looks;

static void look(void)
{
	looks++;
}

/* In a child. Returns 1 if a check fails, else 0. */
static int check_child(struct conn *idle, struct conn *claimed, int fd)
{
	/* as after vfork(): the tables are the parent's */
	if (conn_is_owner() || conn_add(fd, 0))
		return 1;
	conn_forget(fd);
	conn_dup(fd, fd + 1);
	if (conn_of(fd) != idle || conn_unverified(fd + 1))
		return 1;
	conn_linger(look); /* for the parent's probes, whose descriptors stay open there */
	if (conn_handled(fd) || looks)
		return 1;
	conn_repair_in_child();
	if (!conn_is_owner() || !conn_is_pending(claimed) || (conn_word(claimed) & CONN_CLAIMED) || conn_handled_count != 1 || conn_is_private(idle))
		return 1;
	conn_forget(fd);
	return conn_unverified(fd) != NULL;
}

START_TEST(in_a_child)
{
	int fd, other = tcp_socket(), status;
	struct conn *idle, *claimed = conn_add(other, 0);
	struct conn_claim claim;
	pid_t pid;

	fd = tcp_socket();
	idle = conn_add(fd, conn_generation());
	ck_assert(conn_is_private(idle));
	ck_assert(conn_claim(claimed, PHASE(IDLE), &claim));
	conn_note_fork();
	pid = fork();
	if (pid == 0)
		_exit(check_child(idle, claimed, fd));
	conn_release(claimed, CONN_IDLE, &claim);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert(!conn_is_private(idle));
	ck_assert_ptr_eq(conn_of(fd), idle);
	conn_linger(look);
	ck_assert(!conn_handled(fd) && looks == 1);
}
END_TEST

/* In a child. Returns 1 if its standard input is closed, else 0. */
static int check_input(void)
{
	conn_repair_in_child();
	return fcntl(STDIN_FILENO, F_GETFD) < 0;
}

/* A conn that another thread is making when the process forks, or that has got no memory, has no timer that the child could close. */
START_TEST(a_conn_without_contents_in_a_child)
{
	int other = tcp_socket(), status;
	struct conn *claimed;
	struct conn_claim claim;
	pid_t pid;

	if (fcntl(STDIN_FILENO, F_GETFD) < 0)
		ck_assert_int_eq(open("/dev/null", O_RDONLY), STDIN_FILENO);
	maps_left = 1;
	ck_assert_ptr_null(conn_add(other, 0));
	maps_left = -1;
	claimed = conn_add(other, 0);
	ck_assert_ptr_nonnull(claimed);
	ck_assert(conn_claim(claimed, PHASE(IDLE), &claim));
	pid = fork();
	if (pid == 0)
		_exit(check_input());
	conn_release(claimed, CONN_IDLE, &claim);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* The kernel doesn't say which socket it is, as where a filter of system calls forbids that: it is none of ours. */
START_TEST(a_socket_without_a_cookie)
{
	ck_assert_ptr_null(conn_add(STDIN_FILENO, 0));
	ck_assert(!conn_unverified(STDIN_FILENO));
	ck_assert_ptr_null(conn_of(STDIN_FILENO));
}
END_TEST

/* Times at which no rounding shows. */
#define AT(i) ((int64_t)(i) << 20)

/* A busy machine runs the loop late, so all deadlines here are over. The conns keep those that are later than the last look. */
START_TEST(deadlines_behind_the_last_look_are_kept)
{
	struct conn *first = conn_add(tcp_socket(), 0), *second = conn_add(tcp_socket(), 0), *settled = conn_add(tcp_socket(), 0);

	ck_assert(bring(first, CONN_ASKED) && bring(second, CONN_SYN_SENT) && bring(settled, CONN_DONE));
	ck_assert_int_eq(conn_first_deadline(), 0);
	conn_set_deadline(second, AT(2));
	conn_set_deadline(first, AT(1));
	conn_set_deadline(settled, AT(3));
	ck_assert_int_eq(conn_first_deadline(), AT(1));
	conn_renew_deadlines(AT(1) - 1);
	ck_assert_int_eq(conn_first_deadline(), AT(1));
	conn_renew_deadlines(AT(1));
	ck_assert_int_eq(conn_first_deadline(), AT(2));
	/* the look has set another one, which is over before the deadlines are determined anew */
	conn_set_deadline(second, AT(4));
	conn_renew_deadlines(AT(2));
	ck_assert_int_eq(conn_first_deadline(), AT(4));
	conn_renew_deadlines(AT(4));
	ck_assert_int_eq(conn_first_deadline(), 0);
}
END_TEST

static atomic_bool over;

static void *renew(void *arg)
{
	(void)arg;
	while (!atomic_load(&over))
		conn_renew_deadlines(0);
	return NULL;
}

#define RENEWALS 200000

/* A thread sets a deadline while another one determines the first deadline anew. The new deadline still counts. */
START_TEST(a_deadline_is_not_lost_to_another_thread)
{
	struct conn *conn = conn_add(tcp_socket(), 0), *other = conn_add(tcp_socket(), 0);
	pthread_t thread;

	ck_assert(bring(conn, CONN_ASKED) && bring(other, CONN_ASKED));
	ck_assert_int_eq(pthread_create(&thread, NULL, renew, NULL), 0);
	for (int i = 1; i < RENEWALS; i++) {
		struct conn *each = i % 2 ? conn : other;
		int64_t first;

		conn_set_deadline(each, AT(RENEWALS + (i % 7 ? -i : i)));
		first = conn_first_deadline();
		ck_assert(first && first <= atomic_load(&each->deadline));
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conn");
	TCase *tcase = tcase_create("conn");

	tcase_add_checked_fixture(tcase, begin, NULL);
	tcase_add_test(tcase, its_own);
	tcase_add_loop_test(tcase, a_number_that_is_anothers_now, 0, 2);
	tcase_add_test(tcase, descriptors_come_and_go);
	tcase_add_test(tcase, a_copy_closed_past_the_hooks);
	tcase_add_test(tcase, many);
	tcase_add_test(tcase, a_socket_without_a_cookie);
	tcase_add_test(tcase, conns_that_hooks_handle_are_counted);
	tcase_add_test(tcase, one_takes_the_next_step);
	tcase_add_test(tcase, an_error_is_told_once);
	tcase_add_test(tcase, phases);
	tcase_add_test_raise_signal(tcase, a_forbidden_change, SIGABRT);
	tcase_add_test(tcase, in_a_child);
	tcase_add_test(tcase, a_conn_without_contents_in_a_child);
	tcase_add_test(tcase, deadlines_behind_the_last_look_are_kept);
	tcase_add_test(tcase, a_deadline_is_not_lost_to_another_thread);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
