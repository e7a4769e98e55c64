/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * enquiry.c - asks a converter whether it takes blind requests, and tests whether the path takes data in SYNs
 *
 * When a blind request ends by a reset, the server may have refused, the path may have lost the SYN's data, or another converter may have
 * taken the address. The kernel doesn't say which. If servers refuse, ordinary connections don't find out either: a connection that carries
 * an error has no Multipath TCP. And a program's connect() would have to wait for each of them. So the supervisor asks by a connection of
 * its own, over Multipath TCP, with an Info TLV in its SYN, which the converter answers at once. It asks one converter at a time.
 */
#include "config.h"

#include "supervise/blind.h"

#include "client/client_log.h"
#include "client/converters.h"
#include "client/exchange.h"
#include "common/clock.h"
#include "host/path_probe.h"
#include "supervise/sockets.h"

#include <errno.h>
#include <unistd.h>

#define LOOK_NS (5 * CLOCK_NS_PER_MS)
#define HOLDS_NS CLOCK_NS_PER_S /* how long we believe an answer, whatever happens to connections */

static struct {
	struct path_start start;
	int fd; /* not open while @begun is 0 */
	int64_t begun, look_at;
	struct {
		int converter;
		int64_t until;
	} good; /* the last answer that allows blind requests */
} enquiry;

static bool syn_send(int fd, const union sockaddr_ip *converter)
{
	uint8_t request[PATH_PROBE_REQUEST_MAX];
	const size_t len = path_probe_request(request);

	return len && kernel_set(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1) &&
	       sendto(fd, request, len, MSG_FASTOPEN | MSG_DONTWAIT | MSG_NOSIGNAL, &converter->sa, sockaddr_ip_len(converter)) == (ssize_t)len;
}

bool enquiry_start(const struct path_start *start, int64_t now)
{
	const int converter = start->path.id.converter;
	const union sockaddr_ip *addr = converters_address(converter);
	int fd;

	if (enquiry.good.converter == converter && now < enquiry.good.until)
		return true;
	if (enquiry.begun)
		return enquiry.start.path.id.converter == converter;
	fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_MPTCP);
	if (fd < 0)
		return false;
	if (path_start_bind(start, fd) != 0 || !syn_send(fd, addr)) {
		close(fd);
		return false;
	}
	enquiry.start = *start;
	enquiry.start.survey = 0; /* the caller owns it */
	enquiry.fd = fd;
	enquiry.begun = now;
	enquiry.look_at = now + LOOK_NS;
	return true;
}

/* Takes the answer of @len bytes. Returns whether it allows blind requests. */
static bool answered(const uint8_t *bytes, size_t len)
{
	static const struct handshake_ask ask = { .info = true };
	const struct path_id *path = &enquiry.start.path.id;
	const struct handshake_step told = handshake_on_bytes(bytes, len, converters_address(path->converter), &ask);
	const struct tcp_info info = kernel_tcp_info(enquiry.fd);
	const bool taken = info.tcpi_options & TCPI_OPT_SYN_DATA;

	if (told.verdict != HANDSHAKE_DONE || !told.has_supported)
		return false;
	converters_answered(path->converter, &told);
	if (taken || !info.tcpi_total_retrans)
		paths_note_syn_data(path, taken, enquiry.begun);
	if (!kernel_has_fallen_back(enquiry.fd))
		paths_note_mptcp(path);
	return taken && told.takes_blind && exchange_keeps_mptcp(dial_host.settings, path);
}

static void end(bool blind, int64_t now)
{
	const int converter = enquiry.start.path.id.converter;
	char text[SOCKADDR_STRLEN];

	close(enquiry.fd);
	enquiry.begun = 0;
	enquiry.good.until = 0;
	if (blind) {
		enquiry.good.converter = converter;
		enquiry.good.until = now + HOLDS_NS;
		return;
	}
	log_line("converter %s: doesn't say that it takes blind requests, the next connections wait for it",
		 sockaddr_ip_format(converters_address(converter), text));
	converters_forget_silence(converter);
}

int64_t enquiry_look(int64_t now)
{
	uint8_t bytes[CONVERT_MESSAGE_MAX];
	ssize_t got;

	if (!enquiry.begun || now < enquiry.look_at)
		return enquiry.begun ? enquiry.look_at : 0;
	got = recv(enquiry.fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	enquiry.look_at = now + LOOK_NS;
	if (got < 0 && errno == EAGAIN && now < enquiry.begun + dial_host.settings->timeout_ms * CLOCK_NS_PER_MS)
		return enquiry.look_at;
	end(got > 0 && answered(bytes, (size_t)got), now);
	return 0;
}
