/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resolve_probe.c - resolve_converter() in an application that uses the resolver in its own way
 *
 *   resolve_probe CASE NAME [PORT [MAX [TIMEOUT_MS]]]
 *   resolve_probe list
 *
 * The cases (below) differ in the calling thread's use of the resolver before, or in an event
 * during the call. Prints a line for each address, or "none: REASON"; then "changed: WHAT" for
 * each difference in the thread afterwards, and lines of the case. Prints the time to standard
 * error. Ends with 0.
 */
#include "config.h"

#include "client/resolve.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <netdb.h>
#include <pthread.h>
#include <resolv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define ADDRESSES_MAX 64
#define MARK 4711 /* an errno and an h_errno that no other code sets */
#define OWN_SERVER "10.9.0.53" /* the name server that the application has chosen */

static const char *name;
static unsigned int port = 1234, timeout_ms = 5000;
static size_t max = 16;

static void die(const char *what)
{
	fprintf(stderr, "resolve_probe: %s\n", what);
	exit(2);
}

/* --- the state that may not change ----------------------------------------- */

struct thread_state {
	struct __res_state res;
	sigset_t signals;
	int cancel_state, error, h_error;
	size_t files;
};

static size_t open_files(void)
{
	DIR *directory = opendir("/proc/self/fd");
	size_t count = 0;

	while (directory && readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void state_take(struct thread_state *out)
{
	out->error = errno;
	out->h_error = h_errno;
	memset(&out->signals, 0, sizeof(out->signals));
	pthread_sigmask(SIG_BLOCK, NULL, &out->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &out->cancel_state);
	pthread_setcancelstate(out->cancel_state, NULL);
	memcpy(&out->res, &_res, sizeof(out->res));
	out->files = open_files();
}

static void state_compare(const struct thread_state *a, const struct thread_state *b)
{
	if (memcmp(&a->res, &b->res, sizeof(a->res)) != 0)
		puts("changed: _res");
	if (a->error != b->error)
		puts("changed: errno");
	if (a->h_error != b->h_error)
		puts("changed: h_errno");
	if (a->cancel_state != b->cancel_state)
		puts("changed: cancellation");
	if (memcmp(&a->signals, &b->signals, sizeof(a->signals)) != 0)
		puts("changed: signal mask");
	if (a->files != b->files)
		puts("changed: open files");
}

static void addresses_print(const union sockaddr_ip *list, size_t count, const char *reason)
{
	char text[SOCKADDR_STRLEN];

	for (size_t i = 0; i < count; i++)
		printf("address %s\n", sockaddr_ip_format(&list[i], text));
	if (!count)
		printf("none: %s\n", reason);
}

static void resolve(void)
{
	union sockaddr_ip list[ADDRESSES_MAX];
	struct thread_state before, after;
	struct timespec start, end;
	const char *reason = "";
	size_t count;

	errno = h_errno = MARK;
	state_take(&before);
	clock_gettime(CLOCK_MONOTONIC, &start);
	errno = h_errno = MARK;
	count = resolve_converter(name, (uint16_t)port, (int)timeout_ms, list, max, &reason);
	state_take(&after);
	clock_gettime(CLOCK_MONOTONIC, &end);
	before.error = before.h_error = MARK;
	addresses_print(list, count, reason);
	state_compare(&before, &after);
	fprintf(stderr, "%ld ms\n", (long)(end.tv_sec - start.tv_sec) * 1000 +
					    (end.tv_nsec - start.tv_nsec) / 1000000);
}

/* --- the cases ------------------------------------------------------------- */

/* res_init() has never been called. */
static void case_fresh(void)
{
	resolve();
}

static void case_initialised(void)
{
	res_init();
	resolve();
}

static void *resolve_in_thread(void *unused)
{
	case_initialised();
	return unused;
}

/* A thread has a resolver state of its own, apart from that of the process. */
static void case_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, resolve_in_thread, NULL) != 0)
		die("pthread_create");
	pthread_join(thread, NULL);
}

/* Memory that each call leaves behind would add up. */
static void case_often(void)
{
#ifdef HAVE_MALLINFO2
	size_t after_ten = 0;

	res_init();
	for (int i = 0; i < 200; i++) {
		union sockaddr_ip list[1];

		if (i == 10)
			after_ten = mallinfo2().uordblks;
		resolve_converter(name, (uint16_t)port, (int)timeout_ms, list, 1, NULL);
	}
	if (mallinfo2().uordblks != after_ten)
		printf("changed: %zu bytes in use instead of %zu\n", mallinfo2().uordblks,
		       after_ten);
#endif
}

#ifdef HAVE_RES_NINIT
/* Prints the answer of the application's own resolver: an address, or an error. */
static void ask_oneself(const char *wanted)
{
	unsigned char answer[4096];
	int len = res_query(wanted, ns_c_in, ns_t_a, answer, sizeof(answer));
	char text[INET_ADDRSTRLEN];

	/* the address is the last thing in the answer */
	if (len < 4)
		printf("own: h_errno %d\n", h_errno);
	else
		printf("own: %s\n", inet_ntop(AF_INET, answer + len - 4, text, sizeof(text)));
}

/* A name server of the application's own, over a connection that stays open, and odd options. */
static void customise(const char *wanted)
{
	res_init();
	_res.nscount = 1;
	_res.nsaddr_list[0].sin_family = AF_INET;
	_res.nsaddr_list[0].sin_port = htons(53);
	_res.nsaddr_list[0].sin_addr.s_addr = inet_addr(OWN_SERVER);
	_res.options |= RES_USEVC | RES_STAYOPEN;
	_res.options &= ~(unsigned long)RES_DNSRCH;
	_res.retrans = 3;
	_res.ndots = 7;
	ask_oneself(wanted);
	if (_res._vcsock < 0)
		die("the connection to the name server isn't open");
}

