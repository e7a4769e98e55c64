/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bad_calls.c - writes a transcript of calls with wrong pointers and lengths
 *
 *   bad_calls SCENE ADDRESS PORT [NTH OF]
 *
 * SCENE names each call's descriptor: closed, pipe, unix, beside (unix, while the process has a pending connection), or a socket for
 * ADDRESS: idle, pending, answered (pending, and the converter has answered the SYN), held (its SYN waits for data), refused (the
 * program hasn't learned it yet), over (it has), connected. NTH OF: every OF-th row, from number NTH on (0 is the first). The
 * transcript must be the same with the shim and without it.
 */
#include "config.h"

#include "answered.h"
#include "await.h"
#include "bad_calls.h"

#include "common/rawcall.h"

#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>


struct bad bads[BAD_COUNT];
union address server;
socklen_t server_len;
socklen_t out_len;
int out_value;
const int lengths[LENGTH_COUNT] = { 0, 1, 2, 15, 129, 100000, -1, INT_MIN };
const char *const length_names[LENGTH_COUNT] = { "0", "1", "2", "15", "129", "100000", "-1", "INT_MIN" };

static const char *scene;
static char detail[32];
static unsigned int row, row_nth, row_of = 1;
static char *whole; /* two pages that can be accessed, and one behind them that can't */
static size_t page;

static void must(bool good, const char *what)
{
	if (good)
		return;
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
	RAWCALL(SYS_exit_group, 1);
	__builtin_unreachable();
}

static char *pages(size_t count, int protection)
{
	char *memory = mmap(NULL, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(memory != MAP_FAILED, "mmap");
	must(mprotect(memory, count * page, protection) == 0, "mprotect");
	return memory;
}

void bads_init(void)
{
	char *hole, *half;

	page = (size_t)sysconf(_SC_PAGESIZE);
	hole = pages(1, PROT_NONE);
	must(munmap(hole, page) == 0, "munmap");
	whole = pages(3, PROT_READ | PROT_WRITE);
	must(mprotect(whole + 2 * page, page, PROT_NONE) == 0, "mprotect");
	half = pages(2, PROT_READ | PROT_WRITE);
	must(mprotect(half + page, page, PROT_NONE) == 0, "mprotect");
	bads[0] = (struct bad){ "NULL", NULL };
	bads[1] = (struct bad){ "1", (char *)1 };
	bads[2] = (struct bad){ "unmapped", pages(1, PROT_NONE) };
	must(munmap(bads[2].at, page) == 0, "munmap");
	bads[3] = (struct bad){ "forbidden", pages(1, PROT_NONE) };
	bads[4] = (struct bad){ "the kernel's", (char *)(UINTPTR_MAX - 0xfff) };
	bads[BAD_READ_ONLY] = (struct bad){ "read-only", pages(1, PROT_READ) };
	bads[6] = (struct bad){ "cut off", half + page - 2 };
}

void *edge(size_t bytes)
{
	return whole + 2 * page - bytes;
}

void *edge_copy(const void *from, size_t bytes)
{
	return memcpy(edge(bytes), from, bytes);
}

socklen_t *len_of(int len)
{
	out_len = (socklen_t)len;
	return &out_len;
}

int *value_of(int value)
{
	out_value = value;
	return &out_value;
}

static int tcp(int flags)
{
	int fd = socket(server.sa.sa_family, SOCK_STREAM | flags, 0);

	must(fd >= 0, "socket");
	return fd;
}

static int pending(void)
{
	int fd = tcp(SOCK_NONBLOCK);

	must(connect(fd, &server.sa, server_len) < 0 && errno == EINPROGRESS, "connect");
	return fd;
}

static int answered(void)
{
	int fd = pending();

	if (getenv("BAD_CALLS_CONVERTED"))
		AWAIT(is_answered(fd));
	return fd;
}

static int refused(void)
{
	int fd = pending();
	struct pollfd poller = { .fd = fd, .events = POLLOUT };

	must(poll(&poller, 1, ROW_SECONDS * 1000) == 1, "refusal");
	return fd;
}

static int over(void)
{
	int fd = refused(), error = 0;
	socklen_t len = sizeof(error);

	must(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == ECONNREFUSED, "SO_ERROR");
	return fd;
}

/* A connected socket with bytes of the server to read. */
static int connected(void)
{
	int fd = tcp(0);
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	must(connect(fd, &server.sa, server_len) == 0, "connect");
	must(fcntl(fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
	must(send(fd, "0123456789abcdef", 16, 0) == 16, "send");
	must(poll(&poller, 1, ROW_SECONDS * 1000) == 1, "echo");
	return fd;
}

/* A socket whose connect() has returned 0, while its SYN waits for data. */
static int held(void)
{
	int fd = tcp(SOCK_NONBLOCK), on = 1;

	must(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)) == 0, "TCP_FASTOPEN_CONNECT");
	must(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof(on)) == 0, "TCP_FASTOPEN_NO_COOKIE");
	must(connect(fd, &server.sa, server_len) == 0, "connect");
	return fd;
}

/* With Fast Open without a cookie, data leaves in the SYN, as on every converted socket. */
static int idle(void)
{
	int fd = tcp(SOCK_NONBLOCK), on = 1;

	must(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof(on)) == 0, "TCP_FASTOPEN_NO_COOKIE");
	return fd;
}

