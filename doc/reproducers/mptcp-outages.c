/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mptcp-outages.c - what does a transfer over Multipath TCP notice when paths fail and come back?
 *
 *   cc -Wall -O2 -o mptcp-outages mptcp-outages.c
 *   sudo ./mptcp-outages [return|timer|close|number|limit|window|join]...
 *
 * Two hosts, each in a network namespace, with three paths between them: pairs of TUN devices, and processes that pass packets from one
 * to the other with a delay and a rate, or swallow them. One host sends all it can over one connection, the other notes when bytes
 * arrive. Needs ip and nsenter, and no other program.
 *
 *   return   the first path is silent for 3 s, five times, and the second one works: how long does the stream stand still afterwards?
 *   timer    both are silent for 10 s; the second is back, and its subflow's time-out has had an answer; then a third one joins
 *            over an idle path: how long until the stream goes on?
 *   close    a subflow that has only sent a SYN is closed: how long does the stream stand still, how much arrives twice?
 *   number   the endpoint that the connection began from is deleted and added: does its new subflow live?
 *   limit    an endpoint is replaced by another one, and the peer's limit leaves no room for both: does the new one get a subflow?
 *   window   the first path loses a burst, and what is sent again of it, for half a second; the second one brings it as well, since a
 *            subflow is closed; the receiver reads nothing meanwhile: is it sent more than its window allows?
 *   join     the other host sends; both are silent for 10 s; the second is back, both subflows are closed, and a new one joins over it: how
 *            long until the stream goes on?
 *
 * A line for each case, and what it was to be. Exits with 0 if all are so, with 1 if one isn't, with 2 if it can't be tried here.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

#define PORT "4321"
#define PATHS 3
#define MTU 1500
#define QUEUE 200      /* packets that wait to be sent; what is more is lost */
#define UNDER_WAY 1024 /* packets that a path holds, sent ones included: at least rate * delay + QUEUE */
#define PIECE 65536
#define BUSY_MS 3000 /* until both networks are full */
#define PATIENCE_MS 20000
#define OUTAGES 5
#define BURST 14000 /* bytes */
#define BURSTS 5    /* until it is seen */
#define WINDOW 1000000

/* On a busy machine the first handshake may be late, and the connection falls back to TCP: then the case is begun anew. */
#define NO_SUBFLOWS 3
#define BEGINS_MAX 3

/* What the receiver tells the rest; times in milliseconds of CLOCK_MONOTONIC. */
struct shared {
	volatile int64_t since, last, longest;
	volatile bool silent[PATHS + 1];   /* the path swallows what it is given */
	volatile bool loses[PATHS + 1];    /* the path loses a burst of the sender's, and whatever is sent again of it */
	volatile bool waits;               /* the receiver reads nothing */
	volatile long answers[PATHS + 1];  /* packets of the receiver's that have passed */
};

/* Paths are numbered from 1, as their addresses are: 10.PATH.0.1 sends, 10.PATH.0.2 receives. */
static const struct {
	int delay_us, rate_mbit;
} paths[] = { { 0, 0 }, { 10000, 50 }, { 25000, 30 }, { 1000, 50 } };

static struct shared *shared;
static pid_t peer, sender;
static int receive_buffer; /* bytes; 0: as many as the kernel likes */
static bool reverse;       /* who has accepted the connection sends */

static void need(bool works, const char *what)
{
	if (works)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void pass(int ms)
{
	usleep((useconds_t)ms * 1000);
}

/* Runs a command. */
static void sh(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (system(command) != 0) {
		fprintf(stderr, "this has failed: %s\n", command);
		exit(2);
	}
}

/* Runs a command on the receiver's host. */
#define sh_peer(format, ...) sh("nsenter -t %d -n " format, (int)peer, ##__VA_ARGS__)

/* A counter of MPTcpExt in the namespace of a process; 0 if the kernel has none of that name. */
static long counter(pid_t pid, const char *name)
{
	char path[64], names[8192], values[8192];
	char *name_at, *value_at, *names_left = names, *values_left = values;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/net/netstat", (int)pid);
	file = fopen(path, "r");
	need(file, path);
	while (fgets(names, sizeof(names), file) && fgets(values, sizeof(values), file))
		if (strncmp(names, "MPTcpExt:", 9) == 0)
			break;
	fclose(file);
	while ((name_at = strsep(&names_left, " \n")) && (value_at = strsep(&values_left, " \n")))
		if (strcmp(name_at, name) == 0)
			return atol(value_at);
	return 0;
}

/* How many established connections of TCP there are from 10.PATH.0.1, which are subflows. */
static int subflows(int path)
{
	char line[1024], from[32];
	unsigned int local, state;
	int count = 0;
	FILE *file = fopen("/proc/net/tcp", "r");

	need(file, "/proc/net/tcp");
	snprintf(from, sizeof(from), "10.%d.0.1", path);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " %*d: %x:%*x %*x:%*x %x", &local, &state) == 2)
			count += local == inet_addr(from) && state == 1;
	fclose(file);
	return count;
}

