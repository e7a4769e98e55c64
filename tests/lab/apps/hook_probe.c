/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hook_probe.c - uses connections past the hooks, or at bad moments
 *
 *   hook_probe CASE ADDRESS PORT
 *
 * CASE is one of the names in the table at the end. Most of the transcripts must be the same with the shim and without it.
 */
#include "config.h"

#include "say.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static struct sockaddr_in server = { .sin_family = AF_INET };

static int tcp(int flags)
{
	int fd = socket(AF_INET, SOCK_STREAM | flags, 0);

	must(fd, "socket");
	return fd;
}

static int connected(void)
{
	int fd = tcp(SOCK_CLOEXEC);

	must(connect(fd, (struct sockaddr *)&server, sizeof(server)), "connect");
	return fd;
}

static void say_line(FILE *stream)
{
	char line[256];

	say("line %s", fgets(line, sizeof(line), stream) ? line : "none\n");
}

/* --- calls within the C library, which no hook sees --- */

static void stdio(void)
{
	FILE *stream = fdopen(connected(), "r+");

	say_line(stream);
	fputs("helo\n", stream);
	fflush(stream);
	say_line(stream);
	SAY(fclose(stream));
}

/* An application that speaks first, and does all of it by stdio. */
static void stdio_speaks_first(void)
{
	FILE *stream = fdopen(connected(), "r+");

	fputs("hello\n", stream);
	fflush(stream);
	say_line(stream);
	SAY(fclose(stream));
}

static void dprintf_speaks_first(void)
{
	char answer[16] = "";
	int fd = connected();

	SAY(dprintf(fd, "hello\n"));
	SAY(recv(fd, answer, 6, MSG_WAITALL));
	say("answer %s", answer);
	SAY(close(fd));
}

/* --- ways to leave a connection without losing bytes --- */

static void fclose_at_once(void)
{
	FILE *stream = fdopen(connected(), "w");

	fputs("hello", stream);
	SAY(fclose(stream));
}

static void close_at_once(void)
{
	int fd = connected();

	SAY(write(fd, "hello", 5));
	SAY(close(fd));
}

static void exit_at_once(void)
{
	SAY(write(connected(), "hello", 5));
	fflush(stdout);
	_exit(0);
}

static void exec_at_once(void)
{
	SAY(write(connected(), "hello", 5));
	fflush(stdout);
	execl("/bin/true", "true", NULL);
}

/* --- on little stack --- */

static int go(int fd)
{
	return connect(fd, (struct sockaddr *)&server, sizeof(server));
}

static int wait_by_select(int fd)
{
	fd_set out;

	FD_ZERO(&out);
	FD_SET(fd, &out);
	return select(fd + 1, NULL, &out, NULL, NULL);
}

static int wait_by_poll(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLOUT };

	return poll(&poller, 1, -1);
}

static int wait_by_epoll(int fd)
{
	struct epoll_event event = { .events = EPOLLOUT };
	int epfd = epoll_create1(0), ret;

	if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) != 0)
		return -1;
	ret = epoll_wait(epfd, &event, 1, -1);
	close(epfd);
	return ret;
}

static int wait_by_write(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0 ? 1 : -1;
}

static int (*const waits[])(int fd) = { wait_by_select, wait_by_poll, wait_by_epoll, wait_by_write };

/* Returns how many bytes came back. */
static int converse(int (*wait)(int fd))
{
	int fd = socket(AF_INET, SOCK_STREAM | (wait ? SOCK_NONBLOCK : 0), 0), got = 0;
	char answer[5];

	if (go(fd) != 0 && errno != EINPROGRESS)
		return -1;
	errno = 0; /* no call below may change it */
	if ((!wait || wait(fd) == 1) && write(fd, "hello", 5) == 5) {
		fcntl(fd, F_SETFL, 0);
		got = (int)recv(fd, answer, 5, MSG_WAITALL);
	}
	close(fd);
	return got;
}

/* Starts a program while it has a connection; returns its status. */
static int spawn_true(void)
{
	static char name[] = "true", preload[] = "LD_PRELOAD=libconvert.so";
	static char *const argv[] = { name, NULL }, *const envp[] = { preload, NULL };
	int fd = socket(AF_INET, SOCK_STREAM, 0), status = -1;
	pid_t pid;

	if (go(fd) == 0 && posix_spawn(&pid, "/bin/true", NULL, NULL, argv, envp) == 0)
		waitpid(pid, &status, 0);
	close(fd);
	return status;
}

