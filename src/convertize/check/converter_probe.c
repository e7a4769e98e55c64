/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * converter_probe.c - makes one request to a converter, and describes the result
 *
 * The request is an Info TLV (Section 6.2.3), which involves no server, or with a server a Connect TLV. We send it as the shim sends its
 * own: in the SYN of an MPTCP connection, without a Fast Open cookie.
 *
 * Three faults look alike from outside and have different remedies: the path or the peer doesn't accept MPTCP; this kernel doesn't
 * offer MPTCP for a while, after lost SYNs (then a counter of SYNs without it grows, since Linux 6.12); or the path lost a SYN
 * because of its data (tcpi_fastopen_client_fail, since 5.5).
 */
#include "config.h"

#include "convertize/check/converter_probe.h"

#include "common/kernel_socket.h"
#include "common/os.h"
#include "common/tcp.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/mptcp.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* --- the kernel's counters ----------------------------------------------------------------- */

/* In /proc/net/netstat each group has two lines, "Group: NAME …" and "Group: NUMBER …". */
uint64_t counters_read(const char *name)
{
	char text[16 * 1024], *rest = text, *names, *values, *group;
	uint64_t value = 0;

	file_read_text("/proc/net/netstat", text, sizeof(text));
	while (!value && (names = strsep(&rest, "\n")) && (values = strsep(&rest, "\n"))) {
		group = strsep(&names, ":");
		if (strncmp(name, group, strlen(group)) != 0)
			continue;
		strsep(&values, " ");
		for (char *one; (one = strsep(&names, " ")) && !value;) {
			char *number = *one ? strsep(&values, " ") : NULL;

			if (number && strcmp(name + strlen(group), one) == 0)
				value = strtoull(number, NULL, 10);
		}
	}
	return value;
}

/* CLOCK_MONOTONIC in milliseconds, the clock of a result's times. */
static double probe_now_ms(void)
{
	return (double)clock_ns() / (double)CLOCK_NS_PER_MS;
}

/* --- results ----------------------------------------------------------------------------- */

/* Parses the bytes of the message so far. PROBE_SILENT: they may still become an answer. */
static enum probe_outcome probe_judge(struct probe_result *result)
{
	size_t length = 0;

	result->status = convert_message_length(result->message, result->message_len, &length);
	if (result->status == CONVERT_STATUS_OK)
		result->status = convert_response_parse(result->message, result->message_len,
							&result->response);
	if (result->status == CONVERT_STATUS_OK)
		return PROBE_ANSWERED;
	return result->status == CONVERT_STATUS_NEED_MORE ? PROBE_SILENT : PROBE_NOT_CONVERT;
}

void probe_copy(struct probe_result *to, const struct probe_result *from)
{
	*to = *from;
	probe_judge(to);
}

bool probe_is_connected(const struct probe_result *result)
{
	return result->outcome != PROBE_LOCAL && result->outcome != PROBE_UNREACHABLE &&
	       result->outcome != PROBE_NO_SYN_ACK;
}

/* --- bytes to a converter and back --------------------------------------------------------- */

/*
 * Progress shows in the bytes that come back, and in those that the peer's kernel acknowledges. No event reports acknowledged bytes, so
 * we read SIOCOUTQ at intervals. They distinguish a path that carries full segments one way from one that carries none.
 */

struct probe {
	const struct probe_request *request;
	struct probe_result *result;
	int fd;
	bool mptcp; /* the socket is one of Multipath TCP */
	uint64_t withheld_before;
	double start;
	uint8_t *bytes; /* the request, and the padding */
	size_t len, sent;
};

#define TICK_MS 20
#define SUBFLOWS_MAX 16
#define SUBFLOWS_MS 2500 /* the second half waits for subflows for this time and SUBFLOWS_ROUND_TRIPS */
#define SUBFLOWS_ROUND_TRIPS 4
#define ALL_MS 30000     /* a transfer ends after this time in any case */

static void look_at_subflows(const struct probe *probe)
{
	/* MPTCP_INFO would also count subflows that aren't established yet */
	struct {
		struct mptcp_subflow_data header;
		struct tcp_info subflows[SUBFLOWS_MAX];
	} infos = { .header = { .size_subflow_data = sizeof(struct mptcp_subflow_data),
				.size_user = sizeof(struct tcp_info) } };
	socklen_t len = sizeof(infos);
	unsigned int established = 0;

	if (!probe->request->subflows ||
	    getsockopt(probe->fd, SOL_MPTCP, MPTCP_TCPINFO, &infos, &len) < 0)
		return;
	for (uint32_t i = 0; i < infos.header.num_subflows && i < SUBFLOWS_MAX; i++)
		established += infos.subflows[i].tcpi_state == TCPINFO_ESTABLISHED;
	if (established && established - 1 > probe->result->subflows)
		probe->result->subflows = established - 1;
}