static void case_customised(void)
{
	customise(name);
	resolve();
	ask_oneself(name);
}

/* A customised application connects to a server: NAME is its address, PORT its port. */
static void case_connect(void)
{
	struct sockaddr_in server = { .sin_family = AF_INET,
				      .sin_addr.s_addr = inet_addr(name),
				      .sin_port = htons((uint16_t)port) };
	struct thread_state before, after;
	int fd, ret;

	customise("own.example");
	fd = socket(AF_INET, SOCK_STREAM, 0);
	state_take(&before);
	before.h_error = h_errno = MARK;
	ret = connect(fd, (struct sockaddr *)&server, sizeof(server));
	state_take(&after);
	before.error = after.error; /* connect() may set it as it likes */
	state_compare(&before, &after);
	printf("connect: %s\n", ret == 0 ? "0" : strerror(after.error));
	ask_oneself("own.example");
	close(fd);
}

/* resolv.conf, which is a file of the test's, changes after the application has read it. */
static void case_reload(void)
{
	FILE *file;

	res_init();
	_res.options |= RES_USEVC;
	file = fopen("/etc/resolv.conf", "w");
	if (!file)
		die("/etc/resolv.conf can't be written");
	fprintf(file, "nameserver " OWN_SERVER "\n");
	fclose(file);
	resolve();
	if (!(_res.options & RES_USEVC))
		puts("changed: options");
}
#endif

static sigjmp_buf escape;
static volatile sig_atomic_t is_over;

static void on_alarm(int number)
{
	(void)number;
	siglongjmp(escape, 1);
}

/* An old-fashioned time-out: the handler jumps out of a call that takes too long. */
static void case_alarm(void)
{
	struct itimerval soon = { .it_value.tv_usec = 100000 };
	struct thread_state before, after;

	signal(SIGALRM, on_alarm);
	state_take(&before);
	if (sigsetjmp(escape, 1) == 0) {
		union sockaddr_ip list[1];

		setitimer(ITIMER_REAL, &soon, NULL);
		resolve_converter(name, (uint16_t)port, (int)timeout_ms, list, 1, NULL);
		is_over = 1;
		pause();
	}
	state_take(&after);
	after.error = before.error;
	after.h_error = before.h_error;
	state_compare(&before, &after);
	printf("jumped, %s\n",
	       resolve_is_running() ? "with the resolver running" : "the resolver is free");
}

/* Held until pthread_cancel() has been called; pthread_mutex_lock() isn't a cancellation point. */
static pthread_mutex_t not_yet_cancelled = PTHREAD_MUTEX_INITIALIZER;

static void *resolve_and_be_cancelled(void *unused)
{
	/* static: AddressSanitizer keeps its marks around objects on a cancelled stack */
	static union sockaddr_ip list[1];

	pthread_mutex_lock(&not_yet_cancelled);
	pthread_mutex_unlock(&not_yet_cancelled);
	/* printing would be a cancellation point as well */
	resolve_converter(name, (uint16_t)port, (int)timeout_ms, list, 1, NULL);
	is_over = 1;
	pthread_testcancel();
	return unused;
}

static void case_cancelled(void)
{
	void *result = NULL;
	pthread_t thread;

	pthread_mutex_lock(&not_yet_cancelled);
	if (pthread_create(&thread, NULL, resolve_and_be_cancelled, NULL) != 0)
		die("pthread_create");
	pthread_cancel(thread);
	pthread_mutex_unlock(&not_yet_cancelled);
	pthread_join(thread, &result);
	printf("cancelled: %s\n",
	       result != PTHREAD_CANCELED ? "no" : is_over ? "afterwards" : "meanwhile");
}

/*
 * The application looks a name up, and a module of nsswitch.conf (nss_nested.c) calls
 * resolve_converter().
 */
static void case_nested(void)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	int error = getaddrinfo(name, NULL, &hints, &list);

	if (error)
		printf("application: %s\n", gai_strerror(error));
	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		char text[INET6_ADDRSTRLEN];

		getnameinfo(ai->ai_addr, ai->ai_addrlen, text, sizeof(text), NULL, 0,
			    NI_NUMERICHOST);
		printf("application: %s\n", text);
	}
	if (list)
		freeaddrinfo(list);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "fresh", case_fresh },	 { "initialised", case_initialised },
	{ "thread", case_thread },	 { "alarm", case_alarm },
	{ "cancelled", case_cancelled }, { "nested", case_nested },
	{ "often", case_often },
#ifdef HAVE_RES_NINIT
	{ "customised", case_customised }, { "reload", case_reload },
	{ "connect", case_connect },
#endif
};

/* Prints the cases for this C library: on musl an application can't change the resolver's settings. */
static void cases_list(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		puts(cases[i].name);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "list") == 0) {
		cases_list();
		return 0;
	}
	if (argc < 3)
		die("usage: resolve_probe CASE NAME [PORT [MAX [TIMEOUT_MS]]]");
	setvbuf(stdout, NULL, _IOLBF, 0);
	name = argv[2];
	port = argc > 3 ? (unsigned int)atoi(argv[3]) : port;
	max = argc > 4 ? (size_t)atoi(argv[4]) : max;
	timeout_ms = argc > 5 ? (unsigned int)atoi(argv[5]) : timeout_ms;
	if (max > ADDRESSES_MAX)
		die("MAX is too large");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[1]) == 0) {
			cases[i].run();
			return 0;
		}
	}
	die("no such case");
}
