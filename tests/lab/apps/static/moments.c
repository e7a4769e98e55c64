/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * moments.c - events while a connect() waits: moments ADDRESS PORT MOMENT
 *
 *	alarm          a signal whose handler lets calls return EINTR; then poll() waits for the socket
 *	again          the same, and connect() is called again
 *	restart        a signal every 100 ms, after whose handler calls continue (SA_RESTART)
 *	thread         as "alarm", but another thread sends the signal to this thread
 *	cancel         the thread that connects is cancelled
 *	timeout        SO_SNDTIMEO ends before the answer
 *	blocking       a connect() that doesn't block, and then one that does
 *	reopen FILE    another thread closes the socket, opens a file, which gets its number, and writes to it
 *	reader         another thread reads from the socket all the while
 *	exec           another thread executes a program, which inherits the socket and reads from it
 *	dups           the socket has 40 descriptors
 *	arguments      calls that the kernel refuses
 *	wait           nothing, for events from outside
 *
 * Prints a transcript, which must be the same with and without a supervisor. It calls bytes "foreign" that come before connect() has
 * returned, or that it hasn't sent to the echo server.
 */
#include "moments.h"

#include <sys/time.h>

static char **arguments;
static volatile bool connected;
static volatile sig_atomic_t handled;

static int begin(int fd)
{
	return connect(fd, (struct sockaddr *)&server, sizeof(server));
}

static void handle(int number)
{
	(void)number;
	handled++;
}

static void on_signal(int number, int flags)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = flags };

	sigaction(number, &action, NULL);
}

static void timer(int first_ms, int interval_ms)
{
	struct itimerval interval = { { 0, interval_ms * 1000 }, { 0, first_ms * 1000 } };

	setitimer(ITIMER_REAL, &interval, NULL);
}

static pid_t connecting;

static void *connect_in_thread(void *unused)
{
	(void)unused;
	connecting = (pid_t)syscall(SYS_gettid);
	if (begin(sock) < 0)
		printf("connect: %s\n", strerror(errno));
	connected = true;
	return NULL;
}

static void *signal_first(void *thread)
{
	await_connect(getpid());
	pthread_kill(*(pthread_t *)thread, SIGUSR1);
	return NULL;
}

/* Gives a file the socket's number, and writes to it after connect() has ended. */
static void *reopen(void *unused)
{
	int fd;

	(void)unused;
	await_connect(getpid());
	close(sock);
	fd = open(arguments[4], O_RDWR | O_CREAT | O_TRUNC, 0600);
	AWAIT(connected);
	printf("write: %s, to the same number: %d\n", said(write(fd, "data", 4)), fd == sock);
	return NULL;
}

/* Reads until @until is true, or for @ms. Bytes are an error. */
static void read_all_the_while(int fd, const volatile bool *until, double ms)
{
	const double end = now_ms() + ms;
	char bytes[256];
	ssize_t got;

	while (!*until && now_ms() < end) {
		got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (got > 0) {
			printf("foreign: %zd bytes, the first one is %02x\n", got, (unsigned char)*bytes);
			exit(1);
		}
	}
}

static void interrupted(const char *moment)
{
	pthread_t self = pthread_self(), other;
	const bool restart = strcmp(moment, "restart") == 0;
	int ret;

	on_signal(SIGALRM, restart ? SA_RESTART : 0);
	on_signal(SIGUSR1, 0);
	if (strcmp(moment, "thread") == 0)
		start(&other, signal_first, &self);
	else
		timer(restart ? 100 : 350, restart ? 100 : 0);
	ret = begin(sock);
	printf("connect: %s\n", said(ret));
	timer(0, 0);
	printf("signals: %s\n", !handled ? "none" : handled == 1 ? "one" : "several");
	if (strcmp(moment, "again") == 0)
		printf("connect again: %s\n", said(begin(sock)));
	talk(sock);
}

static void cancelled(void)
{
	pthread_t thread;
	double began;
	void *result;

	start(&thread, connect_in_thread, NULL);
	AWAIT(connecting);
	await_connect(connecting);
	began = now_ms();
	pthread_cancel(thread);
	pthread_join(thread, &result);
	printf("cancelled: %d, %s\n", result == PTHREAD_CANCELED, now_ms() - began < 2000 ? "soon" : "late");
}

static void timed_out(void)
{
	struct timeval timeout = { .tv_usec = 200000 };

	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	printf("connect: %s\n", said(begin(sock)));
	talk(sock);
}

static void twice(void)
{
	fcntl(sock, F_SETFL, O_NONBLOCK);
	begin(sock);
	fcntl(sock, F_SETFL, 0);
	if (begin(sock) < 0 && errno != EISCONN)
		printf("connect: %s\n", strerror(errno));
	talk(sock);
}

