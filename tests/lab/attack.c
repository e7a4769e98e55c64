/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attack.c - somebody has taken over the process of convertd that parses what strangers send
 *
 * A library that is preloaded into convertd. When the first client has been accepted it runs in that thread,
 * as shellcode would, tries what would hurt the host, and says on standard error what came of each:
 * "attack: NAME: ERRNO", which is 0 for what worked.
 */
#include "config.h"

#include "daemon/warden_message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DESCRIPTORS 256

static void say(const char *name, long result)
{
	char line[256];
	int n = snprintf(line, sizeof(line), "attack: %s: %ld\n", name, result < 0 ? -result : 0);

	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		_exit(99);
}

static long outcome(long result)
{
	return result < 0 ? -errno : result;
}

/* ----- netlink ----- */

struct message {
	struct nlmsghdr header;
	struct nfgenmsg body;
};

/* Returns the kernel's answer. */
static long ask(int fd, const void *request, size_t len, uint32_t sequence)
{
	char reply[8192] __attribute__((aligned(NLMSG_ALIGNTO)));

	if (send(fd, request, len, 0) < 0)
		return -errno;
	for (int i = 0; i < 100; i++) {
		const struct nlmsghdr *header = (const struct nlmsghdr *)reply;
		ssize_t n = recv(fd, reply, sizeof(reply), MSG_DONTWAIT);

		if (n < 0)
			return -errno;
		if (header->nlmsg_type == NLMSG_ERROR && header->nlmsg_seq >= sequence)
			return ((const struct nlmsgerr *)NLMSG_DATA(header))->error;
	}
	return -ENODATA;
}

static struct message make(uint16_t type, uint16_t flags, uint16_t resource, uint32_t sequence)
{
	return (struct message){
		.header = { .nlmsg_len = sizeof(struct message),
			    .nlmsg_type = type,
			    .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
			    .nlmsg_seq = sequence },
		.body = { .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(resource) },
	};
}

/* nft flush ruleset */
static long flush_ruleset(int fd)
{
	const struct message batch[] = {
		make(NFNL_MSG_BATCH_BEGIN, 0, NFNL_SUBSYS_NFTABLES, 77001),
		make(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE, NLM_F_ACK, 0, 77002),
		make(NFNL_MSG_BATCH_END, 0, NFNL_SUBSYS_NFTABLES, 77003),
	};

	return ask(fd, batch, sizeof(batch), 77001);
}

static long take_queue(int fd)
{
	struct {
		struct message message;
		struct nlattr attr;
		struct nfqnl_msg_config_cmd cmd;
	} request = {
		.message = make(NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_CONFIG, NLM_F_ACK, 77, 77010),
		.attr = { .nla_len = sizeof(struct nlattr) + sizeof(request.cmd),
			  .nla_type = NFQA_CFG_CMD },
		.cmd = { .command = NFQNL_CFG_CMD_BIND, .pf = htons(AF_INET) },
	};

	request.message.header.nlmsg_len = sizeof(request);
	return ask(fd, &request, sizeof(request), 77010);
}

static long device_down(void)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_NEWLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
			    .nlmsg_seq = 1 },
		.info = { .ifi_index = 1, .ifi_change = IFF_UP },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	return fd < 0 ? -errno : ask(fd, &request, sizeof(request), 1);
}

/* ss --kill: closes a socket of any process; rights are looked at once it is found, and so there is one to find. */
static long destroy_socket(void)
{
	struct sockaddr_in victim = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 body;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = SOCK_DESTROY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
			    .nlmsg_seq = 1 },
		.body = { .sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG), listening = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(victim);

	if (fd < 0 || bind(listening, (struct sockaddr *)&victim, len) < 0 || listen(listening, 1) < 0 ||
	    getsockname(listening, (struct sockaddr *)&victim, &len) < 0)
		return -errno;
	request.body.id.idiag_sport = victim.sin_port;
	request.body.id.idiag_src[0] = victim.sin_addr.s_addr;
	request.body.id.idiag_cookie[0] = request.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	return ask(fd, &request, sizeof(request), 1);
}

static int get(int fd, int option)
{
	int value = -1;
	socklen_t len = sizeof(value);

	getsockopt(fd, SOL_SOCKET, option, &value, &len);
	return value;
}

/* On each of the process's own sockets to netfilter, of which the best result for us counts. */
static void on_own_sockets(const char *name, long (*attempt)(int fd))
{
	long best = -ENOENT;

	for (int fd = 3; fd < DESCRIPTORS; fd++) {
		if (get(fd, SO_DOMAIN) == AF_NETLINK && get(fd, SO_PROTOCOL) == NETLINK_NETFILTER) {
			long result = attempt(fd);

			if (best == -ENOENT || result >= 0)
				best = result;
		}
	}
	say(name, best);
}

static void on_netfilter(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);

	say("a socket to netfilter", outcome(fd));
	on_own_sockets("flush ruleset", flush_ruleset);
	on_own_sockets("take a queue", take_queue);
	say("lo down", device_down());
	say("ss --kill", destroy_socket());
}