/* Returns the number of bytes that should come back after the answer. */
static size_t echo_of(const struct probe *probe)
{
	return probe->request->echo ? probe->request->padding : 0;
}

/* Returns the number of bytes that the transfer may have sent by now: the second half waits for subflows, at most a few seconds. */
static size_t may_send(const struct probe *probe, double since_start)
{
	double patience = SUBFLOWS_MS + SUBFLOWS_ROUND_TRIPS * probe->result->round_trip_ms;

	if (!probe->mptcp || probe->result->subflows >= probe->request->subflows || since_start > patience)
		return probe->len;
	return probe->len - echo_of(probe) / 2;
}

/* Returns false if the connection is lost. */
static bool send_some(struct probe *probe, size_t end)
{
	ssize_t sent;

	if (probe->sent >= end)
		return true;
	sent = send(probe->fd, probe->bytes + probe->sent, end - probe->sent,
		    MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent > 0)
		probe->sent += (size_t)sent;
	return sent >= 0 || errno == EAGAIN || errno == EINTR;
}

/* Appends bytes to the message until it is an answer, and counts those behind the answer. */
static enum probe_outcome take(struct probe_result *result, const uint8_t *bytes, size_t len, enum probe_outcome outcome)
{
	size_t room = sizeof(result->message) - result->message_len, kept = len < room ? len : room, whole;

	if (outcome != PROBE_SILENT) {
		result->returned += len;
		return outcome;
	}
	memcpy(result->message + result->message_len, bytes, kept);
	result->message_len += kept;
	outcome = probe_judge(result);
	if (outcome == PROBE_ANSWERED && convert_message_length(result->message, result->message_len, &whole) == CONVERT_STATUS_OK) {
		result->returned = result->message_len - whole + len - kept;
		result->message_len = whole;
	}
	return outcome;
}