static void reopened(void)
{
	char bytes[8] = "";
	pthread_t thread;
	int file;

	start(&thread, reopen, NULL);
	printf("connect: %s\n", said(begin(sock)));
	connected = true;
	pthread_join(thread, NULL);
	file = open(arguments[4], O_RDONLY);
	printf("file: %zd bytes, %s\n", read(file, bytes, sizeof(bytes) - 1), bytes);
}

static void executed(void)
{
	static const bool never;
	pthread_t thread;
	char number[16];

	if (arguments[4]) {
		read_all_the_while((int)strtol(arguments[4], NULL, 10), &never, 1500);
		return;
	}
	start(&thread, connect_in_thread, NULL);
	AWAIT(connecting);
	await_connect(connecting);
	snprintf(number, sizeof(number), "%d", sock);
	execl(arguments[0], arguments[0], arguments[1], arguments[2], arguments[3], number, (char *)NULL);
}

static void read_meanwhile(void)
{
	pthread_t thread;

	start(&thread, connect_in_thread, NULL);
	read_all_the_while(sock, &connected, PATIENCE_MS);
	pthread_join(thread, NULL);
	talk(sock);
}

static void duplicated(void)
{
	int last = sock;

	for (int i = 0; i < 40; i++)
		last = dup(sock);
	printf("connect: %s\n", said(begin(sock)));
	talk(last);
}

static void refused_arguments(void)
{
	struct sockaddr_in6 other = { .sin6_family = AF_INET6, .sin6_port = server.sin_port };
	struct sockaddr_in odd = server;
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int six = socket(AF_INET6, SOCK_STREAM, 0), pipes[2];

	odd.sin_family = AF_UNIX;
	if (pipe(pipes) != 0)
		exit(2);
	printf("short: %s\n", said(connect(sock, (struct sockaddr *)&server, 8)));
	printf("empty: %s\n", said(connect(sock, (struct sockaddr *)&server, 0)));
	printf("negative: %s\n", said(connect(sock, (struct sockaddr *)&server, (socklen_t)-1)));
	printf("nowhere: %s\n", said(connect(sock, NULL, sizeof(server))));
	printf("IPv6 on IPv4: %s\n", said(connect(sock, (struct sockaddr *)&other, sizeof(other))));
	printf("IPv4 on IPv6: %s\n", said(connect(six, (struct sockaddr *)&server, sizeof(server))));
	printf("another family: %s\n", said(connect(sock, (struct sockaddr *)&odd, sizeof(odd))));
	printf("no descriptor: %s\n", said(connect(999, (struct sockaddr *)&server, sizeof(server))));
	printf("no socket: %s\n", said(connect(pipes[0], (struct sockaddr *)&server, sizeof(server))));
	printf("nobody: %s\n", said(connect(sock, &none, sizeof(none))));
	printf("data to nobody: %s\n", said(sendto(sock, TEXT, 5, MSG_FASTOPEN | MSG_NOSIGNAL, NULL, 0)));
	printf("data, short: %s\n", said(sendto(sock, TEXT, 5, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&server, 4)));
	printf("data, IPv6 on IPv4: %s\n", said(sendto(sock, TEXT, 5, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&other, sizeof(other))));
	printf("data, no family: %s\n", said(sendto(sock, TEXT, 5, MSG_FASTOPEN | MSG_NOSIGNAL, &none, sizeof(none))));
	printf("connect: %s\n", said(begin(sock)));
	printf("again: %s\n", said(begin(sock)));
	talk(sock);
}

int main(int argc, char *argv[])
{
	const char *moment = argc > 3 ? argv[3] : "wait";

	setvbuf(stdout, NULL, _IOLBF, 0);
	arguments = argv;
	server = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)strtol(argv[2], NULL, 10)) };
	inet_pton(AF_INET, argv[1], &server.sin_addr);
	sock = socket(AF_INET, SOCK_STREAM, 0);
	if (strcmp(moment, "cancel") == 0)
		cancelled();
	else if (strcmp(moment, "timeout") == 0)
		timed_out();
	else if (strcmp(moment, "blocking") == 0)
		twice();
	else if (strcmp(moment, "reopen") == 0)
		reopened();
	else if (strcmp(moment, "reader") == 0)
		read_meanwhile();
	else if (strcmp(moment, "exec") == 0)
		executed();
	else if (strcmp(moment, "dups") == 0)
		duplicated();
	else if (strcmp(moment, "arguments") == 0)
		refused_arguments();
	else if (strcmp(moment, "wait") == 0)
		printf("connect: %s\n", said(begin(sock)));
	else
		interrupted(moment);
	return 0;
}
