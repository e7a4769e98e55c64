/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.c - one direction of a link: a queue, a wire with a rate, a delay
 *
 * Since the queue is first in, first out, all that will happen to a packet is known when it comes in:
 *
 *     start = max(now, when the wire is free)       until then it waits in the queue
 *     leave = start + size * 8 / rate               the wire is free again
 *     due   = leave + delay + jitter                delivered
 *
 * so a packet is put once into a ring sorted by `due`, and a second ring keeps the starts that lie in the future: their
 * number is the queue's length, which the packet on the wire doesn't count in. A packet that the wire loses takes its time
 * on the wire like any other. Without `reorder`, due never decreases among the packets of a host with a delay of its own
 * (delays.c) and among those of all other hosts; where there is no such host, putting in is appending.
 *
 * Buffers are one mapping of LANE_SLOTS of an MTU each, which the kernel backs with memory when first used; freed ones are
 * used again first, so memory follows the highest load. Where none is left (a delay so long that more than LANE_SLOTS
 * packets are under way) packets are dropped and counted in `overflow`.
 *
 * The loss and jitter of a lane come from a generator of its own, so a seed gives the same fate to the n-th packet.
 */
#include "config.h"

#include "linkem.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LANE_SLOTS 32768u   /* a power of two */
#define LANE_WAITING 16384u /* the longest queue that settings.c allows; a power of two */

struct parcel {
	uint64_t due;
	uint32_t slot;
	uint32_t size;
};

struct lane {
	enum linkem_way way;
	struct settings settings;
	struct delays *delays;
	struct lane_stats stats;
	int out;
	bool down;
	size_t slot_size;
	uint8_t *slots;
	uint64_t wire_free;
	uint64_t last_due;
	uint64_t random;
	uint32_t free_count;
	uint32_t head, tail;         /* of parcels; they run on, the index is taken modulo the size */
	uint32_t wait_head, wait_tail; /* of starts */
	uint32_t free_slots[LANE_SLOTS];
	struct parcel parcels[LANE_SLOTS];
	uint64_t starts[LANE_WAITING];
};

uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * LINKEM_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* splitmix64: one word of state, and any seed is a good one */
static uint64_t lane_random(struct lane *lane)
{
	uint64_t z = lane->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

struct lane *lane_create(const struct settings *settings, enum linkem_way way, size_t mtu, int out, uint64_t seed)
{
	struct lane *lane = calloc(1, sizeof *lane);

	if (!lane)
		return NULL;
	lane->way = way;
	lane->delays = delays_create();
	lane->slot_size = (mtu + 63) & ~(size_t)63;
	lane->slots = mmap(NULL, lane->slot_size * LANE_SLOTS, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!lane->delays || lane->slots == MAP_FAILED) {
		lane_destroy(lane);
		return NULL;
	}
	lane->settings = *settings;
	lane->out = out;
	lane->random = seed;
	while (lane->free_count < LANE_SLOTS) {
		lane->free_slots[lane->free_count] = LANE_SLOTS - 1 - lane->free_count;
		lane->free_count++;
	}
	return lane;
}

void lane_destroy(struct lane *lane)
{
	if (!lane)
		return;
	if (lane->slots != MAP_FAILED)
		munmap(lane->slots, lane->slot_size * LANE_SLOTS);
	delays_destroy(lane->delays);
	free(lane);
}

/* Passes a packet over the wire; false if the queue is full. Sets when its last bit leaves. */
static bool lane_transmit(struct lane *lane, size_t size, uint64_t now, uint64_t *leave)
{
	uint64_t start = now > lane->wire_free ? now : lane->wire_free;

	if (lane->settings.rate_bps == 0) {
		*leave = now;
		return true;
	}
	while (lane->wait_head != lane->wait_tail && lane->starts[lane->wait_head % LANE_WAITING] <= now)
		lane->wait_head++;
	if (start > now) {
		if (lane->wait_tail - lane->wait_head >= lane->settings.queue)
			return false;
		lane->starts[lane->wait_tail++ % LANE_WAITING] = start;
	}
	lane->wire_free = start + size * 8 * LINKEM_NS_PER_S / lane->settings.rate_bps;
	*leave = lane->wire_free;
	return true;
}

/* Puts a parcel where its due time belongs; without reordering that is the end. */
static void lane_insert(struct lane *lane, struct parcel parcel)
{
	uint32_t at = lane->tail++;

	while (at != lane->head && lane->parcels[(at - 1) % LANE_SLOTS].due > parcel.due) {
		lane->parcels[at % LANE_SLOTS] = lane->parcels[(at - 1) % LANE_SLOTS];
		at--;
	}
	lane->parcels[at % LANE_SLOTS] = parcel;
}

/* Does something on the way drop it: by its size, by what it is, by where it goes? */
static bool lane_filters(const struct settings *settings, uint8_t *packet, size_t size)
{
	struct surgery_look look = { false };

	if (settings->max_size && size > settings->max_size)
		return true;
	if (!settings->max_syn && !settings->drop_mptcp_syn && !settings->drop_join && !settings->drop_port)
		return false;
	if (!surgery_look(packet, size, &look))
		return false;
	return (look.syn && settings->max_syn && size > settings->max_syn) || (look.syn && look.mptcp && settings->drop_mptcp_syn) ||
	       (look.syn && look.join && settings->drop_join) ||
	       (settings->drop_port && look.port == settings->drop_port);
}

/* Adds the delay to when a packet leaves the wire, in order with the packets that it must not overtake. */
static uint64_t lane_delay(struct lane *lane, const uint8_t *packet, size_t size, uint64_t leave)
{
	const struct settings *settings = &lane->settings;
	struct host_address address;
	struct host_delay *host = NULL;
	uint64_t due, *last_due;

	if (host_of_packet(packet, size, lane->way == LINKEM_A_TO_B, &address))
		host = delays_find(lane->delays, &address);
	last_due = host ? &host->last_due : &lane->last_due;
	due = leave + (host ? host->delay_ns : settings->delay_ns);
	if (settings->jitter_ns)
		due += lane_random(lane) % (settings->jitter_ns + 1);
	if (!settings->reorder && due < *last_due)
		due = *last_due;
	if (due > *last_due)
		*last_due = due;
	return due;
}

/* Decides over a packet in `slot`; false if it goes no further. */
static bool lane_accept(struct lane *lane, uint32_t slot, size_t size, uint64_t now)
{
	const struct settings *settings = &lane->settings;
	uint8_t *packet = lane->slots + slot * lane->slot_size;
	size_t whole = size;
	uint64_t leave, due;

	if (lane->down) {
		lane->stats.down_drop++;
		return false;
	}
	if (lane_filters(settings, packet, size)) {
		lane->stats.lost++;
		return false;
	}
	if ((settings->strip_mptcp || (settings->strip_mptcp_behind && !surgery_is_syn(packet, size))) &&
	    surgery_strip_mptcp(packet, size))
		lane->stats.stripped++;
	if (settings->strip_syn_data) {
		size = surgery_strip_syn_data(packet, size);
		lane->stats.stripped += size != whole;
	}
	if (!lane_transmit(lane, size, now, &leave)) {
		lane->stats.queue_drop++;
		return false;
	}
	if (settings->loss_ppb && lane_random(lane) % 1000000000 < settings->loss_ppb) {
		lane->stats.lost++;
		return false;
	}
	due = lane_delay(lane, packet, size, leave);
	lane_insert(lane, (struct parcel){ .due = due, .slot = slot, .size = (uint32_t)size });
	return true;
}

int lane_fill(struct lane *lane, int in, int most)
{
	static uint8_t overflow[65536];
	int count = 0;

	for (; count < most; count++) {
		bool room = lane->free_count > 0;
		uint32_t slot = room ? lane->free_slots[lane->free_count - 1] : 0;
		uint8_t *buffer = room ? lane->slots + slot * lane->slot_size : overflow;
		ssize_t size = read(in, buffer, room ? lane->slot_size : sizeof overflow);

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			return count || errno == EAGAIN ? count : -errno;
		lane->stats.in++;
		lane->stats.in_bytes += (uint64_t)size;
		if (!room)
			lane->stats.overflow++;
		else if (lane_accept(lane, slot, (size_t)size, clock_now()))
			lane->free_count--;
	}
	return count;
}

static void lane_deliver(struct lane *lane, const struct parcel *parcel, uint64_t now)
{
	uint64_t late = now - parcel->due;

	lane->free_slots[lane->free_count++] = parcel->slot;
	if (lane->down) {
		lane->stats.down_drop++;
		return;
	}
	lane->stats.late_ns += late;
	if (late > lane->stats.late_max_ns)
		lane->stats.late_max_ns = late;
	if (write(lane->out, lane->slots + parcel->slot * lane->slot_size, parcel->size) < 0) {
		lane->stats.error++;
		return;
	}
	lane->stats.out++;
	lane->stats.out_bytes += parcel->size;
}

uint64_t lane_drain(struct lane *lane)
{
	while (lane->head != lane->tail) {
		const struct parcel *next = &lane->parcels[lane->head % LANE_SLOTS];
		uint64_t now = clock_now();

		if (next->due > now)
			return next->due;
		lane->head++;
		lane_deliver(lane, next, now);
	}
	return UINT64_MAX;
}

const struct settings *lane_settings(const struct lane *lane)
{
	return &lane->settings;
}

void lane_set_settings(struct lane *lane, const struct settings *settings)
{
	lane->settings = *settings;
}

struct delays *lane_delays(struct lane *lane)
{
	return lane->delays;
}

void lane_set_down(struct lane *lane, bool down)
{
	lane->down = down;
}

const struct lane_stats *lane_stats(const struct lane *lane)
{
	return &lane->stats;
}

uint64_t lane_under_way(const struct lane *lane)
{
	return lane->tail - lane->head;
}