static void *in_thread(void *arg)
{
	int *results = arg;

	results[0] = converse(NULL);
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		results[i + 1] = converse(waits[i]);
	results[5] = spawn_true();
	return NULL;
}

static void small_stacks(void)
{
	int results[6] = { 0 };
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	must(-pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)), "stack");
	must(-pthread_create(&thread, &attributes, in_thread, results), "thread");
	pthread_join(thread, NULL);
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		say("result %zu is %d", i, results[i]);
}

static int handled;

static void handler(int number)
{
	(void)number;
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		handled += converse(waits[i]);
}

/* musl has only the constant. */
static size_t recommended_stack(void)
{
#ifdef _SC_SIGSTKSZ
	return (size_t)sysconf(_SC_SIGSTKSZ);
#else
	return SIGSTKSZ;
#endif
}

/* A handler on a stack of the size that is recommended, with nothing below it. */
static void signal_stack(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = recommended_stack();
	char *memory = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = memory + page, .ss_size = size };

	must(mprotect(memory, page, PROT_NONE), "mprotect");
	must(sigaltstack(&stack, NULL), "sigaltstack");
	must(sigaction(SIGUSR1, &action, NULL), "sigaction");
	SAY(raise(SIGUSR1));
	say("%d bytes came back", handled);
}

/* --- standard descriptors --- */

static char *const *arguments;

/* Starts this program anew in another case, with the standard error as it is. */
static void run_again(const char *name)
{
	fflush(stdout);
	execl("/proc/self/exe", "hook_probe", name, arguments[2], arguments[3], NULL);
	must(-1, "exec");
}

static void say_conversation(void)
{
	SAY(converse(NULL));
	SAY(fcntl(dup(STDIN_FILENO), F_GETFD)); /* the next free descriptor */
	SAY(dup(STDIN_FILENO));                 /* its number shows whether a descriptor was left open */
}

/* The number of the standard error belongs to a file of the application, which the log must not change. */
static void stderr_is_another(void)
{
	struct stat file;

	close(STDERR_FILENO);
	must(memfd_create("data", 0), "memfd_create");
	say_conversation();
	must(fstat(STDERR_FILENO, &file), "fstat");
	say("%d bytes in the file", (int)file.st_size);
}

static void stderr_is_closed(void)
{
	close(STDERR_FILENO);
	run_again("conversation");
}

/* The standard error is a pipe without a reader: a writer gets SIGPIPE. */
static void stderr_is_broken(void)
{
	int ends[2];

	must(pipe(ends), "pipe");
	dup2(ends[1], STDERR_FILENO);
	close(ends[0]);
	close(ends[1]);
	run_again("conversation");
}

/* The standard error is a full pipe: a writer waits for ever. */
static void stderr_is_full(void)
{
	static const char page[4096];
	int ends[2], flags;

	must(pipe(ends), "pipe");
	flags = fcntl(ends[1], F_GETFL);
	fcntl(ends[1], F_SETFL, flags | O_NONBLOCK);
	while (write(ends[1], page, sizeof(page)) > 0)
		;
	fcntl(ends[1], F_SETFL, flags);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	run_again("conversation");
}

/* --- calls that don't return --- */

#define JUMPS 400
#define JUMPS_NS 1500000 /* about as long as a handshake takes where this is tested */

static sigjmp_buf start;

static void jump(int number)
{
	(void)number;
	siglongjmp(start, 1);
}

/* A handler leaves each call at some moment; the next calls must not find half of its work. */
static void jumps(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	volatile int fd, i, left = 0, dup_before = dup(STDIN_FILENO);
	timer_t timer;

	close(dup_before);
	signal(SIGUSR1, jump);
	must(timer_create(CLOCK_MONOTONIC, &event, &timer), "timer");
	for (i = 0; i < JUMPS; i++) {
		struct itimerspec soon = { .it_value.tv_nsec = 1 + JUMPS_NS / JUMPS * i };
		const struct itimerspec never = { .it_value = { 0, 0 } };

		fd = tcp(i % 2 ? SOCK_NONBLOCK : 0);
		if (sigsetjmp(start, 1)) {
			left++;
		} else {
			timer_settime(timer, 0, &soon, NULL);
			go(fd);
			if (i % 2)
				waits[i / 2 % 2](fd);
			write(fd, "x", 1);
			timer_settime(timer, 0, &never, NULL);
		}
		close(fd);
	}
	fd = dup(STDIN_FILENO);
	say("some were left: %d, descriptors too: %d", left > 0, fd - dup_before);
	signal(SIGUSR1, SIG_IGN);
	SAY(converse(NULL));
}

