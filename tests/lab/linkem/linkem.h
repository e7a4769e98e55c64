/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * linkem.h - what the parts of linkem share: settings, one direction of a link, packet surgery, control socket.
 */
#ifndef LINKEM_H
#define LINKEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINKEM_NS_PER_S UINT64_C(1000000000)

/* The directions, as an index. A is the side named first on the command line. */
enum linkem_way { LINKEM_A_TO_B, LINKEM_B_TO_A, LINKEM_WAY_COUNT };

/* --- settings.c: values that may change while linkem runs ---------------------------------------------------- */

/* What one direction does to packets. All zero is a perfect wire. */
struct settings {
	uint64_t delay_ns;   /* one way, after serialisation */
	uint64_t jitter_ns;  /* each packet waits up to this much longer, uniformly */
	uint64_t rate_bps;   /* 0: no limit */
	uint64_t queue;      /* packets that may wait for the wire */
	uint64_t loss_ppb;   /* parts in 10^9 of the packets that the wire loses */
	bool reorder;        /* may jitter change the order? */
	bool strip_mptcp;    /* a middlebox that overwrites MPTCP options by NOPs */
	bool strip_mptcp_behind; /* the same behind the handshake: SYNs keep theirs */
	bool strip_syn_data; /* a middlebox that cuts the payload off SYNs */
	uint64_t max_size;   /* of packets in bytes, from the IP header on; larger ones vanish without a word; 0: any */
	uint64_t max_syn;    /* the same, of packets with the SYN flag */
	bool drop_mptcp_syn; /* a firewall that drops SYNs with an MPTCP option */
	bool drop_join;      /* the same for SYNs that join an MPTCP connection */
	uint64_t drop_port;  /* and one that drops TCP to this port; 0: none */
};

/* One row for each setting: the command line, the control socket and --help are made from it. */
struct setting_info {
	const char *name;
	const char *argument; /* what the value looks like; NULL: on or off */
	const char *help;
};

/* The settings' descriptions; sets *count. */
const struct setting_info *settings_info(size_t *count);

/* Fills in the defaults: a perfect wire with a queue of 1000 packets. */
void settings_init(struct settings *settings);

/* Changes the setting called `name` to `value`, such as ("delay", "10ms"). On failure returns false, leaves the setting
 * alone and puts a sentence that quotes the bad input into error[size]. */
bool settings_set(struct settings *settings, const char *name, const char *value, char *error, size_t size);

/* Changes several: "delay=10ms loss 1%", with '=' or a blank between name and value. All or nothing; errors as above. */
bool settings_set_list(struct settings *settings, const char *list, char *error, size_t size);

/* Reads a time as the settings have them, such as "12.5ms". False where it is none; errors as above. */
bool settings_parse_time(const char *text, uint64_t *ns, char *error, size_t size);

/* --- delays.c: delays of single hosts on side A -------------------------------------------------------------- */

struct host_address {
	uint8_t family; /* 4 or 6 */
	uint8_t bytes[16]; /* IPv4: the first four, the others are 0 */
};

/* Reads an IPv4 or IPv6 address; false where it is none. */
bool host_parse(const char *text, struct host_address *address);

/* The source or the destination of an IP packet; false if it has neither. */
bool host_of_packet(const uint8_t *packet, size_t size, bool source, struct host_address *address);

struct host_delay {
	struct host_address address;
	uint64_t delay_ns;
	uint64_t last_due; /* of this host's packets, which keep their order among themselves */
};

struct delays;

/* NULL without memory. */
struct delays *delays_create(void);
void delays_destroy(struct delays *delays);

/* The host's entry; NULL where it has no delay of its own. */
struct host_delay *delays_find(struct delays *delays, const struct host_address *address);

/* False, with nothing changed, where there is no memory for one more host. */
bool delays_set(struct delays *delays, const struct host_address *address, uint64_t delay_ns);
void delays_remove(struct delays *delays, const struct host_address *address);

/* --- surgery.c: what middleboxes do ------------------------------------------------------------------------ */

/* Overwrites each MPTCP option (kind 30) of a TCP segment by NOPs; the checksum is kept right. True if it had one. */
bool surgery_strip_mptcp(uint8_t *packet, size_t size);

/* Is it a TCP segment with the SYN flag? */
bool surgery_is_syn(uint8_t *packet, size_t size);

/* What a firewall looks at. */
struct surgery_look {
	bool syn, mptcp;
	bool join;     /* an MP_JOIN */
	uint16_t port; /* where it goes to */
};

/* Looks at a packet. False if it isn't a TCP segment. */
bool surgery_look(uint8_t *packet, size_t size, struct surgery_look *look);

/* Cuts the payload off a segment with the SYN flag; lengths and checksums are kept right. Returns the packet's new size,
 * which is `size` where there was nothing to cut. */
size_t surgery_strip_syn_data(uint8_t *packet, size_t size);

/* --- lane.c: one direction -------------------------------------------------------------------------------- */

/* Every packet that comes in is counted in `in` and later in exactly one of the others, or is still under way. */
struct lane_stats {
	uint64_t in, in_bytes;
	uint64_t out, out_bytes;
	uint64_t lost;       /* by the loss setting, by size or by a firewall */
	uint64_t queue_drop; /* the queue was full */
	uint64_t down_drop;  /* the link was down, at either end of the packet's way */
	uint64_t overflow;   /* more packets under way than linkem has buffers for */
	uint64_t error;      /* the receiving device refused it */
	/* not part of that sum */
	uint64_t stripped;   /* packets that a middlebox setting changed */
	uint64_t late_ns;    /* sum over the packets delivered: how much later than due */
	uint64_t late_max_ns;
};

struct lane;

/* Makes a lane for packets of up to mtu bytes that writes them to the descriptor `out` (not owned). Buffers are
 * reserved here, once. NULL without memory (errno says which). */
struct lane *lane_create(const struct settings *settings, enum linkem_way way, size_t mtu, int out, uint64_t seed);
void lane_destroy(struct lane *lane);

/* Reads up to `most` packets from the descriptor `in` (non-blocking) into the lane; returns how many, or -errno. */
int lane_fill(struct lane *lane, int in, int most);

/* Writes out every packet that is due by now; returns when the next one is, or UINT64_MAX. Times are CLOCK_MONOTONIC ns. */
uint64_t lane_drain(struct lane *lane);

/* New settings hold for packets that come in from now on. */
const struct settings *lane_settings(const struct lane *lane);
void lane_set_settings(struct lane *lane, const struct settings *settings);

/* The delays of single hosts, which hold instead of the setting `delay` for packets that come in from now on. */
struct delays *lane_delays(struct lane *lane);

/* A lane that is down swallows what comes in and what comes out; the devices notice nothing, as with a lost radio link. */
void lane_set_down(struct lane *lane, bool down);

const struct lane_stats *lane_stats(const struct lane *lane);
uint64_t lane_under_way(const struct lane *lane);

uint64_t clock_now(void);

/* --- control.c: the UNIX socket ---------------------------------------------------------------------------- */

#define CONTROL_FDS 5 /* the listener and four connections */

struct pollfd;
struct control;

/* Listens on `path`, replacing what a dead linkem left there. NULL on failure with errno set. */
struct control *control_create(const char *path, struct lane *lanes[LINKEM_WAY_COUNT]);
void control_destroy(struct control *control);

/* Fills in CONTROL_FDS entries for poll(), unused ones with descriptor -1. */
void control_poll(const struct control *control, struct pollfd *fds);

/* Does what the same entries ask for after poll(). */
void control_dispatch(struct control *control, const struct pollfd *fds);

#endif
