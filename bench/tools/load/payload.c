/* SPDX-License-Identifier: BSD-3-Clause */
/* payload.c - what goes over the wire between the client and the server */
#include "payload.h"

#include <endian.h>
#include <string.h>

#define PERIOD     251
#define MAGIC      UINT32_C(0x6c6f6164) /* "load" */
#define FLAG_CLOSE UINT32_C(1)

/* As it is on the wire, big-endian. */
struct head {
	uint32_t magic, flags;
	uint64_t request, response;
};
_Static_assert(sizeof(struct head) == PAYLOAD_HEAD, "no padding");

static uint8_t pattern[PERIOD + PAYLOAD_CHUNK];

void payload_init(void)
{
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i % PERIOD);
}

void payload_head_write(uint8_t head[static PAYLOAD_HEAD], const struct payload_request *request)
{
	struct head wire = { htobe32(MAGIC), htobe32(request->close ? FLAG_CLOSE : 0),
			     htobe64(request->request), htobe64(request->response) };

	memcpy(head, &wire, sizeof(wire));
}

int payload_head_read(struct payload_request *request, const uint8_t head[static PAYLOAD_HEAD])
{
	struct head wire;

	memcpy(&wire, head, sizeof(wire));
	request->close = be32toh(wire.flags) & FLAG_CLOSE;
	request->request = be64toh(wire.request);
	request->response = be64toh(wire.response);
	return be32toh(wire.magic) == MAGIC && request->request >= PAYLOAD_HEAD ? 0 : -1;
}

const uint8_t *payload_at(uint64_t offset)
{
	return pattern + offset % PERIOD;
}

bool payload_matches(const uint8_t *data, size_t len, uint64_t offset)
{
	while (len) {
		size_t piece = payload_chunk(len);

		if (memcmp(data, payload_at(offset), piece) != 0)
			return false;
		data += piece;
		len -= piece;
		offset += piece;
	}
	return true;
}