/* Returns false at the end of the stream, or of the connection; *outcome is then final. */
static bool receive_some(struct probe *probe, enum probe_outcome *outcome)
{
	uint8_t bytes[16384];
	ssize_t got = recv(probe->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (got > 0) {
		*outcome = take(probe->result, bytes, (size_t)got, *outcome);
		return true;
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (*outcome == PROBE_SILENT)
		*outcome = got == 0 ? PROBE_CLOSED : PROBE_RESET;
	return false;
}

static void look_at_acknowledged(struct probe *probe)
{
	size_t acknowledged;
	int unacknowledged = 0;

	if (ioctl(probe->fd, SIOCOUTQ, &unacknowledged) < 0 || unacknowledged < 0)
		return;
	acknowledged = probe->sent - (size_t)unacknowledged;
	if (acknowledged <= probe->sent && acknowledged > probe->result->acknowledged)
		probe->result->acknowledged = acknowledged;
}

static bool is_over(const struct probe *probe, enum probe_outcome outcome)
{
	const struct probe_result *result = probe->result;

	return outcome != PROBE_SILENT &&
	       (outcome != PROBE_ANSWERED || !result->response.has_echo ||
		result->returned >= echo_of(probe));
}

/*
 * Sends the rest and reads the answer. Returns the outcome of the request. The transfer ends with the answer if that has no Echo TLV;
 * else when all bytes have come back, or after stall_ms without progress.
 */
static enum probe_outcome transfer(struct probe *probe)
{
	struct probe_result *result = probe->result;
	const int stall_ms = probe->request->echo ? probe->request->stall_ms : probe->request->timeout_ms;
	enum probe_outcome outcome = PROBE_SILENT;
	struct tcp_info info;
	double start = probe_now_ms(), moved = start, now = start;
	size_t before = 0, so_far;

	while (!is_over(probe, outcome) && now - moved < stall_ms && now - start < ALL_MS + stall_ms) {
		size_t end = may_send(probe, now - start);
		struct pollfd ready = { .fd = probe->fd,
					.events = (short)(POLLIN |
							  (probe->sent < end ? POLLOUT : 0)) };

		poll(&ready, 1, TICK_MS);
		if (!send_some(probe, end)) {
			outcome = outcome == PROBE_SILENT ? PROBE_RESET : outcome;
			break;
		}
		if (!receive_some(probe, &outcome))
			break;
		look_at_acknowledged(probe);
		look_at_subflows(probe);
		now = probe_now_ms();
		so_far = result->acknowledged + result->returned + result->message_len;
		if (so_far != before || end < probe->len)
			moved = now;
		before = so_far;
	}
	info = kernel_tcp_info(probe->fd);
	result->segments = info.tcpi_data_segs_out;
	/* on the way there, or their acknowledgements were: Linux has sent them again */
	result->lost = info.tcpi_total_retrans;
	result->transfer_ms = probe_now_ms() - start;
	result->answer_ms = result->round_trip_ms + result->transfer_ms;
	return outcome;
}

/* --- probes ------------------------------------------------------------------------------ */

#define WITHHELD_COUNTER "MPTcpExtMPCapableSYNTXDisabled"
#define SYN_RETRANSMITTED 3 /* TFO_SYN_RETRANSMITTED, include/linux/tcp.h */

#define TIMESTAMPS_SIZE 12

#define PROBES_A_SECOND 16

/*
 * If Linux sends three SYNs in vain and the fourth arrives, it leaves MPTCP out of all SYNs for an hour (net.mptcp.blackhole_timeout).
 * It sends the third SYN after 3 s, so a probe ends before that.
 */
#define HANDSHAKE_MS_MAX 2900

static double elapsed_ms(const struct probe *probe)
{
	return probe_now_ms() - probe->start;
}

/*
 * Waits for the answer to the SYN, or an error, which it returns in @error. Returns false if the time is up. Linux 6.18 wakes poll(2) for
 * an ICMP error a moment before SO_ERROR has it (tcp_v4_err()).
 */
static bool wait_for_answer(const struct probe *probe, int *error)
{
	const int limit_ms = probe->request->timeout_ms < HANDSHAKE_MS_MAX ? probe->request->timeout_ms : HANDSHAKE_MS_MAX;
	struct pollfd ready = { .fd = probe->fd, .events = POLLOUT };
	double left;
	int ret;

	do {
		left = limit_ms - elapsed_ms(probe);
		ret = poll(&ready, 1, left > 0 ? (int)left + 1 : 0);
		*error = ret > 0 ? kernel_get(probe->fd, SOL_SOCKET, SO_ERROR, 0) : 0;
		if (*error || (ret > 0 && kernel_tcp_info(probe->fd).tcpi_state != TCPINFO_SYN_SENT))
			return true;
	} while (left > 0);
	return false;
}

static int write_request(struct probe *probe)
{
	const struct convert_span *cookie = &probe->request->cookie;
	const union sockaddr_ip *server = &probe->request->server;
	const struct in6_addr address = sockaddr_ip_in6(server);
	struct convert_writer writer;
	ssize_t len;

	probe->bytes = calloc(1, CONVERT_MESSAGE_MAX + probe->request->padding);
	if (!probe->bytes)
		return -ENOMEM;
	convert_writer_init(&writer, probe->bytes, CONVERT_MESSAGE_MAX);
	if (server->sa.sa_family == AF_UNSPEC)
		convert_write_info(&writer);
	else
		convert_write_connect(&writer, &address, sockaddr_ip_port(server), NULL, 0);
	if (probe->request->echo)
		convert_write_echo(&writer, 0);
	if (cookie->len)
		convert_write_cookie(&writer, cookie->data, cookie->len);
	len = convert_writer_finish(&writer);
	probe->len = len < 0 ? 0 : (size_t)len + probe->request->padding;
	return len < 0 ? (int)len : 0;
}

/* Keeps the ICMP message that refused the SYN, if it was one: open_socket() had it queued (ip(7)). */
static void look_at_icmp(int fd, struct probe_result *result)
{
	/* port unreachable, and the codes of prohibited communication: RFC 792, RFC 1812, RFC 4443 */
	static const uint8_t forbid4[] = { ICMP_PORT_UNREACH, ICMP_NET_ANO, ICMP_HOST_ANO, ICMP_PKT_FILTERED };
	static const uint8_t forbid6[] = { ICMPV6_ADM_PROHIBITED, ICMPV6_PORT_UNREACH, ICMPV6_POLICY_FAIL };
	char control[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
	struct msghdr message = { .msg_control = control, .msg_controllen = sizeof(control) };
	const struct cmsghdr *header = recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0 ? NULL : CMSG_FIRSTHDR(&message);
	struct sock_extended_err report;

	if (!header)
		return;
	memcpy(&report, CMSG_DATA(header), sizeof(report));
	if (report.ee_origin != SO_EE_ORIGIN_ICMP && report.ee_origin != SO_EE_ORIGIN_ICMP6)
		return;
	sockaddr_ip_from(&result->icmp_from, SO_EE_OFFENDER((const struct sock_extended_err *)CMSG_DATA(header)), sizeof(result->icmp_from));
	sockaddr_ip_set_port(&result->icmp_from, 0);
	result->icmp_forbids = report.ee_origin == SO_EE_ORIGIN_ICMP ? memchr(forbid4, report.ee_code, sizeof(forbid4)) :
								       memchr(forbid6, report.ee_code, sizeof(forbid6));
}

/* Makes a non-blocking socket, with MPTCP if the kernel has it, and binds it as requested. Returns 0 or -errno. */
static int open_socket(struct probe *probe)
{
	const struct probe_request *request = probe->request;
	const bool is_v4 = sockaddr_ip_is_v4(&request->converter);
	int family = request->converter.sa.sa_family;
	int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

	probe->fd = request->tcp ? -1 : socket(family, type, IPPROTO_MPTCP);
	probe->mptcp = probe->fd >= 0;
	if (probe->fd < 0)
		probe->fd = socket(family, type, IPPROTO_TCP);
	if (probe->fd < 0)
		return -errno;
	if (request->segment && !kernel_set(probe->fd, IPPROTO_TCP, TCP_MAXSEG, (int)request->segment))
		return -errno;
	if (request->device && setsockopt(probe->fd, SOL_SOCKET, SO_BINDTODEVICE, request->device,
					  (socklen_t)strlen(request->device)) < 0)
		return -errno;
	if (request->from.sa.sa_family != AF_UNSPEC &&
	    bind(probe->fd, &request->from.sa, sockaddr_ip_len(&request->from)) < 0)
		return -errno;
	if (request->tcp)
		kernel_set(probe->fd, is_v4 ? IPPROTO_IP : IPPROTO_IPV6, is_v4 ? IP_RECVERR : IPV6_RECVERR, 1);
	return 0;
}

/* Sends the SYN, with the request in it if the caller wants that and this kernel supports it. Returns 0 or -errno. */
static int send_syn(struct probe *probe)
{
	const union sockaddr_ip *to = &probe->request->converter;
	ssize_t sent;

	probe->start = probe_now_ms();
	if (probe->request->in_syn && kernel_set(probe->fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)) {
		sent = sendto(probe->fd, probe->bytes, probe->len, MSG_FASTOPEN | MSG_NOSIGNAL,
			      &to->sa, sockaddr_ip_len(to));
		if (sent >= 0 || errno == EINPROGRESS) {
			probe->sent = sent > 0 ? (size_t)sent : 0;
			probe->result->syn_bytes = probe->sent;
			return 0;
		}
		if (errno != EOPNOTSUPP) /* sysctl tcp_fastopen without its bit 0x1 */
			return -errno;
	}
	if (connect(probe->fd, &to->sa, sockaddr_ip_len(to)) == 0 || errno == EINPROGRESS)
		return 0;
	return -errno;
}

/* Keeps the size of the largest packets that both sides send: ours by the path's MTU, the peer's by the segment size that we told it. */
static void look_at_size(const struct tcp_info *info, struct probe_result *result)
{
	/* Linux subtracts the room for timestamps from the maximum segment size that it told the peer */
	unsigned int received = info->tcpi_advmss +
				(info->tcpi_options & TCPI_OPT_TIMESTAMPS ? TIMESTAMPS_SIZE : 0) +
				probe_headers(&result->local);

	result->mtu = info->tcpi_pmtu < received ? info->tcpi_pmtu : received;
}

/* Stores the kernel's facts about the established connection. */
static void look_at_connection(struct probe *probe)
{
	struct probe_result *result = probe->result;
	const struct tcp_info info = kernel_tcp_info(probe->fd);
	socklen_t len = sizeof(result->local);

	getsockname(probe->fd, &result->local.sa, &len);
	look_at_size(&info, result);
	if (info.tcpi_state && result->syn_bytes)
		result->syn_data = info.tcpi_options & TCPI_OPT_SYN_DATA ? PROBE_SYN_DATA_TAKEN :
				   info.tcpi_fastopen_client_fail == SYN_RETRANSMITTED ?
									   PROBE_SYN_DATA_LOST :
									   PROBE_SYN_DATA_REFUSED;
	if (!probe->mptcp)
		return;
	result->mptcp = multipath_is_spoken(probe->fd) ? PROBE_MPTCP_KEPT :
		counters_read(WITHHELD_COUNTER) > probe->withheld_before ? PROBE_MPTCP_WITHHELD :
									   PROBE_MPTCP_LOST;
}

static enum probe_outcome run(struct probe *probe)
{
	struct probe_result *result = probe->result;
	enum probe_outcome outcome;

	result->error = -write_request(probe);
	if (!result->error)
		result->error = -open_socket(probe);
	if (result->error)
		return PROBE_LOCAL;
	result->error = -send_syn(probe);
	/*
	 * If this host itself drops the SYN, by a firewall or a service's IPAddressDeny=, connect() hides the EPERM. But tcp_connect() then
	 * leaves the data unsent that the SYN was to carry.
	 */
	result->unsent = probe->request->in_syn && kernel_tcp_info(probe->fd).tcpi_notsent_bytes;
	if (result->error)
		return PROBE_UNREACHABLE;
	if (result->unsent || !wait_for_answer(probe, &result->error))
		return PROBE_NO_SYN_ACK;
	result->round_trip_ms = elapsed_ms(probe);
	if (result->error) {
		look_at_icmp(probe->fd, result);
		return PROBE_UNREACHABLE;
	}
	look_at_connection(probe);
	/* Linux also repeats data that the SYN+ACK doesn't acknowledge, and counts it likewise: so with data the counter tells nothing */
	result->syn_again = result->syn_bytes ? result->syn_data == PROBE_SYN_DATA_LOST : kernel_tcp_info(probe->fd).tcpi_total_retrans > 0;
	if (probe->request->connect_only)
		return PROBE_SILENT;
	outcome = transfer(probe);
	/* a fallback may follow the SYN+ACK, so look again; a connection after a reset has no facts any more */
	if (outcome != PROBE_RESET)
		look_at_connection(probe);
	return outcome;
}

/*
 * Waits so that fewer probes begin in any second than convertd answers. It gives one client 20 such answers in a second and
 * then resets its connections (--max-errors-per-client), which would look like a fault.
 */
static void keep_pace(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static double begun[PROBES_A_SECOND];
	static size_t next;
	double wait;

	pthread_mutex_lock(&lock);
	wait = begun[next] ? begun[next] + 1000 - probe_now_ms() : 0;
	if (wait > 0)
		poll(NULL, 0, (int)wait + 1);
	begun[next] = probe_now_ms();
	next = (next + 1) % PROBES_A_SECOND;
	pthread_mutex_unlock(&lock);
}

void probe_run(const struct probe_request *request, struct probe_result *out)
{
	struct probe probe = { .request = request, .result = out, .fd = -1 };
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };

	keep_pace();
	memset(out, 0, sizeof(*out));
	probe.withheld_before = counters_read(WITHHELD_COUNTER);
	out->outcome = run(&probe);
	free(probe.bytes);
	if (probe.fd < 0)
		return;
	if (out->outcome != PROBE_ANSWERED || out->response.has_error)
		connect(probe.fd, &unspec, sizeof(unspec)); /* a reset: Sections 6.2.8 and 8 */
	close(probe.fd);
}

/* --- several ------------------------------------------------------------------------- */

struct job {
	const struct probe_request *request;
	struct probe_result *result;
	pthread_t thread;
	bool threaded;
};

static void *do_job(void *arg)
{
	struct job *job = arg;

	probe_run(job->request, job->result);
	return NULL;
}

void probe_run_all(const struct probe_request *requests, struct probe_result *out, size_t count)
{
	struct job *jobs = calloc(count, sizeof(*jobs));

	for (size_t i = 0; i < count; i++) {
		if (jobs) {
			jobs[i] = (struct job){ .request = &requests[i], .result = &out[i] };
			jobs[i].threaded = pthread_create(&jobs[i].thread, NULL, do_job, &jobs[i]) == 0;
		}
		if (!jobs || !jobs[i].threaded)
			probe_run(&requests[i], &out[i]);
	}
	for (size_t i = 0; i < count && jobs; i++)
		if (jobs[i].threaded)
			pthread_join(jobs[i].thread, NULL);
	free(jobs);
}