/* Waits until there are so many; returns whether that was so in time. */
static bool wait_subflows(int path, int count, int ms)
{
	int64_t end = now_ms() + ms;

	while (subflows(path) != count && now_ms() < end)
		pass(10);
	return subflows(path) == count;
}

/* ----- a path ----- */

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

struct packet {
	int64_t sent, due; /* when the last bit is on the wire, and when it arrives */
	ssize_t len;
	char data[MTU];
};

/* Is it one of the burst that the path loses? */
static bool is_lost(const struct packet *packet, int path)
{
	static bool has_begun;
	static uint32_t first;
	size_t ip_header = (size_t)(packet->data[0] & 0xf) * 4;
	uint32_t number;

	if (!shared->loses[path])
		has_begun = false;
	if (!shared->loses[path] || packet->len < MTU / 2)
		return false;
	memcpy(&number, packet->data + ip_header + 4, sizeof(number));
	if (!has_begun)
		first = ntohl(number);
	has_begun = true;
	return ntohl(number) - first < BURST;
}

/* Passes packets one way, until it is killed. */
static void carry(int from, int to, int path, bool answers)
{
	static struct packet packets[UNDER_WAY];
	size_t first = 0, count = 0, waiting = 0;
	int64_t sent = 0;

	for (;;) {
		struct pollfd ready = { .fd = from, .events = POLLIN };
		int64_t now = now_us(), wait = count ? packets[first].due - now : 1000000;
		struct timespec timeout = { .tv_sec = wait / 1000000, .tv_nsec = wait > 0 ? wait % 1000000 * 1000 : 0 };
		struct packet *next = &packets[(first + count) % UNDER_WAY];

		if (wait > 0 && ppoll(&ready, 1, &timeout, NULL) == 1) {
			next->len = read(from, next->data, MTU);
			now = now_us();
			for (waiting = 0; waiting < count && packets[(first + count - 1 - waiting) % UNDER_WAY].sent > now;)
				waiting++;
			if (next->len <= 0 || shared->silent[path] || waiting >= QUEUE || count == UNDER_WAY - 1 ||
			    (!answers && is_lost(next, path)))
				continue;
			sent = (sent > now ? sent : now) + next->len * 8 / paths[path].rate_mbit;
			next->sent = sent;
			next->due = sent + paths[path].delay_us;
			count++;
		}
		for (; count && packets[first].due <= now_us(); count--, first = (first + 1) % UNDER_WAY) {
			if (write(to, packets[first].data, (size_t)packets[first].len) > 0)
				shared->answers[path] += answers;
		}
	}
}

static int open_tun(char side, int path)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR);

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%c%d", side, path);
	need(fd >= 0 && ioctl(fd, TUNSETIFF, &request) == 0, "/dev/net/tun");
	return fd;
}

static void start_path(int path)
{
	int near = open_tun('a', path), far = open_tun('b', path);

	for (int answers = 0; answers <= 1; answers++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		carry(answers ? far : near, answers ? near : far, path, answers);
	}
}

/* ----- the hosts ----- */

static void receive(int sock)
{
	static char piece[PIECE];
	ssize_t len;

	while ((len = read(sock, piece, sizeof(piece))) > 0) {
		int64_t now, from;

		while (shared->waits)
			pass(1);
		now = now_ms();
		from = shared->last > shared->since ? shared->last : shared->since;
		if (shared->since && now - from > shared->longest)
			shared->longest = now - from;
		shared->last = now;
	}
	_exit(0);
}

static void send_all(int sock)
{
	static char piece[PIECE];

	while (write(sock, piece, sizeof(piece)) > 0)
		;
	_exit(0);
}

static void transfer(int sock, bool sends)
{
	(sends ? send_all : receive)(sock);
}

static struct sockaddr_in address(void)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(atoi(PORT)), .sin_addr.s_addr = inet_addr("10.9.0.1") };
}

/* The receiver's process: in a namespace of its own, and listening once its addresses are there. */
static pid_t start_peer(int ready[2], int go[2])
{
	struct sockaddr_in own = address();
	pid_t pid = fork();
	char byte;
	int listener;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	need(unshare(CLONE_NEWNET) == 0 && write(ready[1], "", 1) == 1 && read(go[0], &byte, 1) == 1, "a namespace");
	listener = socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP);
	need(listener >= 0, "IPPROTO_MPTCP");
	if (receive_buffer)
		need(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer)) == 0, "SO_RCVBUF");
	need(bind(listener, (struct sockaddr *)&own, sizeof(own)) == 0 && listen(listener, 1) == 0, "listen");
	need(write(ready[1], "", 1) == 1, "pipe");
	transfer(accept(listener, NULL, NULL), reverse);
	return 0;
}

