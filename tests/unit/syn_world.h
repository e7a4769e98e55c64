/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syn_world.h - a worker's part of withholding SYNs, with a judge, a dialler, a queue and a clock of the test's
 *
 * A SYN's payload tells the judge the last byte of the server's address, and flags. No packet leaves the process.
 */
#ifndef TESTS_UNIT_SYN_WORLD_H
#define TESTS_UNIT_SYN_WORLD_H

#include "daemon/metrics.h"
#include "hold/hold.h"
#include "hold/hold_queue.h"
#include "serve/plugs.h"
#include "serve/syn_judge.h"

#include <check.h>

/* Flags of a SYN's client. */
enum { BLIND = 1, MPTCP = 2, NUMBERED = 4, PROVEN = 8 };

/* A SYN's payload. */
struct ask {
	uint8_t server, flags, repeat, number;
};

extern struct hold_table *table;
extern struct serve_context context;
extern struct metrics metrics;
extern struct serve_settings settings;
extern struct syn_judge *judge;
extern int unproven; /* clients that haven't proved their addresses */

/* ----- the queue ----- */

#define PACKETS_MAX 64

enum packet_fate { WAITS, PASSED, CHANGED, DROPPED };

extern enum packet_fate packets[PACKETS_MAX];
extern uint16_t urgent[PACKETS_MAX], window[PACKETS_MAX]; /* of changed packets: the mark, and the window */
extern int reads, closes;
extern hold_queue_handler *handler;
extern void *handler_arg;
extern uint32_t last_id;
extern bool with_mptcp; /* SYNs have MP_CAPABLE, and a window scale of 7 */
extern uint16_t with_urgent; /* SYNs have this urgent pointer */

/* Puts a SYN into the queue, with @ask as its payload unless that is NULL. Returns its number. */
uint32_t send_syn(uint16_t port, uint32_t isn, const struct ask *ask);

/* ----- the judge, and the dialler, whose sockets are descriptors of /dev/null ----- */

extern bool demanded, has_room, refuses;
extern struct judgement_case last_case;

extern int server_result, dials, last_fd, resets, steps;
extern bool last_writable;    /* of the dial at the latest step */
extern unsigned step_ms;      /* each step makes another one due after so many ms, without an event; 0: none */
extern bool replaces_sockets; /* each step replaces the socket once */
extern bool replaces_twice;   /* each step replaces it twice, by one with the number of the first */
extern const struct serve_plugs plugs;

int dial_begin(struct serve_context *of, const struct serve_plan *plan, struct serve_dial *dial);

/* The dialler's steps return @result from now on, and its socket has an event. */
void server_says(int result);

/* ----- the stage ----- */

void setup(void);
void teardown(void);

/* Takes the SYNs out of the table that a connection from that port would find. Returns how many. */
unsigned take(uint16_t port);

extern uint32_t taken_events; /* of the server's socket of the SYN that was taken last */

/* The urgent pointer of a SYN whose SYN+ACK confirms. */
#define CONFIRMED SYN_PACKET_MARK

#endif