/* --- threads that end --- */

static void *cancelled_in_connect(void *arg)
{
	pthread_cancel(pthread_self());
	go(*(int *)arg);
	return NULL;
}

/* Ends a thread in the first connect() of the process; a second connect() must find all that it needs. */
static void cancelled_first(void)
{
	int fd = tcp(SOCK_CLOEXEC);
	pthread_t thread;
	void *result;

	must(-pthread_create(&thread, NULL, cancelled_in_connect, &fd), "thread");
	pthread_join(thread, &result);
	SAY(result == PTHREAD_CANCELED);
	close(fd);
	say_conversation();
}

/* --- signals that nobody handles --- */

#define SIGNALS_SENT 200
#define SIGNAL_SECONDS 5

/* Sends its parent the signals whose numbers it reads. */
static int signal_sender(void)
{
	unsigned char number;
	int ends[2];
	pid_t child;

	must(pipe(ends), "pipe");
	child = fork();
	must(child, "fork");
	if (child == 0) {
		close(ends[1]);
		while (read(ends[0], &number, 1) == 1)
			kill(getppid(), number);
		_exit(0);
	}
	close(ends[0]);
	return ends[1];
}

static bool is_kept(int sender, unsigned char number, int (*look)(int fd, int timeout_ms), int fd)
{
	static const struct timespec at_once;
	time_t end = time(NULL) + SIGNAL_SECONDS;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	must((int)write(sender, &number, 1), "write");
	do {
		look(fd, 0);
		if (sigtimedwait(&set, NULL, &at_once) == number)
			return true;
	} while (time(NULL) < end);
	return false;
}

static int look_by_poll(int fd, int timeout_ms)
{
	struct pollfd poller = { .fd = fd, .events = POLLOUT };

	return poll(&poller, 1, timeout_ms);
}

static int look_by_epoll(int fd, int timeout_ms)
{
	static int epfd = -1;
	struct epoll_event event = { .events = EPOLLOUT };

	if (epfd < 0) {
		epfd = epoll_create1(EPOLL_CLOEXEC);
		must(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
	}
	return epoll_wait(epfd, &event, 1, timeout_ms);
}

/* The kernel keeps blocked signals even if they would be ignored, for signalfd(2), sigwaitinfo(2) and the like. */
static void blocked_signals(void)
{
	static const unsigned char numbers[] = { SIGURG, SIGUSR1 }; /* ignored by default, and on demand */
	int sender = signal_sender(), fd = tcp(SOCK_CLOEXEC | SOCK_NONBLOCK), kept = 0;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers); i++)
		sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGUSR1, SIG_IGN);
	SAY(connect(fd, (struct sockaddr *)&server, sizeof(server)) < 0 && errno == EINPROGRESS);
	while (kept < SIGNALS_SENT && is_kept(sender, numbers[kept % 2], look_by_epoll, fd))
		kept++;
	SAY(kept);
	while (kept > 0 && is_kept(sender, numbers[kept % 2], look_by_poll, fd))
		kept--;
	SAY(kept);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "stdio", stdio },
	{ "stdio-first", stdio_speaks_first },
	{ "dprintf-first", dprintf_speaks_first },
	{ "fclose", fclose_at_once },
	{ "close", close_at_once },
	{ "exit", exit_at_once },
	{ "exec", exec_at_once },
	{ "small-stacks", small_stacks },
	{ "signal-stack", signal_stack },
	{ "jumps", jumps },
	{ "conversation", say_conversation },
	{ "stderr-another", stderr_is_another },
	{ "stderr-closed", stderr_is_closed },
	{ "stderr-broken", stderr_is_broken },
	{ "stderr-full", stderr_is_full },
	{ "cancelled-first", cancelled_first },
	{ "blocked-signals", blocked_signals },
};

int main(int argc, char **argv)
{
	if (argc != 4 || inet_pton(AF_INET, argv[2], &server.sin_addr) != 1)
		return 2;
	arguments = argv;
	server.sin_port = htons((uint16_t)atoi(argv[3]));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[1]) != 0)
			continue;
		scene(argv[1]);
		cases[i].run();
		return 0;
	}
	return 2;
}