static void connect_hosts(void)
{
	sh("ip link set lo up; echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter");
	sh_peer("ip link set lo up");
	sh_peer("ip addr add 10.9.0.1/32 dev lo");
	for (int i = 1; i <= PATHS; i++) {
		start_path(i);
		sh("ip link set b%d netns %d", i, (int)peer);
		sh("ip addr add 10.%d.0.1/24 dev a%d && ip link set a%d up", i, i, i);
		sh_peer("ip addr add 10.%d.0.2/24 dev b%d", i, i);
		sh_peer("ip link set b%d up", i);
		sh("ip route add 10.9.0.1 via 10.%d.0.2 dev a%d metric %d", i, i, i);
	}
}

static void start_sender(void)
{
	struct sockaddr_in to = address();
	int sock;

	sender = fork();
	if (sender)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sock = socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP);
	need(connect(sock, (struct sockaddr *)&to, sizeof(to)) == 0, "connect");
	transfer(sock, !reverse);
}

/* Hosts and paths, and a connection over the first one, with endpoints of the first two if @second. Called in a process for each case. */
static void begin(bool second)
{
	int ready[2], go[2];
	char byte;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(shared != MAP_FAILED && pipe(ready) == 0 && pipe(go) == 0, "pipe");
	peer = start_peer(ready, go);
	need(unshare(CLONE_NEWNET) == 0 && read(ready[0], &byte, 1) == 1, "a namespace (run it as root)");
	connect_hosts();
	sh("ip mptcp limits set subflows 8");
	sh("ip mptcp endpoint add 10.1.0.1 id 1 dev a1 subflow");
	if (second)
		sh("ip mptcp endpoint add 10.2.0.1 id 2 dev a2 subflow");
	need(write(go[1], "", 1) == 1 && read(ready[0], &byte, 1) == 1, "the receiver");
	start_sender();
	if (!wait_subflows(1, 1, PATIENCE_MS) || (second && !wait_subflows(2, 1, PATIENCE_MS)))
		exit(NO_SUBFLOWS);
	pass(BUSY_MS);
}

/* From now on the longest time without a byte is noted. */
static void watch(void)
{
	shared->longest = 0;
	shared->since = now_ms();
}

/* The longest time since watch(), what has not ended yet included; waits until bytes arrive. */
static double longest(int ms)
{
	int64_t end = now_ms() + PATIENCE_MS;

	pass(ms);
	while (shared->last < shared->since && now_ms() < end)
		pass(10);
	return (shared->last < shared->since ? PATIENCE_MS : shared->longest) / 1000.0;
}

/* ----- the cases: each prints a line, and returns whether it is as it should be ----- */

static bool try_return(void)
{
	double still, worst = 0;

	begin(true);
	printf("return: a silent path is back, the other one having worked all the time: the stream stands still for");
	for (int i = 0; i < OUTAGES; i++) {
		shared->silent[1] = true;
		pass(3000);
		shared->silent[1] = false;
		watch();
		still = longest(6000);
		printf(" %.2f", still);
		worst = still > worst ? still : worst;
	}
	printf(" s (expected: below 0.3)\n");
	return worst < 0.3;
}

static bool try_timer(void)
{
	long answers;
	double still;

	begin(true);
	shared->silent[1] = true;
	shared->silent[2] = true;
	pass(10000);
	/* the first subflow is closed, as a path manager does; then all that is left hangs on the second one */
	sh("ip mptcp endpoint delete id 1");
	shared->silent[2] = false;
	/* only its own time-out has anything sent over the second one */
	answers = shared->answers[2];
	for (int64_t end = now_ms() + PATIENCE_MS; shared->answers[2] == answers && now_ms() < end;)
		pass(5);
	sh("ip mptcp endpoint add 10.3.0.1 id 3 dev a3 subflow");
	if (!wait_subflows(3, 1, PATIENCE_MS)) {
		printf("timer: no third subflow\n");
		return false;
	}
	watch();
	still = longest(6000);
	printf("timer: with a fresh subflow over an idle path the stream stands still for %.2f s (expected: below 0.3)\n", still);
	return still < 0.3;
}