/* ----- system calls ----- */

static void on_sockets(void)
{
	static const struct {
		const char *name;
		int family, type, protocol;
	} sockets[] = {
		{ "AF_VSOCK", AF_VSOCK, SOCK_STREAM, 0 },
		{ "AF_PACKET", AF_PACKET, SOCK_RAW, 0x300 },
		{ "AF_ALG", AF_ALG, SOCK_SEQPACKET, 0 },
		{ "AF_KEY", AF_KEY, SOCK_RAW, 2 },
		{ "AF_TIPC", AF_TIPC, SOCK_SEQPACKET, 0 },
		{ "AF_XDP", AF_XDP, SOCK_RAW, 0 },
		{ "raw IP", AF_INET, SOCK_RAW, IPPROTO_TCP },
		{ "UDP", AF_INET, SOCK_DGRAM, 0 },
		{ "SCTP", AF_INET, SOCK_STREAM, IPPROTO_SCTP },
		{ "NETLINK_XFRM", AF_NETLINK, SOCK_RAW, NETLINK_XFRM },
	};
	struct sockaddr_in low = { .sin_family = AF_INET, .sin_port = htons(22) };
	int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++)
		say(sockets[i].name,
		    outcome(socket(sockets[i].family, sockets[i].type, sockets[i].protocol)));
	say("port 22", outcome(bind(fd, (struct sockaddr *)&low, sizeof(low))));
	say("IP_TRANSPARENT", outcome(setsockopt(fd, SOL_IP, IP_TRANSPARENT, &on, sizeof(on))));
	say("SO_MARK", outcome(setsockopt(fd, SOL_SOCKET, SO_MARK, &on, sizeof(on))));
	say("SO_ATTACH_FILTER", outcome(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &on, sizeof(on))));
}

static void on_memory(void)
{
	int anywhere = MAP_PRIVATE | MAP_ANONYMOUS;
	void *data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, anywhere, -1, 0);

	say("RWX memory", mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, anywhere, -1, 0) ==
					MAP_FAILED ?
				-errno :
				0);
	say("memory made executable", outcome(mprotect(data, 4096, PROT_READ | PROT_EXEC)));
	say("memfd_create", outcome(syscall(SYS_memfd_create, "x", 0)));
}

static void on_files(void)
{
	say("read /etc/passwd", outcome(open("/etc/passwd", O_RDONLY)));
	say("read /proc/1/environ", outcome(open("/proc/1/environ", O_RDONLY)));
	say("write a file", outcome(open("/run/attack", O_WRONLY | O_CREAT, 0600)));
	say("write a sysctl", outcome(open("/proc/sys/net/ipv4/ip_forward", O_WRONLY)));
	say("remove a file", outcome(unlink(getenv("ATTACK_FILE"))));
}

static void on_processes(void)
{
	struct rlimit limit = { 0 };

	say("signal the main process", outcome(kill(getppid(), 0)));
	say("signal it as a thread", outcome(syscall(SYS_tgkill, getppid(), getppid(), 0)));
	say("its limits", outcome(syscall(SYS_prlimit64, getppid(), RLIMIT_NOFILE, NULL, &limit)));
	say("another user", outcome(syscall(SYS_setuid, 0)));
	say("io_uring", outcome(syscall(SYS_io_uring_setup, 1, NULL)));
	say("a process", outcome(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL)));
}

/* ----- the main process ----- */

/* The sockets to the main process were made one after another (warden.h): signals, calls. */
static int socket_for_calls(void)
{
	int seen = 0;

	for (int fd = 3; fd < DESCRIPTORS; fd++)
		if (get(fd, SO_DOMAIN) == AF_UNIX && get(fd, SO_TYPE) == SOCK_SEQPACKET && ++seen == 2)
			return fd;
	return -1;
}

static long ask_main(const void *call, size_t len)
{
	int fd = socket_for_calls();
	struct warden_answer answer;

	if (send(fd, call, len, MSG_NOSIGNAL) < 0)
		return -errno;
	return recv(fd, &answer, sizeof(answer), 0) == (ssize_t)sizeof(answer) ? answer.error : -EPIPE;
}

static void on_main(void)
{
	static struct warden_call call;

	call.kind = WARDEN_CALL_RULES;
	call.count = 1;
	call.listen[0].address.in.sin_family = AF_INET;
	call.listen[0].address.in.sin_port = htons(22);
	say("rules for another port", ask_main(&call, sizeof(call)));
	if (getenv("ATTACK_GARBAGE"))
		say("garbage", ask_main("garbage", 7));
}

static void attack(void)
{
	on_main();
	on_netfilter();
	on_sockets();
	on_memory();
	on_files();
	on_processes();
	say("the end", 0);
}

int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict len, int flags)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int accepted = (int)syscall(SYS_accept4, fd, address, len, flags);

	if (accepted >= 0)
		pthread_once(&once, attack);
	return accepted;
}