/* Both ends of a pair stay open. */
static int of_pair(void)
{
	int fds[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0, "socketpair");
	return fds[0];
}

/* A Unix socket, while a connection is pending elsewhere in the process. */
static int beside(void)
{
	pending();
	return of_pair();
}

static int of_pipe(void)
{
	int fds[2];

	must(pipe2(fds, O_NONBLOCK) == 0, "pipe2");
	return fds[0];
}

static int closed(void)
{
	int fd = tcp(0);

	close(fd);
	return fd;
}

static const struct {
	const char *name;
	int (*make)(void);
} scenes[] = {
	{ "idle", idle },       { "pending", pending }, { "answered", answered }, { "refused", refused },
	{ "over", over },       { "held", held },       { "connected", connected }, { "unix", of_pair },
	{ "pipe", of_pipe },    { "closed", closed },   { "beside", beside },
};

bool scene_is(const char *name)
{
	return strcmp(scene, name) == 0;
}

int scene_descriptor(void)
{
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		if (scene_is(scenes[i].name))
			return scenes[i].make();
	must(false, "no such scene");
	return -1;
}

void scene_detail(const char *text)
{
	snprintf(detail, sizeof(detail), "%s%s", *text ? " " : "", text);
}

bool row_begin(const char *call, const char *what)
{
	int status;
	pid_t child;

	if (row++ % row_of != row_nth)
		return false;
	out_len = 0x5555;
	out_value = 0x5555;
	printf("%s%s: %s%s%s: ", scene, detail, call, *what ? " with " : "", what);
	fflush(stdout);
	child = fork();
	must(child >= 0, "fork");
	if (!child) {
		alarm(ROW_SECONDS);
		return true;
	}
	must(waitpid(child, &status, 0) == child, "waitpid");
	if (WIFSIGNALED(status))
		printf("%s", strsignal(WTERMSIG(status)));
	printf("\n");
	return false;
}

void row_end(long result, int error)
{
	if (result < 0)
		printf("%s", strerror(error));
	else
		printf("%ld%s%s", result, error ? ", and errno: " : "", error ? strerror(error) : "");
	if (out_len != 0x5555)
		printf(", length %u", (unsigned int)out_len);
	if (out_value != 0x5555)
		printf(", value %d", out_value);
	fflush(stdout);
	RAWCALL(SYS_exit_group, 0); /* keeps a library's work at the end of a process out of the row */
	__builtin_unreachable();
}

/* Forbids the system calls that copy memory of processes, as old containers' profiles do. */
static void sandbox(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS");
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "PR_SET_SECCOMP");
}

int main(int argc, char **argv)
{
	bool ipv6;

	if (argc < 4)
		return 2;
	ipv6 = strchr(argv[2], ':');
	if (argc > 5) {
		row_nth = (unsigned int)atoi(argv[4]);
		row_of = (unsigned int)atoi(argv[5]);
	}
	signal(SIGPIPE, SIG_IGN);
	scene = argv[1];
	server.sa.sa_family = ipv6 ? AF_INET6 : AF_INET;
	server_len = ipv6 ? sizeof(server.in6) : sizeof(server.in);
	server.in.sin_port = htons((uint16_t)atoi(argv[3])); /* the port is at the same place in both families */
	if (inet_pton(server.sa.sa_family, argv[2],
		      ipv6 ? (void *)&server.in6.sin6_addr : (void *)&server.in.sin_addr) != 1)
		return 2;
	bads_init();
	if (getenv("BAD_CALLS_SANDBOX"))
		sandbox();
	rows_names();
	rows_options();
	rows_transfer();
	rows_messages();
	rows_waits();
	rows_sets();
	rows_starts();
	return 0;
}
