/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_syn_packet.c - any bytes as a packet with a SYN
 *
 * The fields that are read must lie inside the packet, and a changed packet must be read again as it was
 * meant, with all else unchanged. Checksums are corrected first: few inputs would get past them.
 * To search for new inputs see fuzz_request.c; the sources are src/hold/syn_packet.c and
 * tests/unit/syn_build.c.
 */
#include "config.h"

#include "hold/syn_packet.h"

#include "../unit/syn_build.h"

#include <stdlib.h>
#include <string.h>

/* In place of assert(), which NDEBUG turns off. */
#define REQUIRE(condition) ((condition) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(const uint8_t *packet, size_t size, const struct syn_packet *syn)
{
	REQUIRE(syn->tcp >= 20 && syn->tcp_len >= 20 && syn->tcp_len <= 60);
	REQUIRE(syn->payload == packet + syn->tcp + syn->tcp_len);
	REQUIRE(syn->payload_len <= size - syn->tcp - syn->tcp_len);
	REQUIRE(syn->scale <= 14);
}

static void check_changes(uint8_t *packet, size_t size)
{
	struct syn_packet syn, again;

	REQUIRE(syn_packet_parse(packet, size, &syn) == SYN_PACKET_OK);
	check_inside(packet, size, &syn);
	syn_packet_shift_window(packet, &syn);
	REQUIRE(syn_packet_parse(packet, size, &again) == SYN_PACKET_OK);
	REQUIRE(memcmp(&syn, &again, sizeof(syn)) == 0);
	syn_packet_mark(packet, &syn);
	syn_packet_refuse(packet, &syn, (uint8_t)size);
	syn_packet_remove_mp_capable(packet, &syn);
	REQUIRE(syn_packet_parse(packet, size, &again) == SYN_PACKET_OK);
	syn.urgent = again.urgent; /* the mark, or how to refuse it */
	REQUIRE(memcmp(&syn, &again, sizeof(syn)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *packet = malloc(size);
	struct syn_packet syn;

	REQUIRE(packet || !size);
	if (size)
		memcpy(packet, data, size);
	if (syn_packet_parse(packet, size, &syn) == SYN_PACKET_OK)
		check_inside(packet, size, &syn);
	syn_build_checksums(packet, size);
	if (syn_packet_parse(packet, size, &syn) == SYN_PACKET_OK)
		check_changes(packet, size);
	free(packet);
	return 0;
}