static bool try_close(void)
{
	long twice;
	double still, before;

	begin(false);
	shared->silent[2] = true;
	watch();
	before = longest(2000);
	sh("ip mptcp endpoint add 10.2.0.1 id 2 dev a2 subflow");
	pass(500);
	twice = counter(peer, "DuplicateData");
	watch();
	sh("ip mptcp endpoint delete id 2");
	still = longest(3000);
	twice = counter(peer, "DuplicateData") - twice;
	printf("close: a subflow that has only sent a SYN is closed: the stream stands still for %.2f s (%.2f before), and %ld segments "
	       "arrive twice (expected: 0)\n", still, before, twice);
	return twice == 0;
}

static bool try_number(void)
{
	long joins;
	bool lives;

	begin(true);
	joins = counter(peer, "MPJoinAckRx");
	sh("printf 'mptcp endpoint delete id 1\\nmptcp endpoint add 10.1.0.1 id 1 dev a1 subflow\\n' | ip -batch -");
	pass(3000);
	joins = counter(peer, "MPJoinAckRx") - joins;
	lives = subflows(1) == 1;
	printf("number: %ld subflow was accepted from the address whose endpoint was deleted and added, and it %s (expected: 1, and it lives)\n",
	       joins, lives ? "lives" : "was closed by the peer, upon the RM_ADDR that was sent before");
	return lives;
}

static bool try_limit(void)
{
	long refused;
	bool there;

	begin(true);
	/* one besides the one that the connection began with */
	sh_peer("ip mptcp limits set subflows 1");
	sh("printf 'mptcp endpoint delete id 2\\nmptcp endpoint add 10.3.0.1 id 3 dev a3 subflow\\n' | ip -batch -");
	there = wait_subflows(3, 1, 5000);
	refused = counter(peer, "MPJoinRejected");
	printf("limit: an endpoint is replaced: refused %ld, %s after 5 s, though the limit leaves room for it (expected: there)\n", refused,
	       there ? "there" : "not there");
	return there;
}

static bool try_window(void)
{
	long dropped = 0;
	double still = 0;

	receive_buffer = WINDOW;
	begin(true);
	shared->silent[3] = true;
	for (int i = 0; i < BURSTS && !dropped; i++) {
		sh("ip mptcp endpoint add 10.3.0.1 id 3 dev a3 subflow");
		pass(300);
		dropped = counter(peer, "NoDSSInWindow");
		shared->waits = shared->loses[1] = true;
		/* until what comes behind the burst has told the sender of it */
		pass(60);
		/* whereupon all that isn't acknowledged is sent over the second path, too: see "close" */
		sh("ip mptcp endpoint delete id 3");
		pass(500);
		shared->waits = shared->loses[1] = false;
		watch();
		still = longest(5000);
		dropped = counter(peer, "NoDSSInWindow") - dropped;
	}
	printf("window: while a subflow makes good for a loss %ld segments are dropped, since they are beyond the receiver's window "
	       "(expected: 0); afterwards the stream stands still for %.2f s\n",
	       dropped, still);
	return dropped == 0;
}

static bool try_join(void)
{
	double still;

	reverse = true;
	begin(true);
	shared->silent[1] = shared->silent[2] = true;
	pass(10000);
	shared->silent[2] = false;
	/* both subflows are closed, as a path manager does, the first one before the other; the peer hears of it over the second path */
	sh("ip mptcp endpoint delete id 1");
	pass(250);
	sh("printf 'mptcp endpoint delete id 2\\nmptcp endpoint add 10.2.0.1 id 2 dev a2 subflow\\n' | ip -batch -");
	if (!wait_subflows(2, 1, PATIENCE_MS)) {
		printf("join: no new subflow\n");
		return false;
	}
	watch();
	still = longest(3000);
	printf("join: with a new subflow, the only one, the stream stands still for %.2f s (expected: below 0.3)\n", still);
	return still < 0.3;
}

static const struct {
	const char *name;
	bool (*run)(void);
} cases[] = { { "return", try_return }, { "timer", try_timer }, { "close", try_close },
	      { "number", try_number }, { "limit", try_limit }, { "window", try_window }, { "join", try_join } };

static bool is_asked(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc == 1;
}

/* Tries a case in a process of its own. Returns 0 if all is as expected, 1 if it isn't, 2 if it can't be tried, or NO_SUBFLOWS. */
static int run(size_t number)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		bool right = cases[number].run();

		fflush(stdout);
		_exit(!right);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

int main(int argc, char **argv)
{
	int worst = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status = NO_SUBFLOWS;

		if (!is_asked(cases[i].name, argc, argv))
			continue;
		for (int begins = 0; status == NO_SUBFLOWS && begins < BEGINS_MAX; begins++)
			status = run(i);
		if (status == NO_SUBFLOWS) {
			fprintf(stderr, "%s: no subflows: does this kernel have MPTCP?\n", cases[i].name);
			status = 2;
		}
		worst = status > worst ? status : worst;
	}
	return worst;
}
